"""A metric's ROC curve, calibration curve and score histograms, from scores and human labels."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradewire_stats.agreement.rows import RIGHT_FROM, right
from gradewire_stats.agreement.statistics import auc

MOST_ROC_POINTS = 200


@dataclass(frozen=True, slots=True)
class RocCurve:
    """Points of a receiver operating characteristic, from (0, 0) to (1, 1).

    Attributes:
        false_positive_rate: float64[points], 0 to 1, ascending.
        true_positive_rate: float64[points], 0 to 1, ascending.
        auc: Area under the full curve, before thinning.
    """

    false_positive_rate: NDArray[np.float64]
    true_positive_rate: NDArray[np.float64]
    auc: float
    positives: int
    negatives: int


@dataclass(frozen=True, slots=True)
class CalibrationBin:
    """A bin of rows with similar scores.

    Attributes:
        share_right: Mean label of the rows, 0 to 1.
    """

    mean_score: float
    share_right: float
    rows: int
    low_score: float
    high_score: float


@dataclass(frozen=True, slots=True)
class CalibrationCurve:
    """The share of right answers by score.

    Attributes:
        bins: Bins with nearly equal numbers of rows, by ascending score. Rows with equal scores are in the same bin.
        ece: Expected calibration error: mean of |mean score - share right| over the bins, weighted by rows. NaN if a
            score lies outside [0, 1], because scores are then not probabilities.
    """

    bins: Sequence[CalibrationBin]
    ece: float


@dataclass(frozen=True, slots=True)
class Distribution:
    """A histogram of scores for each class of labels.

    Attributes:
        edges: float64[bins + 1], the same for all classes.
        counts: int64[bins] by class: "right" (label 1), "wrong" (0) and "between". If labels lie outside [0, 1], the
            classes are "low" (up to the median label) and "high".
    """

    edges: NDArray[np.float64]
    counts: Mapping[str, NDArray[np.int64]]


@dataclass(frozen=True, slots=True)
class MetricCurves:
    """All curves of a metric.

    Attributes:
        roc: ROC curve, or None if labels lie outside [0, 1], or if there are no right or no wrong answers.
        calibration: Calibration curve, or None if labels lie outside [0, 1], or no row has a score.
        brier: Mean squared difference between score and label, 0 to 1, or NaN if scores or labels lie outside [0, 1].
    """

    roc: RocCurve | None
    calibration: CalibrationCurve | None
    distribution: Distribution
    brier: float


def metric_curves(
    scores: NDArray[np.float64],
    labels: NDArray[np.float64],
    *,
    bins: int = 10,
    histogram_bins: int = 40,
) -> MetricCurves:
    """Compute all curves of a metric.

    Args:
        scores: float64[rows]. NaN marks a failed row, which all curves ignore.
        labels: float64[rows], finite.
        bins: Maximum number of bins in the calibration curve.
        histogram_bins: Number of bins in the histograms.

    Raises:
        MissingScipyError: scipy is not installed.
        ValueError: The columns differ in length.
    """
    if len(scores) != len(labels):
        raise ValueError(f"{len(scores)} scores and {len(labels)} labels differ in number")
    scored = np.isfinite(scores)
    kept, beside = scores[scored], labels[scored]
    in_unit = right(labels) is not None
    probabilities = in_unit and len(kept) > 0 and kept.min() >= 0 and kept.max() <= 1
    return MetricCurves(
        roc=_roc(kept, beside >= RIGHT_FROM) if in_unit else None,
        calibration=_calibration(kept, beside, bins, probabilities=probabilities) if in_unit and len(kept) else None,
        distribution=_distribution(kept, beside, histogram_bins, in_unit=in_unit),
        brier=float(np.mean((kept - beside) ** 2)) if probabilities else math.nan,
    )


def _roc(scores: NDArray[np.float64], positive: NDArray[np.bool_]) -> RocCurve | None:
    if positive.all() or not positive.any():
        return None
    values, group = np.unique(scores, return_inverse=True)
    positives, negatives = int(positive.sum()), int((~positive).sum())
    hits = np.bincount(group, weights=positive, minlength=len(values))[::-1].cumsum() / positives
    alarms = np.bincount(group, weights=~positive, minlength=len(values))[::-1].cumsum() / negatives
    tpr, fpr = np.concatenate([[0.0], hits]), np.concatenate([[0.0], alarms])
    if len(tpr) > MOST_ROC_POINTS:
        along = tpr + fpr
        kept = np.unique(np.searchsorted(along, np.linspace(0, along[-1], MOST_ROC_POINTS - 1)).clip(0, len(along) - 1))
        kept = np.unique(np.concatenate([kept, [0, len(along) - 1]]))
        tpr, fpr = tpr[kept], fpr[kept]
    return RocCurve(fpr, tpr, auc(scores, positive), positives, negatives)


def _calibration(
    scores: NDArray[np.float64], labels: NDArray[np.float64], bins: int, *, probabilities: bool
) -> CalibrationCurve:
    values, group, counts = np.unique(scores, return_inverse=True, return_counts=True)
    # Rows with equal scores are a group. The position of the group's middle decides its bin.
    middle = np.cumsum(counts) - counts / 2
    bin_of_group = np.minimum((middle * bins / len(scores)).astype(np.intp), bins - 1)
    # Drop empty bins, which occur next to a large group.
    number = np.unique(bin_of_group, return_inverse=True)[1]
    rows = np.bincount(number[group])
    mean_score = np.bincount(number[group], weights=scores) / rows
    share_right = np.bincount(number[group], weights=labels) / rows
    first = np.searchsorted(number, np.arange(len(rows)))
    last = np.searchsorted(number, np.arange(len(rows)), side="right") - 1
    found = [
        CalibrationBin(float(mean_score[at]), float(share_right[at]), int(rows[at]), float(low), float(high))
        for at, (low, high) in enumerate(zip(values[first], values[last], strict=True))
    ]
    error = float(rows @ np.abs(mean_score - share_right) / len(scores)) if probabilities else math.nan
    return CalibrationCurve(found, error)


def _distribution(
    scores: NDArray[np.float64], labels: NDArray[np.float64], bins: int, *, in_unit: bool
) -> Distribution:
    low, high = (float(scores.min()), float(scores.max())) if len(scores) else (0.0, 1.0)
    if low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    elif low == high:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, bins + 1)
    place = np.clip(np.searchsorted(edges, scores, side="right") - 1, 0, bins - 1)
    if in_unit:
        masks = {"right": labels == 1, "wrong": labels == 0, "between": (labels > 0) & (labels < 1)}
        if not masks["between"].any():
            del masks["between"]
    else:
        middle = float(np.median(labels)) if len(labels) else 0.0
        masks = {"low": labels <= middle, "high": labels > middle}
    counts = {name: np.bincount(place[mask], minlength=bins).astype(np.int64) for name, mask in masks.items()}
    return Distribution(edges, counts)
