"""Agreement statistics: names, point values, and values from sums over questions."""

import math
import warnings
from collections.abc import Collection, Mapping
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from gradewire_stats import scipy_stats
from gradewire_stats.agreement.rows import RIGHT_FROM, Sample

VerdictStatistic = Literal["accuracy", "kappa", "f1", "macro_f1", "precision", "recall", "positive_rate", "deviation"]
Statistic = Literal["pearson", "spearman", "kendall", "auc", "pairwise", "human_rate"] | VerdictStatistic
VERDICT_STATISTICS: tuple[Statistic, ...] = get_args(VerdictStatistic)
ALL_STATISTICS: tuple[Statistic, ...] = ("pearson", "spearman", "kendall", "auc", "pairwise", *VERDICT_STATISTICS)
RANK_STATISTICS: tuple[Statistic, ...] = ("spearman", "kendall", "auc")
ADDITIVE_STATISTICS: tuple[Statistic, ...] = ("pearson", "pairwise", *VERDICT_STATISTICS, "human_rate")
JUDGED_STATISTICS = {*VERDICT_STATISTICS, "human_rate"}
"""Statistics that use only rows with a verdict."""


def auc(scores: NDArray[np.float64], positive: NDArray[np.bool_]) -> float:
    """Return the area under the ROC curve.

    This is the share of (right, wrong) pairs in which the right row has the higher score. Ties count half.

    Args:
        scores: float64[rows] without NaN.
        positive: bool[rows].

    Returns:
        0 to 1, or NaN if one of the two classes is missing.
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
    """Return the correlations in `statistics`: Pearson, Spearman, and Kendall's tau-b.

    Args:
        scores: float64[rows] without NaN.
        labels: float64[rows] without NaN.
        statistics: Wanted statistics. Names that are not correlations are ignored.

    Returns:
        The correlations by name, NaN if the scores or the labels are constant, or if there are fewer than two rows.

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
        # scipy warns about nearly constant input, although the value is as exact as float64 allows.
        warnings.simplefilter("ignore")
        for name, function in functions.items():
            if name in statistics:
                values[name] = float(function(scores, labels).statistic) if varied else math.nan
    return values


