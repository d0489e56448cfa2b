"""The average of semantic textual similarity: Spearman's correlation on each test set, times 100, and their mean."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gradewire_stats.agreement.ranks import RANK_DRAWS, Ordering, spearman
from gradewire_stats.agreement.statistics import correlations
from gradewire_stats.bootstrap import Estimate, drawn_values, draws, estimate, numbered

Aggregation = Literal["all", "mean", "weighted-mean"]
"""The way from a test set's subsets to one correlation: over all their pairs together ("all", as in SimCSE), the mean
of the subsets' correlations, or this mean weighted by numbers of pairs."""

_PERCENT = 100.0


@dataclass(frozen=True, slots=True)
class StsPairs:
    """An evaluator's scores of sentence pairs.

    Attributes:
        scores: float64[pairs], NaN if the evaluator failed.
        grades: float64[pairs], human grades on any scale.
        tasks: Each pair's test set.
        subsets: Each pair's subset within its test set.
    """

    scores: NDArray[np.float64]
    grades: NDArray[np.float64]
    tasks: Sequence[str]
    subsets: Sequence[str]


@dataclass(frozen=True, slots=True)
class StsSubset:
    """A subset's correlation, times 100, with its numbers of scored and failed pairs."""

    task: str
    subset: str
    correlation: float
    pairs: int
    failed: int


@dataclass(frozen=True, slots=True)
class StsResult:
    """An evaluator's correlations, times 100.

    Attributes:
        tasks: Spearman's correlation on each test set, -100 to 100, in the order of the pairs.
        average: Mean of `tasks`, NaN if one of them is undefined.
        subsets: The subsets' correlations.
    """

    tasks: Mapping[str, Estimate]
    average: Estimate
    subsets: Sequence[StsSubset]


def sts_result(
    pairs: StsPairs, *, aggregation: Aggregation = "all", resamples: int = RANK_DRAWS, seed: int = 0
) -> StsResult:
    """Compute an evaluator's correlations with intervals from draws of pairs within each subset.

    Args:
        pairs: Scores and grades. Pairs without a score are left out.
        aggregation: The way from subsets to a test set.
        resamples: Number of draws, at most `RANK_DRAWS`.
        seed: Seed for the draws.

    Raises:
        MissingScipyError: scipy is not installed.
        ValueError: Columns differ in length, or a grade is not a finite number.
    """
    lengths = {len(pairs.scores), len(pairs.grades), len(pairs.tasks), len(pairs.subsets)}
    if len(lengths) > 1:
        raise ValueError(f"columns have different lengths {sorted(lengths)}. Give one entry for each pair")
    if not np.isfinite(pairs.grades).all():
        raise ValueError("a grade is not a finite number. Leave such pairs out")
    places = _places(pairs)
    strata = numbered(zip(pairs.tasks, pairs.subsets, strict=True))
    point = {task: _point(pairs, own, aggregation) for task, own in places.items()}

    def values(weights: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        found = {task: _drawn(pairs, own, weights, aggregation) for task, own in places.items()}
        return {**found, "": np.mean(list(found.values()), axis=0)}

    drawn = drawn_values(draws(strata, resamples=min(resamples, RANK_DRAWS), seed=seed), values) if places else {}
    counts = {task: sum(map(len, own.values())) for task, own in places.items()}
    whole = float(np.mean(list(point.values()))) if point else math.nan
    return StsResult(
        tasks={task: estimate(value, drawn[task], questions=counts[task]) for task, value in point.items()},
        average=estimate(whole, drawn.get("", np.array([])), questions=min(counts.values(), default=0)),
        subsets=_subsets(pairs, places),
    )


def _places(pairs: StsPairs) -> dict[str, dict[str, NDArray[np.intp]]]:
    """Return the places of each subset's scored pairs, by test set and subset."""
    found: dict[str, dict[str, list[int]]] = {}
    for place, (task, subset) in enumerate(zip(pairs.tasks, pairs.subsets, strict=True)):
        own = found.setdefault(task, {}).setdefault(subset, [])
        if not math.isnan(pairs.scores[place]):
            own.append(place)
    return {
        task: {subset: np.array(own, np.intp) for subset, own in subsets.items()} for task, subsets in found.items()
    }


def _parts(own: Mapping[str, NDArray[np.intp]], aggregation: Aggregation) -> list[NDArray[np.intp]]:
    return [np.concatenate(list(own.values()))] if aggregation == "all" else list(own.values())


def _shares(parts: Sequence[NDArray[np.intp]], aggregation: Aggregation) -> NDArray[np.float64]:
    sizes = np.array([len(part) for part in parts], np.float64)
    if aggregation != "weighted-mean" or not sizes.sum():
        return np.full(len(parts), 1 / len(parts))
    shares: NDArray[np.float64] = sizes / sizes.sum()
    return shares


def _point(pairs: StsPairs, own: Mapping[str, NDArray[np.intp]], aggregation: Aggregation) -> float:
    parts = _parts(own, aggregation)
    found = [_correlation(pairs, part) for part in parts]
    return float(np.dot(found, _shares(parts, aggregation)))


def _correlation(pairs: StsPairs, part: NDArray[np.intp]) -> float:
    # scipy computes the point values independently of the code for draws.
    return _PERCENT * correlations(pairs.scores[part], pairs.grades[part], ["spearman"])["spearman"]


def _drawn(
    pairs: StsPairs, own: Mapping[str, NDArray[np.intp]], weights: NDArray[np.float64], aggregation: Aggregation
) -> NDArray[np.float64]:
    parts = _parts(own, aggregation)
    found = [
        _PERCENT * spearman(weights[:, part], Ordering.of(pairs.scores[part]), Ordering.of(pairs.grades[part]))
        if len(part)
        else np.full(len(weights), np.nan)
        for part in parts
    ]
    total: NDArray[np.float64] = np.tensordot(_shares(parts, aggregation), np.array(found), axes=1)
    return total


def _subsets(pairs: StsPairs, places: Mapping[str, Mapping[str, NDArray[np.intp]]]) -> list[StsSubset]:
    failed: dict[tuple[str, str], int] = {}
    for key, score in zip(zip(pairs.tasks, pairs.subsets, strict=True), pairs.scores.tolist(), strict=True):
        failed[key] = failed.get(key, 0) + math.isnan(score)
    return [
        StsSubset(task, subset, _correlation(pairs, own), len(own), failed[task, subset])
        for task, subsets in places.items()
        for subset, own in subsets.items()
    ]
