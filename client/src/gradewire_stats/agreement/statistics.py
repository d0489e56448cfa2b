"""Statistics of scores beside labels: of rows as they are, by scipy, and of weighted rows, for many draws at once."""

import math
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from gradewire_stats import scipy_stats
from gradewire_stats.agreement.rows import Sample

VerdictStatistic = Literal["accuracy", "f1", "macro_f1", "precision", "recall", "positive_rate", "deviation"]
Statistic = Literal["pearson", "spearman", "kendall", "auc", "pairwise", "human_rate"] | VerdictStatistic
VERDICT_STATISTICS: tuple[Statistic, ...] = get_args(VerdictStatistic)
ALL_STATISTICS: tuple[Statistic, ...] = ("pearson", "spearman", "kendall", "auc", "pairwise", *VERDICT_STATISTICS)
RANK_STATISTICS: tuple[Statistic, ...] = ("spearman", "kendall", "auc")
ADDITIVE_STATISTICS: tuple[Statistic, ...] = ("pearson", "pairwise", *VERDICT_STATISTICS, "human_rate")
JUDGED_STATISTICS = {*VERDICT_STATISTICS, "human_rate"}
"""Statistics of rows with a verdict."""
RIGHT_FROM = 0.5


def right(labels: NDArray[np.float64]) -> NDArray[np.bool_] | None:
    """Labels as right or wrong.

    Args:
        labels: float64[rows], human labels without NaN.

    Returns:
        True from 0.5 upward; None where a label lies outside [0, 1], because then nobody said what counts as right.
    """
    if labels.size and (labels.min() < 0.0 or labels.max() > 1.0):
        return None
    return labels >= RIGHT_FROM


def auc(scores: NDArray[np.float64], positive: NDArray[np.bool_]) -> float:
    """Area under the ROC curve: the share of (right, wrong) pairs that the scores order rightly, ties counted half.

    Args:
        scores: float64[rows] without NaN.
        positive: bool[rows].

    Returns:
        0 to 1; NaN where one of the two classes is missing.
    """
    positives = int(positive.sum())
    negatives = len(positive) - positives
    if not positives or not negatives:
        return math.nan
    rank_sum = float(scipy_stats().rankdata(scores)[positive].sum())
    return (rank_sum - positives * (positives + 1) / 2) / (positives * negatives)


def correlations(
    scores: NDArray[np.float64], labels: NDArray[np.float64], statistics: Collection[Statistic]
) -> dict[Statistic, float]:
    """Pearson, Spearman and Kendall's tau-b, those of them that `statistics` names.

    Args:
        scores: float64[rows] without NaN.
        labels: float64[rows] without NaN.
        statistics: Which are wanted; others are passed over.

    Returns:
        NaN where a side is constant or there are fewer than two rows.

    Raises:
        MissingScipyError: scipy is not installed.
    """
    stats = scipy_stats()
    functions: dict[Statistic, Any] = {
        "pearson": stats.pearsonr,
        "spearman": stats.spearmanr,
        "kendall": stats.kendalltau,
    }
    varied = len(scores) > 1 and scores.min() < scores.max() and labels.min() < labels.max()
    values: dict[Statistic, float] = {}
    with warnings.catch_warnings():
        # Nearly constant input only warns; the value is then as good as float64 allows.
        warnings.simplefilter("ignore")
        for name, function in functions.items():
            if name in statistics:
                values[name] = float(function(scores, labels).statistic) if varied else math.nan
    return values


