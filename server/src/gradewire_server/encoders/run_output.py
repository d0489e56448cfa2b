"""What one run of an encoder gives, whoever ran it."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class RunOutput:
    """Vectors of one run.

    Attributes:
        sentences: float32[n, dims], of unit length.
        tokens: float32[n, padded tokens, dims] by layer, 1 for the first, of those that were asked for; rows of padding
            are unspecified.
    """

    sentences: NDArray[np.float32]
    tokens: Mapping[int, NDArray[np.float32]]
