"""How much memory a message needs, told from its bytes before it is parsed."""

import asyncio
from typing import Final

import numpy as np
from google.protobuf.descriptor import Descriptor

from gradewire_server.requests.errors import InvalidRequestError
from gradewire_server.rpc.receiving.wire_counts import Counts, elements, fields_of

_PER_BYTE: Final = 6
"""The message as it came, as protobuf holds it, as texts, and what metrics make of them: words, windows, forms."""
_PER_STRING: Final = 120
"""A string or picture of a list, however short it is: in protobuf, as a text and its place in a tuple."""
_PER_ITEM: Final = 1500
_PER_RESULT: Final = 1200
"""A result with its parts, its timing and where they come from."""
_MAX_STRINGS: Final = 500_000
"""Of one message: far more than people send, and 60 MB."""
_SMALL_BYTES: Final = 4096
_SLICE_BYTES: Final = 1 << 20
_LIST_TAGS: Final = (0x12, 0x1A, 0x2A, 0x42, 0x4A, 0x00)
"""Tags of lists of strings and of pictures in items and entries, and the last byte of a tag that is written longer than
it needs."""
_STRINGS_AT_ONCE: Final = 16_384


async def memory_bytes(data: bytes, counts: Counts, descriptor: Descriptor) -> int:
    """About the most that a message and the answer to it take.

    Args:
        data: As it came, well-formed as far as `count_fields` looks.
        counts: What it holds.
        descriptor: Its type.

    Raises:
        InvalidRequestError: It has more references, synthetic answers, captions and pictures than any message may.
        MalformedError: It cannot be parsed.
    """
    strings = await _strings_at_most(data)
    if strings > _MAX_STRINGS:
        strings = await _count_strings(data, descriptor)
    return _memory(len(data), strings, counts)


def small_memory_bytes(size_bytes: int, counts: Counts) -> int:
    """The same of a message that is so small that nothing but its items need be counted.

    Args:
        size_bytes: As it came; at least two bytes for each string.
        counts: What it holds.
    """
    return _memory(size_bytes, size_bytes // 2, counts)


def _memory(size_bytes: int, strings: int, counts: Counts) -> int:
    return (
        _PER_BYTE * size_bytes
        + _PER_STRING * strings
        + counts.items * (_PER_ITEM + _PER_RESULT * max(1, counts.metrics))
    )


async def _strings_at_most(data: bytes) -> int:
    """No list of strings is longer than the bytes that could begin one of its strings; texts hold a few of them too."""
    if len(data) <= _SMALL_BYTES:
        return sum(map(data.count, map(_byte, _LIST_TAGS)))
    found = 0
    for start in range(0, len(data), _SLICE_BYTES):
        if start:
            await asyncio.sleep(0)
        part = np.frombuffer(data, np.uint8, min(_SLICE_BYTES, len(data) - start), start)
        found += sum(int(np.count_nonzero(part == tag)) for tag in _LIST_TAGS)
    return found


async def _count_strings(data: bytes, descriptor: Descriptor) -> int:
    """Fields of all items and entries, one by one: where texts are full of what could be tags."""
    found = 0
    for start, end, path in elements(data, descriptor):
        count = 0
        for count, _ in enumerate(fields_of(data, start, end), 1):
            if not count % _STRINGS_AT_ONCE:
                await asyncio.sleep(0)
            if found + count > _MAX_STRINGS:
                problem = f"more than {_MAX_STRINGS} texts and pictures in one message; send fewer items"
                raise InvalidRequestError(path, problem)
        found += count
    return found


def _byte(value: int) -> bytes:
    return bytes((value,))
