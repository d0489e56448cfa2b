"""Cuts a long list of messages into requests that a server takes."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from google.protobuf.message import Message

from gradewire.errors import DeadlineExceeded
from gradewire.model_list import Limits

# Small enough that results come before a deadline and show as progress, large enough for full batches in the encoder.
CHUNK_ITEMS = 128
CHUNK_BYTES = 1024 * 1024
# Where a judge takes a second or more for an item: what is in flight must be done within the longest deadline that a
# server gives a call (ten minutes).
JUDGE_CHUNK_ITEMS = 32
# What is sent without asking the server for its limits; nobody sets them as low as this.
UNASKED_ITEMS = 32
UNASKED_BYTES = 256 * 1024
# What every gRPC server takes unless it was told otherwise.
SAFE_MESSAGE_BYTES = 4 * 1024 * 1024
# Tag and length of one element of a repeated field.
_ELEMENT_BYTES = 8


T = TypeVar("T", bound=Message)


@dataclass(frozen=True, slots=True)
class ChunkLimits:
    """How large one request may be.

    Attributes:
        max_items: Elements of one request.
        max_bytes: A request is closed before it grows beyond this.
        max_item_bytes: A single element may be this large; it then travels alone.
    """

    max_items: int = CHUNK_ITEMS
    max_bytes: int = CHUNK_BYTES
    max_item_bytes: int = SAFE_MESSAGE_BYTES - 1024


def chunk_limits(limits: Limits | None, *, overhead_bytes: int, wanted_items: int = CHUNK_ITEMS) -> ChunkLimits:
    """How large one request may be, by what the server says (None or 0: nothing) and what else the request holds."""
    most = whole_limits(limits, overhead_bytes=overhead_bytes)
    return ChunkLimits(min(most.max_items, wanted_items), min(CHUNK_BYTES, most.max_bytes), most.max_item_bytes)


def whole_limits(limits: Limits | None, *, overhead_bytes: int) -> ChunkLimits:
    """As `chunk_limits`, for a request that cannot be cut: all that the server takes."""
    max_items = (limits and limits.max_items_per_request) or CHUNK_ITEMS
    message_bytes = (limits and limits.max_message_bytes) or SAFE_MESSAGE_BYTES
    room = max(1, message_bytes - overhead_bytes - 64)
    return ChunkLimits(max_items, room, room)


@dataclass(frozen=True, slots=True)
class Chunk(Generic[T]):
    """The elements of one request, with their positions in the call."""

    indices: list[int]
    messages: list[T]


def cut(elements: Iterable[tuple[int, T]], limits: ChunkLimits) -> Iterator[Chunk[T]]:
    """Cuts in order, lazily; no chunk is empty."""
    indices: list[int] = []
    messages: list[T] = []
    filled_bytes = 0
    for index, message in elements:
        size = message.ByteSize() + _ELEMENT_BYTES
        if messages and (len(messages) == limits.max_items or filled_bytes + size > limits.max_bytes):
            yield Chunk(indices, messages)
            indices, messages, filled_bytes = [], [], 0
        indices.append(index)
        messages.append(message)
        filled_bytes += size
    if messages:
        yield Chunk(indices, messages)


class Deadline:
    """A point in time that the parts of a call share."""

    def __init__(self, deadline_s: float) -> None:
        self._deadline_s = deadline_s
        self._end = time.monotonic() + deadline_s

    def remaining_s(self) -> float:
        """Seconds left.

        Raises:
            DeadlineExceeded: None is left.
        """
        if (left := self.left_s()) <= 0:
            raise DeadlineExceeded(
                f"not done within deadline_s={self._deadline_s:g}: give a larger deadline_s or fewer items"
            )
        return left

    def left_s(self) -> float:
        """Seconds left; 0 or less where there is none."""
        return self._end - time.monotonic()
