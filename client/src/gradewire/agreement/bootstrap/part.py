"""One part of the table: its samples, their point values, and their values in every draw."""

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gradewire.agreement.bootstrap.additive import (
    ADDITIVE_STATISTICS,
    OF_VERDICTS,
    additive_values,
    scale_of,
    sums_by_question,
)
from gradewire.agreement.bootstrap.ranked import RANK_STATISTICS, RankedSample
from gradewire.agreement.bootstrap.sample import Columns, Sample
from gradewire.agreement.parts import Part
from gradewire.agreement.point_estimates import ALL_STATISTICS, Statistic, auc, correlations
from gradewire.agreement.resample import free_clusters

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
