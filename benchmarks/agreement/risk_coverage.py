"""Risk at coverage: how right verdicts are where the least certain ones are left out."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def accuracy_at_coverage(
    probabilities: NDArray[np.float64], right: NDArray[np.bool_], coverages: Sequence[float]
) -> list[float]:
    """Accuracy of the verdicts (right from 0.5) of the most confident rows, for each share of rows in (0, 1].

    Confidence is max(p, 1 - p); of equal ones the first rows are kept. Source: El-Yaniv and Wiener 2010, *On the
    Foundations of Noise-free Selective Classification*.
    """
    order = np.argsort(-np.maximum(probabilities, 1 - probabilities), kind="stable")
    hits = np.cumsum(((probabilities >= 0.5) == right)[order])
    kept = [max(1, round(coverage * len(order))) for coverage in coverages]
    return [float(hits[rows - 1]) / rows for rows in kept]
