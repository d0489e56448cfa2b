"""Whether a judge ranks models as people do."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gradewire.agreement.estimates import Estimate, estimate
from gradewire.agreement.papers.systems import kendall_of, pearson_of, spearman_of
from gradewire.agreement.resample import draws
from gradewire.ratings.counts import pair_counts
from gradewire.ratings.matches import Matches

if TYPE_CHECKING:
    from numpy.typing import NDArray
from gradewire.ratings.maximum_likelihood import bradley_terry


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemRanks:
    """Ratings from a judge beside ratings from people, over the models that both have.

    Attributes:
        models: How many.
        kendall: tau-b of the two; NaN for fewer than three models.
        spearman: Their rank correlation, likewise.
        pearson: Their linear correlation, likewise.
    """

    models: int
    kendall: Estimate
    spearman: Estimate
    pearson: Estimate


def system_ranks(judge: Matches, people: Matches, *, resamples: int = 1000, seed: int = 0) -> SystemRanks:
    """Correlations of Bradley and Terry's ratings, with intervals over draws of instructions.

    Args:
        judge: Matches that a judge decided.
        people: Matches of the same models that people decided; instructions have the same numbers in both, and those
            that share a number are drawn together.
        resamples: Draws.
        seed: Same seed, same intervals.

    Raises:
        ValueError: The models differ.
    """
    if list(judge.models) != list(people.models):
        raise ValueError("judge and people have to rate the same models, in the same order")
    instructions = max(judge.instruction_count, people.instruction_count)
    sides: tuple[list[NDArray[np.float64]], list[NDArray[np.float64]]] = ([], [])
    strata = np.zeros(instructions, dtype=np.intp)
    for chunk in (None, *draws(strata, resamples=resamples, seed=seed)):
        for side, matches in zip(sides, (judge, people), strict=True):
            side.append(bradley_terry(pair_counts(matches, chunk)).values)
    ours, theirs = (np.concatenate(side) for side in sides)
    both = ~np.isnan(ours[0]) & ~np.isnan(theirs[0])
    behind = len(np.intersect1d(judge.instructions, people.instructions))
    found = {}
    for name, how in (("kendall", kendall_of), ("spearman", spearman_of), ("pearson", pearson_of)):
        values = how(ours[:, both], theirs[:, both])
        found[name] = estimate(float(values[0]), values[1:], questions=behind)
    return SystemRanks(models=int(both.sum()), **found)
