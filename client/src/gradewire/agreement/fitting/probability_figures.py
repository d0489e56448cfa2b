"""Quality of probabilities: calibration error, Brier score, and accuracy where the least certain ones go."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gradewire.agreement.point_estimates import RIGHT_FROM, auc

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


def probability_figures(probabilities: NDArray[np.float64], right: NDArray[np.bool_]) -> dict[str, float]:
    """`accuracy`, `pearson`, `auc`, `brier` and `ece` of float64[rows], six digits each."""
    figures = {
        "accuracy": float(np.mean((probabilities >= RIGHT_FROM) == right)),
        "pearson": float(np.corrcoef(probabilities, right)[0, 1]),
        "auc": auc(probabilities, right),
        "brier": brier_score(probabilities, right),
        "ece": calibration_error(probabilities, right),
    }
    return {name: round(value, 6) for name, value in figures.items()}
