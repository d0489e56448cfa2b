"""Limits of one caller and of all callers together, and the memory that the server may use."""

from typing import Annotated

from pydantic.dataclasses import dataclass

from gradewire_server.settings.setting import (
    MIB,
    Bytes,
    BytesOrAuto,
    Count,
    PositiveSeconds,
    Setting,
    group,
)


@dataclass(frozen=True, slots=True, config=group("Deadlines"))
class Deadlines:
    """Seconds a call may take."""

    default_s: PositiveSeconds = 60.0
    """Deadline of a call that names none; in a stream, of each message's items."""
    max_s: Annotated[PositiveSeconds, Setting("max_deadline_s")] = 600.0
    """Cut longer deadlines of callers to this.

    Raise it for slow judges. A stream or a Prepare may run longer, its parts may not."""
    stall_s: PositiveSeconds = 60.0
    """Time that a reply of a stream or of Prepare may wait for its reader; then the call is ended."""
    judge_s: PositiveSeconds = 3600.0
    """Longest wait for a judge's answers in a stream that has no deadline of its own.

    A judge takes seconds where an encoder takes milliseconds, and a whole window of items may wait for it."""


@dataclass(frozen=True, slots=True, config=group("Limits"))
class Limits:
    """Limits of one request; `Models.List` tells them to clients, which cut their work accordingly."""

    max_items_per_request: Count = 4096
    """Items of a Score, entries of a Prepare, items of one stream message."""
    max_metrics_per_request: Count = 32
    max_references_per_item: Count = 1024
    """More references make the item INVALID_INPUT."""
    max_item_bytes: Bytes = 3 * MIB // 2
    """Strings of one item together in UTF-8; a larger item is INVALID_INPUT."""
    max_message_bytes: Annotated[Bytes, Setting("max_message_bytes")] = 32 * MIB
    """Refuse larger messages, in either direction.

    Raise it for pictures or very long answers; clients adapt to it."""
    stream_window_items: Count = 512
    """Items of one stream in work, with their unsent results."""


@dataclass(frozen=True, slots=True, config=group("Limits"))
class Capacity:
    """Bounds of the work in flight in the whole server."""

    max_items: Count = 16384
    """Items in work and entries in preparation."""
    max_bytes: Bytes = 256 * MIB
    """Memory of requests without streams, a share of memory_limit (`shares.share_bytes`).

    A request counts six times its bytes, and more for many items, metrics and references, before it is parsed."""
    max_stream_bytes: Bytes = 256 * MIB
    """Memory of all streams together, the same share of memory_limit.

    One stream gets an eighth of it at the most. A message counts until the last of its results is taken."""
    max_streams: Count = 1024
    """Streams that are open at a time; a further one is refused with RESOURCE_EXHAUSTED."""
    max_wait_s: Annotated[PositiveSeconds, Setting("max_wait_s")] = 1.0
    """Refuse a small request that would wait longer than this.

    Raise it if callers prefer a late answer to a retry. A wait beyond the request's deadline is refused too."""
    max_connections: Annotated[Count, Setting("max_connections")] = 1000
    """Close further connections to the gRPC port.

    Raise it for more clients, up to the limit of file descriptors."""


@dataclass(frozen=True, slots=True, config=group("Limits"))
class MemoryConfig:
    """Memory of everything together."""

    limit_bytes: Annotated[BytesOrAuto, Setting("memory_limit", everyday=True)] = 0
    """Keep the memory of all processes below this. 0: the container's, else 3/4 of the machine's.

    Set it if other programs share the machine."""
