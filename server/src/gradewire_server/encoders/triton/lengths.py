"""Padded lengths of what goes to Triton: few, because its dynamic batcher joins only requests of equal shapes."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

_STEPS: Final = ((64, 8), (128, 16), (512, 32))
_LARGEST_STEP: Final = 64


def padded_tokens(tokens: int, *, max_tokens: int) -> int:
    """The length to pad to: steps of 8 up to 64 tokens, of 16 up to 128, of 32 up to 512, then of 64.

    Args:
        tokens: Of the longest text, 1 to `max_tokens`.
        max_tokens: The model's limit, which is never passed: its table of positions ends there.
    """
    step = next((step for limit, step in _STEPS if tokens <= limit), _LARGEST_STEP)
    return min(-(-tokens // step) * step, max_tokens)


def pad(ids: Sequence[NDArray[np.int32]], *, max_tokens: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Token ids and attention mask, int64[n, padded tokens] each; what stands under a zero of the mask is never read.

    Args:
        ids: int32[tokens] of each text, at least one, none longer than `max_tokens`.
        max_tokens: The model's limit.
    """
    lengths = np.fromiter(map(len, ids), np.int64, len(ids))
    width = padded_tokens(int(lengths.max()), max_tokens=max_tokens)
    mask = np.arange(width) < lengths[:, None]
    padded = np.zeros(mask.shape, np.int64)
    padded[mask] = np.concatenate(ids)
    return padded, mask.astype(np.int64)
