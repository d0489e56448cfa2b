"""Samples: one metric on the rows of one part, taken from a table with numbered questions; and its ranks in draws."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradewire_stats import scipy_stats
from gradewire_stats.agreement.rows import JudgedRows, Sample
from gradewire_stats.agreement.statistics import (
    RANK_STATISTICS,
    Ordering,
    Statistic,
    kendall,
    right,
    spearman,
    two_labels,
)

# Statistics of ranks sort every draw again, many times the cost of a sum: their intervals come from fewer draws.
RANK_DRAWS = 1000
# Kendall's tau costs a pass for each distinct label; beyond this many, a plain loop over still fewer draws is used.
MAX_LABEL_LEVELS = 16
LOOPED_DRAWS = 200
# Some arrays of this size stay in a core's cache.
NUMBERS_AT_A_TIME = 1 << 17


@dataclass(frozen=True, slots=True)
class NumberedRows:
    """A table with its questions numbered, once for all samples of it.

    Attributes:
        clusters: int[rows], question of each row.
        strata: int[questions], data set of each question.
    """

    rows: JudgedRows
    clusters: NDArray[np.intp]
    strata: NDArray[np.intp]

    def usable(self, part: NDArray[np.intp], *metrics: str) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which rows of a part all metrics scored, and which of these all judged: two bool[rows of the part].

        Args:
            part: int[rows of the part], positions in the table.
            *metrics: One at least.
        """
        scored = np.all([np.isfinite(self.rows.scores[metric][part]) for metric in metrics], axis=0)
        unjudged = np.any([np.isnan(self.rows.verdicts[metric][part]) for metric in metrics], axis=0)
        return scored, scored & ~unjudged

    def sample(
        self, metric: str, part: NDArray[np.intp], *, scored: NDArray[np.bool_], judged: NDArray[np.bool_]
    ) -> Sample:
        """One metric on the rows that are `scored` (as `usable` gives them), its clusters as in the table."""
        rows = self.rows
        kept = np.flatnonzero(scored)
        kept = kept[np.argsort(rows.scores[metric][part[kept]], kind="stable")]
        taken = part[kept]
        verdict_labels = rows.labels if rows.verdict_labels is None else rows.verdict_labels
        positive = right(verdict_labels)
        return Sample(
            scores=rows.scores[metric][taken],
            verdicts=np.where(judged[kept], rows.verdicts[metric][taken], np.nan),
            labels=rows.labels[taken],
            verdict_labels=verdict_labels[taken],
            positive=None if positive is None else positive[taken],
            clusters=self.clusters[taken],
            failed=len(part) - len(kept),
        )


class RankedSample:
    """A sample with its orders worked out, once for all draws."""

    def __init__(self, sample: Sample, statistics: Collection[Statistic]) -> None:
        self._sample = sample
        self._scores = Ordering.of(sample.scores)
        self._labels = Ordering.of(sample.labels)
        self._wanted = [statistic for statistic in RANK_STATISTICS if statistic in statistics]
        if sample.positive is None and "auc" in self._wanted:
            self._wanted.remove("auc")
        self._looped = 0

    def resample(self, weights: NDArray[np.float64]) -> dict[Statistic, NDArray[np.float64]]:
        """Return the values of statistics of ranks in draws.

        Args:
            weights: float64[draws, questions], how often each question was drawn.

        Returns:
            float64[draws] of each wanted statistic; NaN where it is not defined. Kendall's tau ends after
            `LOOPED_DRAWS` draws in all where labels have many levels.
        """
        step = max(1, NUMBERS_AT_A_TIME // max(1, len(self._sample.scores)))
        parts: dict[Statistic, list[NDArray[np.float64]]] = {statistic: [] for statistic in self._wanted}
        for start in range(0, len(weights), step):
            drawn = np.take(weights[start : start + step], self._sample.clusters, axis=1)
            for statistic, values in self._of_rows(drawn).items():
                parts[statistic].append(values)
        return {statistic: np.concatenate(values) for statistic, values in parts.items() if values}

    def _of_rows(self, drawn: NDArray[np.float64]) -> dict[Statistic, NDArray[np.float64]]:
        if len(self._labels.starts) <= 2 and self._wanted != ["auc"]:
            return self._of_two_labels(drawn)
        values: dict[Statistic, NDArray[np.float64]] = {}
        if "spearman" in self._wanted:
            values["spearman"] = spearman(drawn, self._scores, self._labels)
        if "kendall" in self._wanted:
            values["kendall"] = self._kendall(drawn)
        if "auc" in self._wanted and self._sample.positive is not None:
            values["auc"] = two_labels(drawn, self._scores, self._sample.positive)["auc"]
        return values

    def _of_two_labels(self, drawn: NDArray[np.float64]) -> dict[Statistic, NDArray[np.float64]]:
        upper = self._labels.group == len(self._labels.starts) - 1
        found = two_labels(drawn, self._scores, upper)
        if self._sample.positive is not None and not np.array_equal(upper, self._sample.positive):
            # Two labels on the same side of 0.5 can be ranked, but there is only one class; verdicts have their own.
            found["auc"] = two_labels(drawn, self._scores, self._sample.positive)["auc"]
        return {statistic: values for statistic, values in found.items() if statistic in self._wanted}

    def _kendall(self, drawn: NDArray[np.float64]) -> NDArray[np.float64]:
        if len(self._labels.starts) <= MAX_LABEL_LEVELS:
            return kendall(drawn, self._scores, self._labels)
        kendalltau = scipy_stats().kendalltau
        looped = []
        for weights in drawn[: LOOPED_DRAWS - self._looped]:
            times = weights.astype(np.intp)
            x, y = np.repeat(self._sample.scores, times), np.repeat(self._sample.labels, times)
            varied = len(x) > 1 and x.min() < x.max() and y.min() < y.max()
            looped.append(float(kendalltau(x, y).statistic) if varied else np.nan)
        self._looped += len(looped)
        return np.asarray(looped, dtype=np.float64)
