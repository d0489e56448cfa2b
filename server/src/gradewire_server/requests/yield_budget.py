"""Decides when the reading of a large request pauses for other work of the event loop, and what is read beside it."""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol, TypeVar

ITEMS_PER_TURN: Final = 128
"""About 1 ms of reading."""
BYTES_PER_TURN: Final = 256 * 1024
"""Read at once; a single element that is larger is read on a thread."""

T = TypeVar("T")


class Sized(Protocol):
    """A protobuf message, of which only the size matters here."""

    def ByteSize(self) -> int:  # noqa: N802 - protobuf's name
        """Encoded size."""
        ...


class YieldBudget:
    """How much of one request is read before the event loop's other work gets a turn.

    Args:
        request_bytes: Size of the request where it is known; one that fits into a turn is not measured again.

    Attributes:
        last_bytes: Size of the element that was counted last, for to measure is to encode; 0 where none is measured.
    """

    def __init__(self, request_bytes: int | None = None) -> None:
        self._counts_bytes = request_bytes is None or request_bytes > BYTES_PER_TURN
        self._items = 0
        self._bytes = 0
        self.last_bytes = 0

    def is_exceeded_by(self, element: Sized) -> bool:
        """Counts `element`; whether it belongs to the next turn, so that others get theirs before it is read."""
        size_bytes = self.last_bytes = element.ByteSize() if self._counts_bytes else 0
        exceeded = self._items == ITEMS_PER_TURN or (self._items > 0 and self._bytes + size_bytes > BYTES_PER_TURN)
        if exceeded:
            self._items = self._bytes = 0
        self._items += 1
        self._bytes += size_bytes
        return exceeded


async def read_beside(size_bytes: int, read: Callable[[], T]) -> T:
    """What `read` makes of an element of that size; of a large one on a thread: normal forms take 0.1 s a megabyte."""
    return await asyncio.to_thread(read) if size_bytes > BYTES_PER_TURN else read()
