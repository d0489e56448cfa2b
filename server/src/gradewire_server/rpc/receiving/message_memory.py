"""How much memory a message needs, told from its bytes before it is parsed."""

from typing import Final

import numpy as np

from gradewire_server.rpc.receiving.wire_counts import Counts

_PER_BYTE: Final = 3
"""The message as it came, as protobuf holds it and as texts; metrics take theirs in turns."""
_PER_STRING: Final = 80
"""A string of a list, however short it is: in protobuf, as a text and its place in a tuple."""
_PER_ITEM: Final = 1500
_PER_RESULT: Final = 1200
"""A result with its parts, its timing and where they come from."""
_SMALL_BYTES: Final = 4096
_SLICE_BYTES: Final = 1 << 20
_LIST_TAGS: Final = (0x12, 0x1A, 0x2A, 0x92, 0x9A, 0xAA)
"""First bytes of the tags of lists of strings in items and entries, in their short form and in longer ones."""
_IS_LIST_TAG: Final = np.zeros(256, np.bool_)
_IS_LIST_TAG[list(_LIST_TAGS)] = True


def memory_bytes(data: bytes, counts: Counts) -> int:
    """About the most that a message and the answer to it take.

    Args:
        data: As it came.
        counts: What it holds.
    """
    return (
        _PER_BYTE * len(data)
        + _PER_STRING * _strings_at_most(data)
        + counts.items * (_PER_ITEM + _PER_RESULT * max(1, counts.metrics))
    )


def _strings_at_most(data: bytes) -> int:
    """No list of strings is longer than the bytes that could begin one of its strings; texts hold a few of them too."""
    if len(data) <= _SMALL_BYTES:
        return sum(map(data.count, map(_byte, _LIST_TAGS)))
    found = 0
    for start in range(0, len(data), _SLICE_BYTES):
        part = np.frombuffer(data, np.uint8, min(_SLICE_BYTES, len(data) - start), start)
        found += int(np.count_nonzero(_IS_LIST_TAG[part]))
    return found


def _byte(value: int) -> bytes:
    return bytes((value,))