@dataclass(frozen=True, slots=True)
class Ordering:
    """Rows by ascending value, equal values in one group; worked out once for all resamples.

    Attributes:
        order: int[rows], positions of the rows by ascending value; None where the rows stand so already.
        starts: int[groups], where each group of equal values starts in `order`.
        group: int[rows], group of each row.
    """

    order: NDArray[np.intp] | None
    starts: NDArray[np.intp]
    group: NDArray[np.intp]

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> Self:
        """Orders `values`, float64[rows] without NaN, at least one row."""
        order = np.argsort(values, kind="stable")
        ascending = values[order]
        first = np.ones(len(values), dtype=bool)
        first[1:] = ascending[1:] != ascending[:-1]
        group = np.empty(len(values), dtype=np.intp)
        group[order] = np.cumsum(first) - 1
        in_place = bool((order[1:] > order[:-1]).all())
        return cls(None if in_place else order, np.flatnonzero(first), group)

    def totals(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Weight of every group, float64[resamples, groups]."""
        ascending = weights if self.order is None else weights[:, self.order]
        if len(self.starts) == len(self.group):
            return ascending
        summed: NDArray[np.float64] = np.add.reduceat(ascending, self.starts, axis=1)
        return summed

    def midranks(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Mean rank of every row within its resample, from 1, float64[resamples, rows]."""
        totals = self.totals(weights)
        ranks = np.cumsum(totals, axis=1) - (totals - 1) / 2
        return ranks[:, self.group]


def pearson_of_sums(  # noqa: PLR0913, PLR0917 - the six sums of the formula
    total: NDArray[np.float64],
    sum_x: NDArray[np.float64],
    sum_y: NDArray[np.float64],
    sum_xy: NDArray[np.float64],
    sum_xx: NDArray[np.float64],
    sum_yy: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Pearson's r from sums over rows, each float64[resamples]; NaN where a side is constant."""
    with np.errstate(invalid="ignore", divide="ignore"):
        spread_x = sum_xx - sum_x * sum_x / total
        spread_y = sum_yy - sum_y * sum_y / total
        # What rounding leaves of a constant side is not a spread.
        defined = (spread_x > 1e-12 * sum_xx) & (spread_y > 1e-12 * sum_yy)
        covariance = sum_xy - sum_x * sum_y / total
        return np.asarray(np.where(defined, covariance / np.sqrt(spread_x * spread_y), np.nan))


def spearman(weights: NDArray[np.float64], x: Ordering, y: Ordering) -> NDArray[np.float64]:
    """Spearman's rho of every resample, float64[resamples]; NaN where a side is constant."""
    rank_x, rank_y = x.midranks(weights), y.midranks(weights)
    total = weights.sum(axis=1)
    # The mean rank is known beforehand, so both sides are centred at no cost.
    middle = (total[:, None] + 1) / 2
    dx, dy = rank_x - middle, rank_y - middle
    weighted_x, weighted_y = weights * dx, weights * dy
    nothing = np.zeros_like(total)
    sums = [product.sum(axis=1) for product in (weighted_x * dy, weighted_x * dx, weighted_y * dy)]
    return pearson_of_sums(total, nothing, nothing, *sums)


def kendall(weights: NDArray[np.float64], x: Ordering, y: Ordering) -> NDArray[np.float64]:
    """Kendall's tau-b of every resample.

    Costs one pass for each distinct value of `y`: meant for labels of a few levels.

    Args:
        weights: float64[resamples, rows], whole numbers.
        x: Order of the scores.
        y: Order of the labels.

    Returns:
        float64[resamples]; NaN where a side is constant in the resample.
    """
    lower = np.zeros((len(weights), len(x.starts)))
    surplus = np.zeros(len(weights))
    for level in range(len(y.starts)):
        here = x.totals(weights * (y.group == level))
        cumulative = np.cumsum(lower, axis=1)
        # Pairs with a lower label: concordant where the score is lower too, discordant where it is higher.
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
    """All statistics of ranks at the price of one, for labels of two levels.

    With U (upper, lower) pairs of which S are in order (ties half): AUC = S / U; concordant minus discordant pairs are
    2S - U; and the ranks of the upper rows sum to S - U / 2 above their expectation.

    Args:
        weights: float64[resamples, rows], whole numbers.
        x: Order of the scores.
        upper: bool[rows], rows with the higher label.

    Returns:
        float64[resamples] of each; NaN where a side is constant in the resample, for AUC only if that is the labels.
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
    # Twelve times the spread of the midranks.
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


# Up to this many answers to a question are compared each with each, for all questions at once; more of them are counted
# by sorting, question by question, because the number of pairs grows with the square.
COMPARED_EACH = 32


def ordered_pairs(
    scores: NDArray[np.float64], labels: NDArray[np.float64], clusters: NDArray[np.intp], *, count: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Counts pairs of rows of one question with different labels.

    Args:
        scores: float64[rows], finite.
        labels: float64[rows], finite.
        clusters: int[rows], question of each row, from 0.
        count: Number of questions.

    Returns:
        Two float64[questions]: pairs that the scores order as the labels do, ties of scores counted half, and all
        pairs.
    """
    right, pairs = np.zeros(count), np.zeros(count)
    order = np.argsort(clusters, kind="stable")
    sizes = np.bincount(clusters, minlength=count)
    small = sizes[clusters[order]] <= COMPARED_EACH
    few = order[small]
    _compare_each(scores[few], labels[few], clusters[few], right=right, pairs=pairs)
    for cluster in np.flatnonzero(sizes > COMPARED_EACH):
        start = np.searchsorted(clusters[order], cluster)
        here = order[start : start + sizes[cluster]]
        right[cluster], pairs[cluster] = _count_by_sorting(scores[here], labels[here])
    return right, pairs


def _compare_each(
    scores: NDArray[np.float64],
    labels: NDArray[np.float64],
    clusters: NDArray[np.intp],
    *,
    right: NDArray[np.float64],
    pairs: NDArray[np.float64],
) -> None:
    """Adds to `right` and `pairs`; rows of a question stand beside each other."""
    for apart in range(1, COMPARED_EACH):
        same = np.flatnonzero(clusters[apart:] == clusters[:-apart])
        if not len(same):
            return
        by_label = np.sign(labels[same + apart] - labels[same])
        by_score = np.sign(scores[same + apart] - scores[same])
        differ = by_label != 0
        ordered = np.where(by_score == 0, 0.5, by_score == by_label)[differ]
        question = clusters[same][differ]
        right += np.bincount(question, weights=ordered, minlength=len(right))
        pairs += np.bincount(question, minlength=len(pairs))


def _count_by_sorting(scores: NDArray[np.float64], labels: NDArray[np.float64]) -> tuple[float, float]:
    total = len(scores) * (len(scores) - 1) / 2
    different_labels = total - _tied_pairs(labels)
    different_scores = total - _tied_pairs(scores)
    if not different_labels or not different_scores:
        return different_labels / 2, different_labels
    # tau-b is (concordant - discordant) over the root of both counts; the numerator is a whole number.
    tau = float(scipy_stats().kendalltau(scores, labels).statistic)
    surplus = round(tau * float(np.sqrt(different_labels * different_scores)))
    return (different_labels + surplus) / 2, different_labels


def _tied_pairs(values: NDArray[np.float64]) -> float:
    counts = np.unique(values, return_counts=True)[1].astype(np.float64)
    return float((counts * (counts - 1) / 2).sum())


def sums_by_question(
    sample: Sample, statistics: Collection[Statistic], *, label_scale: tuple[float, float], count: int
) -> dict[str, NDArray[np.float64]]:
    """Sums that the statistics are made of.

    Args:
        sample: Rows whose `clusters` count from 0 to `count` - 1.
        statistics: Which are wanted; those of verdicts give no sums where there is no verdict or labels leave [0, 1].
        label_scale: Middle and width of the labels: the same for all samples of a part, so that their sums are too.
        count: Number of questions.

    Returns:
        float64[count] by name.
    """

    def summed(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.bincount(sample.clusters, weights=values, minlength=count), dtype=np.float64)

    sums: dict[str, NDArray[np.float64]] = {}
    if "pearson" in statistics and len(sample.scores):
        # Centred and scaled first: sums of squares lose digits where the spread is small beside the mean.
        dx = standard(sample.scores, *scale_of(sample.scores))
        dy = standard(sample.labels, *label_scale)
        sums |= {"rows": summed(np.ones_like(dx)), "x": summed(dx), "y": summed(dy)}
        sums |= {"xy": summed(dx * dy), "xx": summed(dx * dx), "yy": summed(dy * dy)}
    if "pairwise" in statistics:
        ordered, pairs = ordered_pairs(sample.scores, sample.labels, sample.clusters, count=count)
        sums |= {"ordered": ordered, "pairs": pairs}
    positive, judged = sample.positive, ~np.isnan(sample.verdicts)
    if positive is not None and judged.any() and not JUDGED_STATISTICS.isdisjoint(statistics):
        said = judged & (sample.verdicts >= RIGHT_FROM)
        sums |= {
            "judged": summed(judged.astype(np.float64)),
            "true_positive": summed((said & positive).astype(np.float64)),
            "false_positive": summed((said & ~positive).astype(np.float64)),
            "positive": summed((judged & positive).astype(np.float64)),
            "human": summed(np.where(judged, sample.verdict_labels, 0.0)),
        }
    return sums


def scale_of(values: NDArray[np.float64]) -> tuple[float, float]:
    """Middle and half width of values, computed so that no finite value overflows; width 1 where all are alike."""
    if not len(values):
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    half = high / 2 - low / 2
    return low / 2 + high / 2, half or 1.0


def standard(values: NDArray[np.float64], middle: float, half: float) -> NDArray[np.float64]:
    """Values between -1 and 1 (for those the scale was taken from)."""
    return values / half - middle / half if half > 1 else (values - middle) / half


def additive_values(
    sums: Mapping[str, NDArray[np.float64]], statistics: Collection[Statistic]
) -> dict[Statistic, NDArray[np.float64]]:
    """Return the statistics that follow from sums over rows, in draws.

    Args:
        sums: float64[draws] by name, as `sums_by_question` names them.
        statistics: Which are wanted.

    Returns:
        float64[draws] of each that has sums; NaN where it is not defined in a draw.
    """
    values: dict[Statistic, NDArray[np.float64]] = {}
    with np.errstate(invalid="ignore", divide="ignore"):
        if "pearson" in statistics and "rows" in sums:
            values["pearson"] = pearson_of_sums(*(sums[name] for name in ("rows", "x", "y", "xy", "xx", "yy")))
        if "pairwise" in statistics and "pairs" in sums:
            values["pairwise"] = np.where(sums["pairs"] > 0, sums["ordered"] / sums["pairs"], np.nan)
        if "judged" in sums:
            verdicts = _of_verdicts(sums)
            values |= {statistic: found for statistic, found in verdicts.items() if statistic in statistics}
    return values


def _of_verdicts(sums: Mapping[str, NDArray[np.float64]]) -> dict[Statistic, NDArray[np.float64]]:
    judged, positive, human = sums["judged"], sums["positive"], sums["human"]
    true_positive, false_positive = sums["true_positive"], sums["false_positive"]
    said = true_positive + false_positive
    false_negative = positive - true_positive
    true_negative = judged - said - false_negative
    f1 = 2 * true_positive / (said + positive)
    f1_of_wrong = 2 * true_negative / (2 * true_negative + false_negative + false_positive)
    return {
        "accuracy": (true_positive + true_negative) / judged,
        "f1": f1,
        "macro_f1": (f1 + f1_of_wrong) / 2,
        "precision": true_positive / said,
        "recall": true_positive / positive,
        "positive_rate": said / judged,
        "human_rate": human / judged,
        "deviation": (said - human) / judged,
    }
