"""Mean scores of groups, and their differences from a baseline on shared questions."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from gradewire_stats.bootstrap import LEAST_QUESTIONS, Difference, Estimate, difference, draws, estimate, joined


@dataclass(frozen=True, slots=True)
class GroupedRows:
    """Scores by several metrics, with each row's group and question.

    Attributes:
        scores: float64[rows] by metric, NaN without a score.
        groups: int[rows], each row's group number, -1 for a row without a group.
        names: Each group's name, by group number: the value that the group's rows share in each grouping column.
        questions: int[rows], each row's question number, from 0 without gaps.
        strata: int[questions], each question's data set number. Draws are stratified by data set.
    """

    scores: Mapping[str, NDArray[np.float64]]
    groups: NDArray[np.intp]
    names: Sequence[tuple[str, ...]]
    questions: NDArray[np.intp]
    strata: NDArray[np.intp]

    @classmethod
    def of(
        cls,
        scores: Mapping[str, Sequence[float]],
        groups: Sequence[int],
        names: Sequence[tuple[str, ...]],
        questions: Sequence[int],
        strata: Sequence[int],
    ) -> Self:
        """Convert sequences of numbers to rows."""
        return cls(
            scores={metric: np.asarray(column, dtype=np.float64) for metric, column in scores.items()},
            groups=np.asarray(groups, dtype=np.intp),
            names=names,
            questions=np.asarray(questions, dtype=np.intp),
            strata=np.asarray(strata, dtype=np.intp),
        )


RESAMPLES = 2000
"""Default number of draws."""
# Maximum product of questions and draws. With many questions, fewer draws suffice (at least `_LEAST_DRAWS`), and more
# draws over millions of rows would take minutes.
_MOST_DRAWN = 200_000_000
_LEAST_DRAWS = 1000


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """A group minus its baseline, on questions with a score in both groups.

    Attributes:
        mean: Mean difference between the groups' mean scores for a question. If questions are weighted by their rows,
            this is the difference between the groups' means over rows.
    """

    baseline: tuple[str, ...]
    questions: int
    mean: Difference


@dataclass(frozen=True, slots=True)
class GroupStatistics:
    """A metric's statistics on a group.

    Attributes:
        mean: Mean over the scored rows.
        paired: Difference from the group's baseline. None if the group is a baseline, or if the two share no question.
    """

    group: tuple[str, ...]
    rows: int
    scored: int
    mean: Estimate
    paired: PairedDifference | None


@dataclass(slots=True)
class _Ratio:
    """A ratio of two sums over questions, with its values in all draws so far.

    Attributes:
        questions: int[n], question numbers, each at most once.
        above, below: float64[n], each question's terms in the numerator and in the denominator.
    """

    questions: NDArray[np.intp]
    above: NDArray[np.float64]
    below: NDArray[np.float64]
    drawn: list[NDArray[np.float64]] = field(default_factory=list)

    @property
    def value(self) -> float:
        below = float(self.below.sum())
        return float(self.above.sum()) / below if below else np.nan

    def take(self, weights: NDArray[np.float64]) -> None:
        taken = weights[:, self.questions]
        below = taken @ self.below
        with np.errstate(invalid="ignore", divide="ignore"):
            self.drawn.append(np.where(below > 0, taken @ self.above / below, np.nan))

    def free(self, strata: NDArray[np.intp]) -> int:
        """Return the same number as `free_clusters`, but in less time, because the questions are distinct."""
        return len(self.questions) - max(0, len(np.unique(strata[self.questions])) - 1)


def compare_groups(  # noqa: PLR0913 - the rows and five options
    rows: GroupedRows,
    *,
    baseline: str | None = None,
    column: int = 0,
    by_row: bool = False,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> dict[str, list[GroupStatistics]]:
    """Compare all groups' mean scores by every metric, with paired differences from a baseline.

    A group's baseline is the group whose name has the value `baseline` at `column` and otherwise the same values. For
    example, with groups by (model, data set), every model is compared with the baseline model on the same data set.

    Args:
        rows: Scores, groups and questions.
        baseline: The value in the baselines' names. None means the value in the first group's name.
        column: Position of this value in the groups' names.
        by_row: Weight each question by its rows, so that a difference equals the difference between the groups' means.
            Both groups then need the same number of scored rows for each question. By default, all questions have the
            same weight.
        resamples: Number of draws of whole questions, stratified by data set with `one_fewer` (see `bootstrap.draws`).
            With more than 100 000 questions, the number is reduced.
        seed: Seed for the draws.

    Returns:
        Statistics by metric, in the order of `rows.names`.

    Raises:
        ValueError: No group's name has the value `baseline` at `column`.
    """
    if not rows.names:
        return {metric: [] for metric in rows.scores}
    first = rows.names[0][column] if baseline is None else baseline
    if all(name[column] != first for name in rows.names):
        raise ValueError(f"no group has the baseline {first!r}")
    baselines = _baseline_numbers(rows.names, first, column)
    members = _members(rows)
    means = {metric: [_mean(rows, scores, where) for where in members] for metric, scores in rows.scores.items()}
    pairs = {metric: _baseline_differences(means[metric], baselines, by_row=by_row) for metric in rows.scores}
    ratios = [ratio for table in (means, pairs) for found in table.values() for ratio in found if ratio is not None]
    count = max(min(resamples, _LEAST_DRAWS), min(resamples, _MOST_DRAWN // len(rows.strata)))
    # Draw only for ratios that get an interval. If rows are grouped by their IDs, no ratio gets an interval.
    drawn = [ratio for ratio in ratios if ratio.free(rows.strata) >= LEAST_QUESTIONS]
    for weights in draws(rows.strata, resamples=count if drawn else 0, seed=seed, one_fewer=True):
        for ratio in drawn:
            ratio.take(weights)
    return {
        metric: [
            GroupStatistics(
                name,
                len(members[number]),
                int(np.count_nonzero(~np.isnan(scores[members[number]]))),
                estimate(mean.value, joined(mean.drawn), questions=mean.free(rows.strata)),
                _paired(rows, pairs[metric][number], baselines.get(number)),
            )
            for number, (name, mean) in enumerate(zip(rows.names, means[metric], strict=True))
        ]
        for metric, scores in rows.scores.items()
    }


def _members(rows: GroupedRows) -> list[NDArray[np.intp]]:
    order = np.argsort(rows.groups, kind="stable")
    ends = np.searchsorted(rows.groups[order], np.arange(len(rows.names) + 1))
    return [order[start:end] for start, end in itertools.pairwise(ends)]


def _baseline_numbers(names: Sequence[tuple[str, ...]], first: str, column: int) -> dict[int, int]:
    numbers = {name: number for number, name in enumerate(names)}
    others = {number: (*name[:column], first, *name[column + 1 :]) for name, number in numbers.items()}
    return {number: numbers[other] for number, other in others.items() if other in numbers and numbers[other] != number}


def _mean(rows: GroupedRows, scores: NDArray[np.float64], where: NDArray[np.intp]) -> _Ratio:
    scored = where[~np.isnan(scores[where])]
    questions, places = np.unique(rows.questions[scored], return_inverse=True)
    total = np.bincount(places, weights=scores[scored], minlength=len(questions)).astype(np.float64)
    return _Ratio(questions, total, np.bincount(places, minlength=len(questions)).astype(np.float64))


def _baseline_differences(
    means: Sequence[_Ratio], baselines: Mapping[int, int], *, by_row: bool
) -> list[_Ratio | None]:
    return [
        _difference(mean, means[baselines[number]], by_row=by_row) if number in baselines else None
        for number, mean in enumerate(means)
    ]


def _difference(group: _Ratio, baseline: _Ratio, *, by_row: bool) -> _Ratio | None:
    shared, here, there = np.intersect1d(group.questions, baseline.questions, assume_unique=True, return_indices=True)
    if not len(shared):
        return None
    apart = group.above[here] / group.below[here] - baseline.above[there] / baseline.below[there]
    rows = group.below[here] if by_row else np.ones(len(shared))
    return _Ratio(shared, apart * rows, rows)


def _paired(rows: GroupedRows, pair: _Ratio | None, baseline: int | None) -> PairedDifference | None:
    if pair is None or baseline is None:
        return None
    mean = difference(pair.value, joined(pair.drawn), questions=pair.free(rows.strata))
    return PairedDifference(rows.names[baseline], len(pair.questions), mean)
