"""Keeps the C library's allocator from holding on to what large messages took."""

import ctypes
import sys
from typing import Final

_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
"""Numbers of glibc's malloc.h."""
_MAPPED_FROM_BYTES: Final = 4 << 20
"""More than an encoder's run allocates at once: only messages are larger, and their memory goes back when they do."""
_ARENAS: Final = 4


def return_large_blocks() -> None:
    """Has large blocks mapped on their own, so that they return to the system when they are freed.

    Otherwise glibc learns from the first large block that is freed to keep the next ones, and keeps parts of them for
    each thread. Does nothing where the C library is another one.
    """
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _MAPPED_FROM_BYTES)
        mallopt(_M_ARENA_MAX, _ARENAS)