def pearson_of_sums(  # noqa: PLR0913, PLR0917 - the six sums of the formula
    total: NDArray[np.float64],
    sum_x: NDArray[np.float64],
    sum_y: NDArray[np.float64],
    sum_xy: NDArray[np.float64],
    sum_xx: NDArray[np.float64],
    sum_yy: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return Pearson's r, computed from sums over rows: float64[resamples], with NaN where x or y is constant."""
    with np.errstate(invalid="ignore", divide="ignore"):
        spread_x = sum_xx - sum_x * sum_x / total
        spread_y = sum_yy - sum_y * sum_y / total
        # Rounding can leave a small spread on a constant side. Treat such a spread as 0.
        defined = (spread_x > 1e-12 * sum_xx) & (spread_y > 1e-12 * sum_yy)
        covariance = sum_xy - sum_x * sum_y / total
        return np.asarray(np.where(defined, covariance / np.sqrt(spread_x * spread_y), np.nan))


# Questions with at most this number of answers are counted together, pair by pair. Questions with more answers are
# sorted one at a time, because the number of pairs grows with the square of the answers.
COMPARED_EACH = 32


def ordered_pairs(
    scores: NDArray[np.float64], labels: NDArray[np.float64], clusters: NDArray[np.intp], *, count: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Count pairs of rows with the same question and different labels.

    Args:
        scores: float64[rows], finite.
        labels: float64[rows], finite.
        clusters: int[rows], each row's question, from 0.
        count: Number of questions.

    Returns:
        Two arrays, float64[questions]: the number of pairs that scores and labels order the same way (tied scores count
        half), and the number of all pairs.
    """
    in_order, pairs = np.zeros(count), np.zeros(count)
    order = np.argsort(clusters, kind="stable")
    sizes = np.bincount(clusters, minlength=count)
    small = sizes[clusters[order]] <= COMPARED_EACH
    few = order[small]
    _compare_each(scores[few], labels[few], clusters[few], in_order=in_order, pairs=pairs)
    for cluster in np.flatnonzero(sizes > COMPARED_EACH):
        start = np.searchsorted(clusters[order], cluster)
        here = order[start : start + sizes[cluster]]
        in_order[cluster], pairs[cluster] = _count_by_sorting(scores[here], labels[here])
    return in_order, pairs


def _compare_each(
    scores: NDArray[np.float64],
    labels: NDArray[np.float64],
    clusters: NDArray[np.intp],
    *,
    in_order: NDArray[np.float64],
    pairs: NDArray[np.float64],
) -> None:
    """Add each question's counts to `in_order` and `pairs`. Rows with the same question must be adjacent."""
    for apart in range(1, COMPARED_EACH):
        same = np.flatnonzero(clusters[apart:] == clusters[:-apart])
        if not len(same):
            return
        by_label = np.sign(labels[same + apart] - labels[same])
        by_score = np.sign(scores[same + apart] - scores[same])
        differ = by_label != 0
        ordered = np.where(by_score == 0, 0.5, by_score == by_label)[differ]
        question = clusters[same][differ]
        in_order += np.bincount(question, weights=ordered, minlength=len(in_order))
        pairs += np.bincount(question, minlength=len(pairs))


def _count_by_sorting(scores: NDArray[np.float64], labels: NDArray[np.float64]) -> tuple[float, float]:
    total = len(scores) * (len(scores) - 1) / 2
    different_labels = total - _tied_pairs(labels)
    different_scores = total - _tied_pairs(scores)
    if not different_labels or not different_scores:
        return different_labels / 2, different_labels
    # tau-b is (concordant - discordant) / sqrt(different labels * different scores), counted in pairs, so the numerator
    # is a whole number.
    tau = float(scipy_stats().kendalltau(scores, labels).statistic)
    surplus = round(tau * float(np.sqrt(different_labels * different_scores)))
    return (different_labels + surplus) / 2, different_labels


def _tied_pairs(values: NDArray[np.float64]) -> float:
    counts = np.unique(values, return_counts=True)[1].astype(np.float64)
    return float((counts * (counts - 1) / 2).sum())


def sums_by_question(
    sample: Sample, statistics: Collection[Statistic], *, label_scale: tuple[float, float], count: int
) -> dict[str, NDArray[np.float64]]:
    """Return the sums by question that `additive_values` needs.

    Args:
        sample: Rows with `clusters` from 0 to `count` - 1.
        statistics: Wanted statistics. Without verdicts, or with labels outside [0, 1], verdict statistics have no sums.
        label_scale: Middle and half width of the labels. All samples of a part need the same scale to share sums.
        count: Number of questions.

    Returns:
        float64[count] by name.
    """

    def summed(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.bincount(sample.clusters, weights=values, minlength=count), dtype=np.float64)

    sums: dict[str, NDArray[np.float64]] = {}
    if "pearson" in statistics and len(sample.scores):
        # Centre and scale first, because sums of squares lose digits if the spread is small compared with the mean.
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
    """Return the middle and half width of the values' range. The half width is 1 if all values are equal."""
    if not len(values):
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    half = high / 2 - low / 2
    return low / 2 + high / 2, half or 1.0


def standard(values: NDArray[np.float64], middle: float, half: float) -> NDArray[np.float64]:
    """Centre and scale the values. With the scale from `scale_of(values)`, the result ranges from -1 to 1."""
    return values / half - middle / half if half > 1 else (values - middle) / half


def additive_values(
    sums: Mapping[str, NDArray[np.float64]], statistics: Collection[Statistic]
) -> dict[Statistic, NDArray[np.float64]]:
    """Compute each draw's statistics from sums over rows.

    Args:
        sums: float64[draws] by name: the sums by question from `sums_by_question`, added up over each draw.
        statistics: Wanted statistics.

    Returns:
        float64[draws] for each statistic with sums, NaN in draws in which the statistic is undefined.
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
    # Use counts instead of shares, because whole numbers show exactly whether disagreement is possible.
    square, by_chance = judged * judged, said * positive + (judged - said) * (judged - positive)
    kappa = (judged * (true_positive + true_negative) - by_chance) / (square - by_chance)
    return {
        "accuracy": (true_positive + true_negative) / judged,
        "kappa": np.where(square > by_chance, kappa, np.nan),
        "f1": f1,
        "macro_f1": (f1 + f1_of_wrong) / 2,
        "precision": true_positive / said,
        "recall": true_positive / positive,
        "positive_rate": said / judged,
        "human_rate": human / judged,
        "deviation": (said - human) / judged,
    }
