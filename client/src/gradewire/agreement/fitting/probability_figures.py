"""Quality of probabilities: calibration error and Brier score."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

BINS: Final = 15


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
