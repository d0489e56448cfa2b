"""Which of several equal values counts as the best: the first."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

TIE = 1e-6
"""Values closer than this are equal: rounding inside a matrix product must not decide between two equal texts."""


def first_of_the_highest(values: NDArray[np.floating[Any]] | list[float]) -> int:
    """Lowest index whose value is within TIE of the maximum; `values` is not empty."""
    if isinstance(values, list):
        least = max(values) - TIE
        return next(index for index, value in enumerate(values) if value >= least)
    return int((values >= values.max() - TIE).argmax())
