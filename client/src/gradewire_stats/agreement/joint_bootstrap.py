"""Compute all of a table's metrics, parts and comparisons from the same bootstrap draws of questions."""

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from gradewire_stats import one_blas_thread
from gradewire_stats.agreement.ranks import RANK_DRAWS, RankedSample
from gradewire_stats.agreement.rows import JudgedRows, NumberedRows, Part, Sample, right
from gradewire_stats.agreement.statistics import (
    ADDITIVE_STATISTICS,
    ALL_STATISTICS,
    JUDGED_STATISTICS,
    RANK_STATISTICS,
    VERDICT_STATISTICS,
    Statistic,
    additive_values,
    auc,
    correlations,
    scale_of,
    sums_by_question,
)
from gradewire_stats.bootstrap import (
    CellsMean,
    Difference,
    Estimate,
    check_lengths,
    difference,
    draws,
    estimate,
    free_clusters,
    joined,
    question_clusters,
    strata_of,
)


@dataclass(slots=True, eq=False)
class PartDraws:
    """A metric's statistics on a part of the table: the point values, and the values in all draws.

    Attributes:
        sample: The part's rows with a score. The part's questions are numbered from 0.
        ranked: The same rows, prepared for ranking, or None if no rank statistic is wanted.
        questions_of: Number of questions that can vary between draws, by kind of statistic: "pairs" for statistics of
            pairs, "judged" for statistics of rows with a verdict, and "" for statistics of all rows.
    """

    part: Part
    sample: Sample
    wanted: set[Statistic] = field(default_factory=set)
    values: dict[Statistic, float] = field(default_factory=dict)
    sums: dict[str, int] = field(default_factory=dict)
    ranked: RankedSample | None = None
    questions_of: dict[str, int] = field(default_factory=dict)
    _drawn: defaultdict[Statistic, list[NDArray[np.float64]]] = field(default_factory=lambda: defaultdict(list))

    def take(self, sums: NDArray[np.float64], drawn: NDArray[np.float64]) -> None:
        """Compute the values in a chunk of draws.

        Args:
            sums: float64[columns, draws], the part's sums.
            drawn: float64[draws, the part's questions], number of times each question was drawn, for rank statistics.
        """
        values = additive_values({name: sums[column] for name, column in self.sums.items()}, self.wanted)
        if self.ranked is not None and len(drawn):
            values |= self.ranked.resample(drawn)
        for statistic, column in values.items():
            self._drawn[statistic].append(column)

    def draws(self, statistic: Statistic) -> NDArray[np.float64]:
        """Return a statistic in all draws, float64[draws], NaN if undefined. Rank statistics have fewer draws."""
        return joined(self._drawn[statistic])

    def questions(self, statistic: Statistic) -> int:
        """Return the number of questions that contribute to a statistic and can vary between draws."""
        return self.questions_of[
            "pairs" if statistic == "pairwise" else "judged" if statistic in JUDGED_STATISTICS else ""
        ]

    def estimate(self, statistic: Statistic) -> Estimate:
        """Return a statistic with its interval. Call this method after the last draw."""
        return estimate(self.values[statistic], self.draws(statistic), questions=self.questions(statistic))


class JudgedPart:
    """A part of the table, with a sample for every metric and for every comparison.

    Comparisons on the same rows share a sample.
    """

    def __init__(self, columns: NumberedRows, part: Part) -> None:
        self.part = part
        self._columns = columns
        self._draws: dict[tuple[str, bytes], PartDraws] = {}
        # Table indices of the part's questions. Samples number these questions from 0.
        self._clusters = np.unique(columns.clusters[part.rows])
        self._label_scale = scale_of(columns.rows.labels[part.rows])
        self._sums_by_question: NDArray[np.float64] = np.empty((len(self._clusters), 0))

    def add(self, metric: str, statistics: Collection[Statistic], *paired_with: str) -> PartDraws:
        """Request a metric's statistics on the rows that this metric and all `paired_with` metrics scored."""
        scored, judged = self._columns.usable(self.part.rows, metric, *paired_with)
        key = (metric, np.packbits(np.concatenate([scored, judged])).tobytes())
        if key not in self._draws:
            sample = self._columns.sample(metric, self.part.rows, scored=scored, judged=judged)
            local = np.searchsorted(self._clusters, sample.clusters)
            self._draws[key] = PartDraws(self.part, replace(sample, clusters=local))
        self._draws[key].wanted |= set(statistics)
        return self._draws[key]

    def settle(self) -> None:
        """Compute the point values, and prepare the draws. Call this method once, after the last `add`."""
        columns: dict[bytes, int] = {}
        kept: list[NDArray[np.float64]] = []
        for cell in self._draws.values():
            sample = cell.sample
            sums = sums_by_question(sample, cell.wanted, label_scale=self._label_scale, count=len(self._clusters))
            for name, column in sums.items():
                # Metrics often have equal columns, for example counts, so keep only distinct columns.
                cell.sums[name] = columns.setdefault(column.tobytes(), len(kept))
                if cell.sums[name] == len(kept):
                    kept.append(column)
            cell.values = _point(sample, cell.wanted, {name: each.sum(keepdims=True) for name, each in sums.items()})
            if len(sample.scores) and not cell.wanted.isdisjoint(RANK_STATISTICS):
                cell.ranked = RankedSample(sample, cell.wanted)
            behind = {name: np.flatnonzero(sums.get(name, ())) for name in ("judged", "pairs")} | {"": sample.clusters}
            cell.questions_of = {
                name: free_clusters(self._clusters[where], self._columns.strata) for name, where in behind.items()
            }
        if kept:
            self._sums_by_question = np.stack(kept, axis=1)

    def take(self, weights: NDArray[np.float64], *, rank_draws: int) -> None:
        """Compute the values in a chunk of draws.

        Args:
            weights: float64[draws, questions in the table], number of times each question was drawn.
            rank_draws: Number of draws for rank statistics, which use only the chunk's first draws.
        """
        drawn = np.take(weights, self._clusters, axis=1)
        sums = (drawn @ self._sums_by_question).T
        for cell in self._draws.values():
            cell.take(sums, drawn[:rank_draws])


