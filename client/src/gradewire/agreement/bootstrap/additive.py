"""Statistics that follow from sums over questions, so that a bootstrap of them is one product of matrices.

A draw takes questions with weights w; every sum over its rows is w times the sums of the single questions. Here are
these sums, and the statistics as functions of them.
"""

from collections.abc import Collection, Mapping

import numpy as np
from numpy.typing import NDArray

from gradewire.agreement.bootstrap.sample import Sample
from gradewire.agreement.bootstrap.weighted import correlation
from gradewire.agreement.bootstrap.within_questions import ordered_pairs
from gradewire.agreement.point_estimates import RIGHT_FROM, VERDICT_STATISTICS, Statistic

ADDITIVE_STATISTICS: tuple[Statistic, ...] = ("pearson", "pairwise", *VERDICT_STATISTICS, "human_rate")
OF_VERDICTS = {*VERDICT_STATISTICS, "human_rate"}


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
    if positive is not None and judged.any() and not OF_VERDICTS.isdisjoint(statistics):
        said = judged & (sample.verdicts >= RIGHT_FROM)
        sums |= {
            "judged": summed(judged.astype(np.float64)),
            "true_positive": summed((said & positive).astype(np.float64)),
            "false_positive": summed((said & ~positive).astype(np.float64)),
            "positive": summed((judged & positive).astype(np.float64)),
            "human": summed(np.where(judged, sample.labels, 0.0)),
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
    """Statistics of draws.

    Args:
        sums: float64[draws] by name, as `sums_by_question` names them.
        statistics: Which are wanted.

    Returns:
        float64[draws] of each that has sums; NaN where it is not defined in a draw.
    """
    values: dict[Statistic, NDArray[np.float64]] = {}
    with np.errstate(invalid="ignore", divide="ignore"):
        if "pearson" in statistics and "rows" in sums:
            values["pearson"] = correlation(*(sums[name] for name in ("rows", "x", "y", "xy", "xx", "yy")))
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
