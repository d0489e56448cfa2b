"""One bootstrap over questions for all metrics, parts and comparisons of a table."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace

import numpy as np
from numpy.typing import NDArray

from gradewire_stats.agreement_table import Comparison, JudgedRows, Part
from gradewire_stats.bootstrap_samples import (
    ADDITIVE_STATISTICS,
    OF_VERDICTS,
    RANK_DRAWS,
    RANK_STATISTICS,
    Columns,
    RankedSample,
    Sample,
    additive_values,
    scale_of,
    sums_by_question,
)
from gradewire_stats.intervals import (
    CellsMean,
    Estimate,
    difference,
    draws,
    estimate,
    free_clusters,
    joined,
    question_clusters,
    strata_of,
)
from gradewire_stats.point_estimates import (
    ALL_STATISTICS,
    VERDICT_STATISTICS,
    Statistic,
    auc,
    correlations,
    one_blas_thread,
    right,
)

Draws = dict[Statistic, NDArray[np.float64]]


class JudgedPart:
    """Rows of a part, for every metric that is asked about and on every set of rows that a comparison needs.

    A metric whose rows are the same alone and beside another one is one sample: failures are rare, so comparisons are
    nearly free.

    Attributes:
        part: Which rows.
        samples: By number.
        values: Point values by statistic, of each sample.
    """

    def __init__(self, columns: Columns, part: Part) -> None:
        self.part = part
        self.samples: list[Sample] = []
        self.values: list[dict[Statistic, float]] = []
        self._columns = columns
        self._numbers: dict[tuple[str, bytes], int] = {}
        self._wanted: list[set[Statistic]] = []
        # Questions of the part; samples number them from 0.
        self._clusters = np.unique(columns.clusters[part.rows])
        self._label_scale = scale_of(columns.rows.labels[part.rows])
        self._sums: list[dict[str, int]] = []
        self._sums_by_question: NDArray[np.float64] = np.empty((len(self._clusters), 0))
        self._ranked: list[RankedSample | None] = []
        self._questions: dict[tuple[int, str], int] = {}

    def add(self, metric: str, statistics: Collection[Statistic], *, beside: str | None = None) -> int:
        """Asks for statistics of a metric, on rows that `beside` scored too; returns the number of the sample."""
        scored, judged = self._columns.usable(metric, self.part.rows, beside=beside)
        key = (metric, np.packbits(np.concatenate([scored, judged])).tobytes())
        number = self._numbers.setdefault(key, len(self.samples))
        if number == len(self.samples):
            sample = self._columns.sample(metric, self.part.rows, scored=scored, judged=judged)
            local = np.searchsorted(self._clusters, sample.clusters)
            self.samples.append(replace(sample, clusters=local))
            self._wanted.append(set())
        self._wanted[number] |= set(statistics)
        return number

    def questions(self, number: int, statistic: Statistic) -> int:
        """Questions behind a statistic of a sample that a draw can take otherwise; the part has to be settled."""
        column = "pairs" if statistic == "pairwise" else "judged" if statistic in OF_VERDICTS else ""
        if (number, column) not in self._questions:
            behind = self.samples[number].clusters
            if column:
                place = self._sums[number].get(column)
                behind = behind[:0] if place is None else np.flatnonzero(self._sums_by_question[:, place])
            self._questions[number, column] = free_clusters(self._clusters[behind], self._columns.strata)
        return self._questions[number, column]

    def settle(self) -> None:
        """Computes point values and what all draws share; to be called once, after the last `add`."""
        columns: dict[bytes, int] = {}
        kept: list[NDArray[np.float64]] = []
        for sample, wanted in zip(self.samples, self._wanted, strict=True):
            sums = sums_by_question(sample, wanted, label_scale=self._label_scale, count=len(self._clusters))
            numbers: dict[str, int] = {}
            for name, column in sums.items():
                # Metrics share counts and sums of labels: the same column is multiplied once.
                numbers[name] = columns.setdefault(column.tobytes(), len(kept))
                if numbers[name] == len(kept):
                    kept.append(column)
            self._sums.append(numbers)
            self.values.append(
                _point(sample, wanted, {name: column.sum(keepdims=True) for name, column in sums.items()})
            )
            ranked = len(sample.scores) and not wanted.isdisjoint(RANK_STATISTICS)
            self._ranked.append(RankedSample(sample, wanted) if ranked else None)
        if kept:
            self._sums_by_question = np.stack(kept, axis=1)

    def resample(self, weights: NDArray[np.float64], *, rank_draws: int) -> list[Draws]:
        """Values of draws.

        Args:
            weights: float64[draws, questions of the table], how often each was drawn.
            rank_draws: Draws, from the first on, for which statistics of ranks are wanted.

        Returns:
            For each sample, float64[draws] by statistic, shorter where fewer draws were taken; NaN where not defined.
        """
        drawn = np.take(weights, self._clusters, axis=1)
        sums = (drawn @ self._sums_by_question).T
        found = []
        for number, wanted in enumerate(self._wanted):
            named = {name: sums[column] for name, column in self._sums[number].items()}
            values = additive_values(named, wanted)
            ranked = self._ranked[number]
            if ranked is not None and rank_draws > 0:
                values |= ranked.resample(drawn[:rank_draws])
            found.append(values)
        return found


def _point(
    sample: Sample, wanted: Collection[Statistic], sums: Mapping[str, NDArray[np.float64]]
) -> dict[Statistic, float]:
    values: dict[Statistic, float] = dict.fromkeys((*ALL_STATISTICS, "human_rate"), np.nan)
    values |= {name: float(value[0]) for name, value in additive_values(sums, ADDITIVE_STATISTICS).items()}
    values |= correlations(sample.scores, sample.labels, wanted)
    if sample.positive is not None:
        values["auc"] = auc(sample.scores, sample.positive)
    return values


class CellDraws:
    """One sample of a part: its point values, and its values in all draws so far."""

    def __init__(self, part: JudgedPart, number: int) -> None:
        self.part = part
        self.number = number
        self._draws: dict[Statistic, list[NDArray[np.float64]]] = {}

    @property
    def sample(self) -> Sample:
        """The rows."""
        return self.part.samples[self.number]

    @property
    def values(self) -> dict[Statistic, float]:
        """Point values; the part has to be settled."""
        return self.part.values[self.number]

    def take(self, found: Sequence[Draws]) -> None:
        """Takes in what `JudgedPart.resample` found."""
        for statistic, values in found[self.number].items():
            self._draws.setdefault(statistic, []).append(values)

    def draws(self, statistic: Statistic) -> NDArray[np.float64]:
        """Values of all draws, float64[draws]; NaN where undefined, empty where it cannot be computed at all."""
        return joined(self._draws.get(statistic, []))

    def questions(self, statistic: Statistic) -> int:
        """Questions behind a statistic that a draw can take otherwise."""
        return self.part.questions(self.number, statistic)

    def estimate(self, statistic: Statistic) -> Estimate:
        """A statistic with its interval; all draws have to be taken."""
        return estimate(self.values[statistic], self.draws(statistic), questions=self.questions(statistic))


class PairDraws:
    """Two metrics on the rows that both scored: their differences in all draws so far."""

    def __init__(self, parts: Sequence[JudgedPart], names: tuple[str, str], statistics: Sequence[Statistic]) -> None:
        self._names = names
        # Of each part that matters: the finest ones for the mean of cells, the last one for all rows.
        self._places = [number for number, part in enumerate(parts) if part.part.level in {"cell", "all"}]
        self._sides = [
            [
                CellDraws(parts[place], parts[place].add(name, statistics, beside=other))
                for name, other in (names, names[::-1])
            ]
            for place in self._places
        ]
        self._statistics = statistics
        # Differences are kept, not sides: a draw of a pair is two numbers, however many cells there are.
        self._means: dict[Statistic, list[NDArray[np.float64]]] = {statistic: [] for statistic in statistics}
        self._all: dict[Statistic, list[NDArray[np.float64]]] = {statistic: [] for statistic in statistics}

    def take(self, found: Sequence[Sequence[Draws]]) -> None:
        """Takes in what `JudgedPart.resample` found, for every part of the table."""
        for statistic in self._statistics:
            differences = [
                _difference(found[place][first.number], found[place][second.number], statistic)
                for place, (first, second) in zip(self._places, self._sides, strict=True)
            ]
            defined = [differences[cell] for cell in self._defined_cells(statistic)]
            if defined:
                self._means[statistic].append(_mean_of_draws(defined))
            self._all[statistic].append(differences[-1])

    def comparison(self, statistic: Statistic) -> Comparison:
        """The difference in a statistic with its intervals; all draws have to be taken."""
        cells = self._defined_cells(statistic)
        last, everything = len(self._sides) - 1, self._sides[-1][0]
        # Both sides have the same rows, hence the same questions.
        questions = min((self._sides[cell][0].questions(statistic) for cell in cells), default=0)
        mean = _mean_of_defined([self._point(cell, statistic) for cell in cells])
        return Comparison(
            *self._names,
            statistic,
            rows=everything.sample.judged if statistic in VERDICT_STATISTICS else len(everything.sample.scores),
            mean_of_cells=difference(mean, joined(self._means[statistic]), questions=questions),
            all_rows=difference(
                self._point(last, statistic), joined(self._all[statistic]), questions=everything.questions(statistic)
            ),
            cells=len(cells),
            cells_in_all=sum(first.part.part.level == "cell" for first, _ in self._sides),
        )

    def _defined_cells(self, statistic: Statistic) -> list[int]:
        return [
            number
            for number, (first, _) in enumerate(self._sides)
            if first.part.part.level == "cell" and not math.isnan(self._point(number, statistic))
        ]

    def _point(self, number: int, statistic: Statistic) -> float:
        first, second = self._sides[number]
        return first.values[statistic] - second.values[statistic]


def mean_over(cells: Sequence[CellDraws], statistic: Statistic, *, absolute: bool = False) -> CellsMean:
    """Mean of a statistic, or of its size, over the cells in which it is defined; all draws have to be taken.

    A cell that is undefined as it stands stays out; one that a draw left undefined makes that draw undefined.
    """
    defined = [cell for cell in cells if not math.isnan(cell.values[statistic])]
    values, draws = [cell.values[statistic] for cell in defined], [cell.draws(statistic) for cell in defined]
    if absolute:
        values, draws = [abs(value) for value in values], [np.abs(drawn) for drawn in draws]
    # A mean is as uncertain as each of its cells: one without an interval takes that of the mean.
    questions = min((cell.questions(statistic) for cell in defined), default=0)
    mean = estimate(_mean_of_defined(values), _mean_of_draws(draws), questions=questions)
    return CellsMean(**asdict(mean), cells=len(defined), cells_in_all=len(cells))


def _difference(first: Draws, second: Draws, statistic: Statistic) -> NDArray[np.float64]:
    if statistic not in first or statistic not in second:
        return np.array([])
    # Kendall's tau ends early where labels have many levels, which failures can make different on the two sides.
    shortest = min(len(first[statistic]), len(second[statistic]))
    return first[statistic][:shortest] - second[statistic][:shortest]


def _mean_of_draws(cells: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Mean of cells in every draw that all of them have, float64[draws]; NaN where a cell is undefined in the draw."""
    shortest = min(map(len, cells), default=0)
    if not shortest:
        return np.array([])
    average: NDArray[np.float64] = np.mean([values[:shortest] for values in cells], axis=0)
    return average


