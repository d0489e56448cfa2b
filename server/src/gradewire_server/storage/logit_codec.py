"""A grader's answers as bytes: a float32, exactly, with flags that say how the answer was read.

Blobs have the form of `codec`'s: payload, a byte of flags and a byte with the tier. They go through the same stores.
"""

import struct
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gradewire_server.domain.needs import Tier

_BLOB: Final = struct.Struct("<fBB")
_TRUNCATED: Final = 1
_PIECES_SHIFT: Final = 1


def encode_logit(logit: float, *, truncated: bool, pieces: int) -> bytes:
    """The blob of one answer, 1 to 127 pieces long, that no second level keeps yet."""
    return _BLOB.pack(logit, truncated * _TRUNCATED | pieces << _PIECES_SHIFT, Tier.WINDOW)


def decode_logits(blobs: Sequence[bytes]) -> tuple[NDArray[np.float32], NDArray[np.bool_], NDArray[np.int32]]:
    """Blobs to (logits float32[n], truncated bool[n], pieces int32[n])."""
    rows = np.frombuffer(b"".join(blobs), np.dtype([("logit", "<f4"), ("flags", "u1"), ("tier", "u1")]))
    flags = rows["flags"].astype(np.int32)
    return rows["logit"].astype(np.float32), (flags & _TRUNCATED).astype(np.bool_), flags >> _PIECES_SHIFT
