"""What a judge prefers whatever the answers say: the one that it is shown first, the longer one."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradewire.agreement.estimates import Estimate, estimate
from gradewire.agreement.resample import draws
from gradewire.ratings.matches import Matches


@dataclass(frozen=True, slots=True)
class Bias:
    """How often an answer wins that has some property and its rival has not.

    Attributes:
        matches: Decided matches in which one answer has it alone, by their weight.
        won: Share of them that it won; 0.5 says nothing of it, and so does more where better models have it.
    """

    matches: float
    won: Estimate


def position_bias(matches: Matches, *, resamples: int = 1000, seed: int = 0) -> Bias:
    """How often the answer wins that was shown first; matches of one order each."""
    return _bias(matches, matches.shown_first, resamples=resamples, seed=seed)


def length_bias(matches: Matches, *, resamples: int = 1000, seed: int = 0) -> Bias:
    """How often the answer with more words wins."""
    apart = np.nan_to_num(matches.words[:, 0] - matches.words[:, 1])
    return _bias(matches, np.sign(apart).astype(np.intp), resamples=resamples, seed=seed)


def _bias(matches: Matches, side: NDArray[np.intp], *, resamples: int, seed: int) -> Bias:
    """Of a property that A has alone (1), or B (-1); whole instructions are drawn."""
    counted = np.flatnonzero(matches.decided & (side != 0))
    if not len(counted):
        return Bias(0.0, estimate(np.nan, np.array([]), questions=0))
    _, instructions = np.unique(matches.instructions[counted], return_inverse=True)
    weights = matches.weights[counted]
    has_won = (matches.score_a[counted] == 1.0) == (side[counted] == 1)
    won, all_ = (np.bincount(instructions, values) for values in (weights * has_won, weights))
    drawn = np.concatenate(
        [
            (counts @ won) / (counts @ all_)
            for counts in draws(np.zeros(len(all_), np.intp), resamples=resamples, seed=seed)
        ]
    )
    return Bias(float(all_.sum()), estimate(float(won.sum() / all_.sum()), drawn, questions=len(all_)))
