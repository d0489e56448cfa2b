"""Curves of one metric against labels: ROC, calibration, and how its scores are distributed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class RocCurve:
    """Points of a receiver operating characteristic, from (0, 0) to (1, 1).

    Attributes:
        false_positive_rate: float64[points], 0 to 1, ascending.
        true_positive_rate: float64[points], 0 to 1, ascending.
        thresholds: float64[points]: the score from which an answer counts as right; +inf at the first point.
        auc: Area under the full curve, before it was thinned.
        positives: Rows labelled right.
        negatives: Rows labelled wrong.
    """

    false_positive_rate: NDArray[np.float64]
    true_positive_rate: NDArray[np.float64]
    thresholds: NDArray[np.float64]
    auc: float
    positives: int
    negatives: int


@dataclass(frozen=True, slots=True)
class CalibrationBin:
    """Rows whose scores are next to each other.

    Attributes:
        mean_score: Mean of their scores.
        share_right: Mean of their labels, 0 to 1.
        rows: How many they are.
        low_score: Lowest score.
        high_score: Highest score.
    """

    mean_score: float
    share_right: float
    rows: int
    low_score: float
    high_score: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """How scores compare with the share of right answers among them.

    Attributes:
        bins: Of nearly equal numbers of rows, by ascending score; rows of equal score share a bin.
        ece: Expected calibration error: mean over the rows of |mean score - share right| of their bin; NaN where a
            score lies outside [0, 1] and so is no probability.
    """

    bins: Sequence[CalibrationBin]
    ece: float


@dataclass(frozen=True, slots=True)
class Distribution:
    """Histogram of scores by label.

    Attributes:
        edges: float64[bins + 1], common to all labels.
        counts: int64[bins] by label: "right" (1), "wrong" (0) and "between"; for labels outside [0, 1] "low" and
            "high", split at their median (the median itself is low).
        failed: Rows without a score.
    """

    edges: NDArray[np.float64]
    counts: Mapping[str, NDArray[np.int64]]
    failed: int


@dataclass(frozen=True, slots=True)
class MetricCurves:
    """All curves of one metric.

    Attributes:
        roc: None where labels lie outside [0, 1] or a class is missing.
        calibration: None where labels lie outside [0, 1] or there is no score.
        distribution: Histograms.
        brier: Mean squared distance of score and label, 0 to 1; NaN where either leaves [0, 1].
    """

    roc: RocCurve | None
    calibration: Calibration | None
    distribution: Distribution
    brier: float