def _mean_of_defined(values: Sequence[float]) -> float:
    """Mean of values that are all defined; NaN of none."""
    return sum(values) / len(values) if values else math.nan


class JointBootstrap:
    """Draws of whole questions, stratified by data set, that everything asked of it sees alike.

    First ask (`cells`, `pair`), then `run` once, then read what was asked for.
    """

    def __init__(self, rows: JudgedRows, parts: Sequence[Part]) -> None:
        """Prepares the parts.

        Raises:
            ValueError: There is no row, columns differ in length, or a label is not a number.
        """
        _check(rows)
        clusters = question_clusters(rows.datasets, rows.questions)
        self._strata = strata_of(rows.datasets, clusters)
        columns = Columns(rows, clusters, self._strata, right(rows.labels))
        self._parts = [JudgedPart(columns, part) for part in parts]
        self._cells: list[list[CellDraws]] = []
        self._pairs: list[PairDraws] = []

    def cells(self, metric: str, statistics: Sequence[Statistic]) -> list[CellDraws]:
        """Asks for a metric in every part."""
        table = [CellDraws(part, part.add(metric, statistics)) for part in self._parts]
        self._cells.append(table)
        return table

    def pair(self, names: tuple[str, str], statistics: Sequence[Statistic]) -> PairDraws:
        """Asks for the differences of two metrics on the rows that both scored."""
        pair = PairDraws(self._parts, names, statistics)
        self._pairs.append(pair)
        return pair

    def run(self, *, resamples: int, seed: int) -> None:
        """Computes point values and all draws; statistics of ranks see the first `RANK_DRAWS` draws."""
        for part in self._parts:
            part.settle()
        done = 0
        with one_blas_thread():
            for weights in draws(self._strata, resamples=resamples, seed=seed):
                found = [part.resample(weights, rank_draws=max(0, RANK_DRAWS - done)) for part in self._parts]
                done += len(weights)
                for table in self._cells:
                    for cell, values in zip(table, found, strict=True):
                        cell.take(values)
                for pair in self._pairs:
                    pair.take(found)


def _check(rows: JudgedRows) -> None:
    count = len(rows.labels)
    if not count:
        raise ValueError("there is no labelled row")
    if not np.isfinite(rows.labels).all():
        raise ValueError("a label is not a number: leave such rows out")
    lengths = {"datasets": len(rows.datasets), "models": len(rows.models), "questions": len(rows.questions)}
    lengths |= {f"scores of {metric}": len(scores) for metric, scores in rows.scores.items()}
    lengths |= {f"verdicts of {metric}": len(rows.verdicts[metric]) for metric in rows.scores}
    lengths |= {"groups": len(rows.groups)} if rows.groups else {}
    for name, length in lengths.items():
        if length != count:
            raise ValueError(f"there are {count} labels and {length} {name}")