def _point(
    sample: Sample, wanted: Collection[Statistic], sums: Mapping[str, NDArray[np.float64]]
) -> dict[Statistic, float]:
    values: dict[Statistic, float] = dict.fromkeys((*ALL_STATISTICS, "human_rate"), np.nan)
    values |= {name: float(value[0]) for name, value in additive_values(sums, ADDITIVE_STATISTICS).items()}
    values |= correlations(sample.scores, sample.labels, wanted)
    if sample.positive is not None:
        values["auc"] = auc(sample.scores, sample.positive)
    return values


@dataclass(frozen=True, slots=True)
class StatisticDifference:
    """A statistic for `metric` minus the same statistic for `baseline`, on rows that both metrics scored.

    Attributes:
        rows: Number of rows that both metrics scored or, for verdict statistics, judged.
        mean_of_cells: Mean difference over the cells in which both statistics are defined.
        cells: Number of cells in `mean_of_cells`.
    """

    metric: str
    baseline: str
    statistic: Statistic
    rows: int
    mean_of_cells: Difference
    all_rows: Difference
    cells: int
    cells_in_all: int


class PairDraws:
    """Two metrics on the rows that both metrics scored, for differences between statistics."""

    def __init__(self, parts: Sequence[JudgedPart], names: tuple[str, str], statistics: Sequence[Statistic]) -> None:
        self._names = names
        # The mean over cells needs the parts of the level "cell", and the difference over all rows needs the last part.
        self._sides = [
            [part.add(name, statistics, other) for name, other in (names, names[::-1])]
            for part in parts
            if part.part.level in {"cell", "all"}
        ]

    def comparison(self, statistic: Statistic) -> StatisticDifference:
        """Return the metrics' difference in a statistic, with intervals. Call this method after the last draw."""
        cells = [sides for sides in self._sides if sides[0].part.level == "cell"]
        defined = [sides for sides in cells if not math.isnan(_point_difference(sides, statistic))]
        everything = self._sides[-1][0]
        # Both sides have the same rows, so they have the same questions.
        questions = min((first.questions(statistic) for first, _ in defined), default=0)
        mean = _mean_of_defined([_point_difference(sides, statistic) for sides in defined])
        drawn = _mean_of_draws([_difference(sides, statistic) for sides in defined])
        return StatisticDifference(
            *self._names,
            statistic,
            rows=everything.sample.judged if statistic in VERDICT_STATISTICS else len(everything.sample.scores),
            mean_of_cells=difference(mean, drawn, questions=questions),
            all_rows=difference(
                _point_difference(self._sides[-1], statistic),
                _difference(self._sides[-1], statistic),
                questions=everything.questions(statistic),
            ),
            cells=len(defined),
            cells_in_all=len(cells),
        )


def _point_difference(sides: Sequence[PartDraws], statistic: Statistic) -> float:
    return sides[0].values[statistic] - sides[1].values[statistic]


