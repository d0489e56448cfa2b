"""Accuracy of a metric's verdicts without those that it marks uncertain, beside the accuracy of all."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradewire.agreement.point_estimates import RIGHT_FROM


@dataclass(frozen=True, slots=True)
class Abstention:
    """Of one metric over rows with a verdict and a label.

    Attributes:
        judged: Such rows.
        uncertain: Those of them whose verdict the metric does not trust.
        accuracy: Share of right verdicts over all of them, 0 to 1.
        accuracy_certain: The same over those that it trusts; NaN where there is none.
    """

    judged: int
    uncertain: int
    accuracy: float
    accuracy_certain: float


def abstention(
    verdicts: NDArray[np.float64], certain: NDArray[np.bool_], labels: NDArray[np.float64]
) -> Abstention | None:
    """Compares verdicts with labels.

    Args:
        verdicts: float64[rows]: 1 right, 0 wrong, NaN without a verdict.
        certain: bool[rows], whether the metric trusts them.
        labels: float64[rows] in [0, 1], right from 0.5.

    Returns:
        None where no verdict is uncertain, or labels lie outside [0, 1], so that nobody said what counts as right.
    """
    judged = ~np.isnan(verdicts) & ~np.isnan(labels)
    if not judged.any() or certain[judged].all() or labels[judged].min() < 0 or labels[judged].max() > 1:
        return None
    hits = (verdicts[judged] == 1) == (labels[judged] >= RIGHT_FROM)
    trusted = certain[judged]
    return Abstention(
        judged=int(judged.sum()),
        uncertain=int((~trusted).sum()),
        accuracy=float(hits.mean()),
        accuracy_certain=float(hits[trusted].mean()) if trusted.any() else float("nan"),
    )
