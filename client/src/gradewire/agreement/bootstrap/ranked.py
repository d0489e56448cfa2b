"""Statistics of ranks over many draws at once: Spearman, Kendall and AUC."""

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from gradewire.agreement.bootstrap import weighted
from gradewire.agreement.bootstrap.sample import Sample
from gradewire.agreement.optional_imports import scipy_stats
from gradewire.agreement.point_estimates import Statistic

RANK_STATISTICS: tuple[Statistic, ...] = ("spearman", "kendall", "auc")
# They rank every draw anew, many times the cost of a sum: their intervals come from fewer draws.
RANK_DRAWS = 1000
# Kendall's tau costs a pass for each distinct label; beyond this many, a plain loop over still fewer draws is used.
MAX_LABEL_LEVELS = 16
LOOPED_DRAWS = 200
# Numbers in work at a time: some arrays of this size stay in a core's cache.
CELLS_AT_A_TIME = 1 << 17


class RankedSample:
    """A sample with its orders worked out, once for all draws."""

    def __init__(self, sample: Sample, statistics: Collection[Statistic]) -> None:
        self._sample = sample
        self._scores = weighted.Ordering.of(sample.scores)
        self._labels = weighted.Ordering.of(sample.labels)
        self._wanted = [statistic for statistic in RANK_STATISTICS if statistic in statistics]
        if sample.positive is None and "auc" in self._wanted:
            self._wanted.remove("auc")
        self._looped = 0

    def resample(self, weights: NDArray[np.float64]) -> dict[Statistic, NDArray[np.float64]]:
        """Values of draws.

        Args:
            weights: float64[draws, questions], how often each question was drawn.

        Returns:
            float64[draws] of each wanted statistic; NaN where it is not defined. Kendall's tau ends after
            `LOOPED_DRAWS` draws in all where labels have many levels.
        """
        step = max(1, CELLS_AT_A_TIME // max(1, len(self._sample.scores)))
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
            values["spearman"] = weighted.spearman(drawn, self._scores, self._labels)
        if "kendall" in self._wanted:
            values["kendall"] = self._kendall(drawn)
        if "auc" in self._wanted and self._sample.positive is not None:
            values["auc"] = weighted.auc(drawn, self._scores, self._sample.positive)
        return values

    def _of_two_labels(self, drawn: NDArray[np.float64]) -> dict[Statistic, NDArray[np.float64]]:
        upper = self._labels.group == len(self._labels.starts) - 1
        found = weighted.two_labels(drawn, self._scores, upper)
        if self._sample.positive is not None and not np.array_equal(upper, self._sample.positive):
            # Two labels on the same side of 0.5: they can be ranked, but there is only one class.
            found["auc"] = np.full(len(drawn), np.nan)
        return {statistic: values for statistic, values in found.items() if statistic in self._wanted}

    def _kendall(self, drawn: NDArray[np.float64]) -> NDArray[np.float64]:
        if len(self._labels.starts) <= MAX_LABEL_LEVELS:
            return weighted.kendall(drawn, self._scores, self._labels)
        kendalltau = scipy_stats().kendalltau
        looped = []
        for weights in drawn[: LOOPED_DRAWS - self._looped]:
            times = weights.astype(np.intp)
            x, y = np.repeat(self._sample.scores, times), np.repeat(self._sample.labels, times)
            varied = len(x) > 1 and x.min() < x.max() and y.min() < y.max()
            looped.append(float(kendalltau(x, y).statistic) if varied else np.nan)
        self._looped += len(looped)
        return np.asarray(looped, dtype=np.float64)
