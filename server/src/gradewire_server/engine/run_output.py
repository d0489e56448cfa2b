"""What one run of an encoder gives, whoever ran it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class RunOutput:
    """Vectors of one run.

    Attributes:
        sentences: float32[n, dims], of unit length.
        tokens: float32[n, padded tokens, dims]; rows of padding are unspecified. None where not asked for.
    """

    sentences: NDArray[np.float32]
    tokens: NDArray[np.float32] | None
