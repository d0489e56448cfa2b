"""Rank statistics for many draws at once: Spearman's rho, Kendall's tau and AUC."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from gradewire_stats import scipy_stats
from gradewire_stats.agreement.rows import Sample
from gradewire_stats.agreement.statistics import RANK_STATISTICS, Statistic, pearson_of_sums

# Maximum number of draws for rank statistics, which sort every draw and so cost many times more than sums.
RANK_DRAWS = 1000
# Maximum number of distinct labels for which Kendall's tau is computed with a pass for each label. With more labels,
# scipy computes each draw, so the maximum number of draws is even lower.
MAX_LABEL_LEVELS = 16
LOOPED_DRAWS = 200
# Number of array elements to process at a time, so that a few arrays fit into a core's cache.
NUMBERS_AT_A_TIME = 1 << 17


@dataclass(frozen=True, slots=True)
class Ordering:
    """The order of rows by value, computed once for all draws. Rows with equal values form a group.

    Attributes:
        order: int[rows], row positions by ascending value, or None if the rows are already ascending.
        starts: int[groups], start of each group of equal values in `order`.
        group: int[rows], each row's group.
    """

    order: NDArray[np.intp] | None
    starts: NDArray[np.intp]
    group: NDArray[np.intp]

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> Self:
        """Order the values, float64[rows], which must not be empty or contain NaN."""
        order = np.argsort(values, kind="stable")
        ascending = values[order]
        first = np.ones(len(values), dtype=bool)
        first[1:] = ascending[1:] != ascending[:-1]
        group = np.empty(len(values), dtype=np.intp)
        group[order] = np.cumsum(first) - 1
        in_place = bool((order[1:] > order[:-1]).all())
        return cls(None if in_place else order, np.flatnonzero(first), group)

    def totals(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return every group's total weight, float64[resamples, groups]."""
        ascending = weights if self.order is None else weights[:, self.order]
        if len(self.starts) == len(self.group):
            return ascending
        summed: NDArray[np.float64] = np.add.reduceat(ascending, self.starts, axis=1)
        return summed

    def midranks(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return float64[resamples, rows], every row's midrank within each resample. Ranks start at 1."""
        totals = self.totals(weights)
        ranks = np.cumsum(totals, axis=1) - (totals - 1) / 2
        return ranks[:, self.group]


def spearman(weights: NDArray[np.float64], x: Ordering, y: Ordering) -> NDArray[np.float64]:
    """Return Spearman's rho in every resample, float64[resamples], NaN if a side is constant."""
    rank_x, rank_y = x.midranks(weights), y.midranks(weights)
    total = weights.sum(axis=1)
    # The mean rank is known without computing it, so centring both sides costs nothing.
    middle = (total[:, None] + 1) / 2
    dx, dy = rank_x - middle, rank_y - middle
    weighted_x, weighted_y = weights * dx, weights * dy
    nothing = np.zeros_like(total)
    sums = [product.sum(axis=1) for product in (weighted_x * dy, weighted_x * dx, weighted_y * dy)]
    return pearson_of_sums(total, nothing, nothing, *sums)


def kendall(weights: NDArray[np.float64], x: Ordering, y: Ordering) -> NDArray[np.float64]:
    """Return Kendall's tau-b in every resample, with one pass for each distinct value in `y`.

    Args:
        weights: float64[resamples, rows], whole numbers.
        x: Order of the scores.
        y: Order of the labels.

    Returns:
        float64[resamples], NaN if all scores or all labels are equal in the resample.
    """
    lower = np.zeros((len(weights), len(x.starts)))
    surplus = np.zeros(len(weights))
    for level in range(len(y.starts)):
        here = x.totals(weights * (y.group == level))
        cumulative = np.cumsum(lower, axis=1)
        # Pair each row with all rows that have a lower label. A pair is concordant if the score is lower too, and
        # discordant if the score is higher.
        surplus += (here * (2 * cumulative - lower - cumulative[:, -1:])).sum(axis=1)
        lower += here
    total = weights.sum(axis=1)
    pairs = total * (total - 1) / 2
    tied_x = _tied_weights(x.totals(weights))
    tied_y = _tied_weights(y.totals(weights))
    scale = (pairs - tied_x) * (pairs - tied_y)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(scale > 0, surplus / np.sqrt(scale), np.nan)


def _tied_weights(totals: NDArray[np.float64]) -> NDArray[np.float64]:
    tied: NDArray[np.float64] = (totals * (totals - 1) / 2).sum(axis=1)
    return tied


def two_labels(
    weights: NDArray[np.float64], x: Ordering, upper: NDArray[np.bool_]
) -> dict[Statistic, NDArray[np.float64]]:
    """Return all rank statistics for two distinct labels, at the cost of one statistic.

    There are U pairs of a row with the upper label and a row with the lower label. S pairs are in order, with ties
    counted half. Then AUC = S / U, concordant minus discordant pairs are 2S - U, and the rank sum of the upper rows
    exceeds its expectation by S - U / 2.

    Args:
        weights: float64[resamples, rows], whole numbers.
        x: Order of the scores.
        upper: bool[rows], rows with the higher label.

    Returns:
        float64[resamples] for each statistic, NaN if the labels or (except for AUC) the scores are constant.
    """
    groups = x.totals(weights)
    high = x.totals(weights * upper)
    low = groups - high
    below = np.cumsum(low, axis=1)
    lows = below[:, -1].copy()
    below -= low / 2
    in_order = np.einsum("ij,ij->i", high, below)
    total = groups.sum(axis=1)
    highs = total - lows
    pairs = highs * lows
    squares = np.einsum("ij,ij->i", groups, groups)
    cubes = np.einsum("ij,ij,ij->i", groups, groups, groups)
    untied_scores = (total * total - squares) / 2
    # Twelve times the sum of squared deviations of the midranks.
    rank_spread = total**3 - cubes
    with np.errstate(invalid="ignore", divide="ignore"):
        return {
            "spearman": np.where(
                (untied_scores > 0) & (pairs > 0),
                (in_order - pairs / 2) / np.sqrt(rank_spread / 12 * (pairs / total)),
                np.nan,
            ),
            "kendall": np.where(
                (untied_scores > 0) & (pairs > 0), (2 * in_order - pairs) / np.sqrt(untied_scores * pairs), np.nan
            ),
            "auc": np.where(pairs > 0, in_order / pairs, np.nan),
        }


class RankedSample:
    """A sample with the order of its scores and labels, computed once for all draws."""

    def __init__(self, sample: Sample, statistics: Collection[Statistic]) -> None:
        self._sample = sample
        self._scores = Ordering.of(sample.scores)
        self._labels = Ordering.of(sample.labels)
        self._wanted = [statistic for statistic in RANK_STATISTICS if statistic in statistics]
        if sample.positive is None and "auc" in self._wanted:
            self._wanted.remove("auc")
        self._looped = 0

    def resample(self, weights: NDArray[np.float64]) -> dict[Statistic, NDArray[np.float64]]:
        """Return the rank statistics in a chunk of draws.

        Args:
            weights: float64[draws, questions], number of times each question was drawn.

        Returns:
            float64[draws] for each wanted statistic, NaN if undefined. With many distinct labels, Kendall's tau stops
            after `LOOPED_DRAWS` draws in total.
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
            # Two labels on the same side of 0.5 can be ranked, but are a single class. AUC needs two classes.
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
