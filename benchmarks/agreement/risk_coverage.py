"""Risk at coverage: how right verdicts are where the least certain ones are left out."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


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
    probabilities: NDArray[np.float64], right: NDArray[np.bool_], coverages: Sequence[float]
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
