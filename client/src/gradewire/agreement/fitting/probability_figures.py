"""What a probability is worth: calibration error, Brier score, and risk at coverage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

BINS: Final = 15
COVERAGES: Final = (1.0, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5)


def calibration_error(probabilities: NDArray[np.float64], right: NDArray[np.bool_], *, bins: int = BINS) -> float:
    """Expected calibration error over bins of equal mass, 0 to 1.

    Rows are sorted by probability and cut into `bins` of equal size (the first ones hold one row more where they do
    not come out even); the mean of |mean probability - share of right rows|, weighed by rows. Source: Nixon et al.
    2019, *Measuring Calibration in Deep Learning*.

    Args:
        probabilities: float64[rows], at least one.
        right: bool[rows].
        bins: At least 1.
    """
    order = np.argsort(probabilities, kind="stable")
    gaps = [
        len(rows) * abs(float(probabilities[rows].mean()) - float(right[rows].mean()))
        for rows in np.array_split(order, min(bins, len(order)))
    ]
    return sum(gaps) / len(order)


def brier_score(probabilities: NDArray[np.float64], right: NDArray[np.bool_]) -> float:
    """Mean squared difference of probability and outcome, 0 to 1. Source: Brier 1950."""
    return float(np.mean((probabilities - right) ** 2))


@dataclass(frozen=True, slots=True)
class Risk:
    """A point of a risk-coverage curve.

    Attributes:
        coverage: Share of rows with a verdict, those of the highest confidence.
        accuracy: Share of right verdicts among them.
        confidence: max(p, 1 - p) of the last one of them.
    """

    coverage: float
    accuracy: float
    confidence: float


def risk_coverage(
    probabilities: NDArray[np.float64], right: NDArray[np.bool_], coverages: Sequence[float] = COVERAGES
) -> list[Risk]:
    """Accuracy of the verdicts (right from 0.5) where the least certain rows are left out, at each coverage in (0, 1].

    Of equal confidences the first rows are kept. Source: El-Yaniv and Wiener 2010, *On the Foundations of Noise-free
    Selective Classification*.
    """
    confidence = np.maximum(probabilities, 1 - probabilities)
    order = np.argsort(-confidence, kind="stable")
    hits = np.cumsum(((probabilities >= 0.5) == right)[order])
    points = []
    for coverage in coverages:
        rows = max(1, round(coverage * len(order)))
        points.append(Risk(rows / len(order), float(hits[rows - 1]) / rows, float(confidence[order[rows - 1]])))
    return points