def mean_over(cells: Sequence[PartDraws], statistic: Statistic, *, absolute: bool = False) -> CellsMean:
    """Return a statistic's mean over cells. With `absolute`, return the mean of the statistic's absolute values.

    Call this function after the last draw.

    Cells with an undefined point value are left out. A draw's mean is undefined if the statistic is undefined in any
    remaining cell.
    """
    defined = [cell for cell in cells if not math.isnan(cell.values[statistic])]
    values, draws = [cell.values[statistic] for cell in defined], [cell.draws(statistic) for cell in defined]
    if absolute:
        values, draws = [abs(value) for value in values], [np.abs(drawn) for drawn in draws]
    # If a cell has too few questions for an interval, the mean has no interval either.
    questions = min((cell.questions(statistic) for cell in defined), default=0)
    mean = estimate(_mean_of_defined(values), _mean_of_draws(draws), questions=questions)
    return CellsMean(**asdict(mean), cells=len(defined), cells_in_all=len(cells))


def _difference(sides: Sequence[PartDraws], statistic: Statistic) -> NDArray[np.float64]:
    first, second = (side.draws(statistic) for side in sides)
    # Kendall's tau has fewer draws if there are many distinct labels, and failures can leave one side with fewer
    # labels.
    shortest = min(len(first), len(second))
    return first[:shortest] - second[:shortest]


def _mean_of_draws(cells: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return each draw's mean over the cells, float64[draws]. It is NaN for draws in which a cell has no value.

    Cells may have different numbers of draws. The result contains the draws that all cells have.
    """
    shortest = min(map(len, cells), default=0)
    if not shortest:
        return np.array([])
    average: NDArray[np.float64] = np.mean([values[:shortest] for values in cells], axis=0)
    return average


def _mean_of_defined(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan


_HUMAN = "\x00human"
"""Name for the human labels as an additional evaluator. No metric has this name."""


class JointBootstrap:
    """A bootstrap over questions, stratified by data set, that computes all statistics from the same draws.

    Request statistics with `add_metric` and `add_pair`, call `run` once, then read the results.
    """

    def __init__(self, rows: JudgedRows, parts: Sequence[Part]) -> None:
        """Prepare the parts.

        Raises:
            ValueError: There are no rows, columns differ in length, or a label is not finite.
        """
        _check(rows)
        clusters = question_clusters(rows.datasets, rows.questions)
        self._strata = strata_of(rows.datasets, clusters)
        columns = NumberedRows(rows, clusters, self._strata)
        self._parts = [JudgedPart(columns, part) for part in parts]

    def add_metric(self, metric: str, statistics: Sequence[Statistic]) -> list[PartDraws]:
        """Request a metric's statistics in every part."""
        return [part.add(metric, statistics) for part in self._parts]

    def add_pair(self, names: tuple[str, str], statistics: Sequence[Statistic]) -> PairDraws:
        """Request the differences between two metrics on the rows that both metrics scored."""
        return PairDraws(self._parts, names, statistics)

    def run(self, *, resamples: int, seed: int) -> None:
        """Compute point values and all draws. Rank statistics use the first `RANK_DRAWS` draws."""
        for part in self._parts:
            part.settle()
        done = 0
        with one_blas_thread():
            for weights in draws(self._strata, resamples=resamples, seed=seed):
                for part in self._parts:
                    part.take(weights, rank_draws=max(0, RANK_DRAWS - done))
                done += len(weights)


def _check(rows: JudgedRows) -> None:
    count = len(rows.labels)
    if not count:
        raise ValueError("there are no labelled rows")
    if not np.isfinite(rows.labels).all():
        raise ValueError("a label is not a finite number. Leave such rows out")
    lengths = {"datasets": len(rows.datasets), "models": len(rows.models), "questions": len(rows.questions)}
    lengths |= {f"scores of {metric}": len(scores) for metric, scores in rows.scores.items()}
    lengths |= {f"verdicts of {metric}": len(rows.verdicts[metric]) for metric in rows.scores}
    lengths |= {"groups": len(rows.groups)} if rows.groups else {}
    check_lengths(count, "labels", lengths)


def draws_with_human_rate(
    rows: JudgedRows, parts: Sequence[Part], statistics: Sequence[Statistic], *, resamples: int, seed: int
) -> tuple[Sequence[PartDraws], Mapping[str, Sequence[PartDraws]]]:
    """Return the human rate in every part, and each metric's statistics in every part, from the same draws."""
    bootstrap = JointBootstrap(_with_human(rows), parts)
    human = bootstrap.add_metric(_HUMAN, ["human_rate"])
    tables = {metric: bootstrap.add_metric(metric, statistics) for metric in rows.scores}
    bootstrap.run(resamples=resamples, seed=seed)
    return human, tables


def _with_human(rows: JudgedRows) -> JudgedRows:
    """Add a metric `_HUMAN` with the labels as verdicts, or without verdicts if any label lies outside [0, 1]."""
    positive = right(rows.labels)
    verdicts = np.full(len(rows.labels), np.nan) if positive is None else positive.astype(np.float64)
    return replace(rows, scores={**rows.scores, _HUMAN: rows.labels}, verdicts={**rows.verdicts, _HUMAN: verdicts})
