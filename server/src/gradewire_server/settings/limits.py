"""Limits of one caller and of all callers together, and the memory that the server may use."""

from typing import Annotated

from pydantic.dataclasses import dataclass

from gradewire_server.settings.setting import (
    MIB,
    Bytes,
    BytesOrAuto,
    Count,
    PositiveSeconds,
    Seconds,
    Setting,
    group,
)


@dataclass(frozen=True, slots=True, config=group("Deadlines"))
class Deadlines:
    """Seconds a call may take."""

    default_s: Annotated[PositiveSeconds, Setting("default_deadline_s")] = 60.0
    """Deadline of a call that names none.

    In a stream, for each message's items."""
    max_s: Annotated[PositiveSeconds, Setting("max_deadline_s")] = 600.0
    """Longest deadline that a call may ask for.

    A longer wish is cut to this. Streams and Prepare may run longer, their parts may not."""
    stall_s: Annotated[PositiveSeconds, Setting("stall_s")] = 60.0
    """Time that a reply of a stream or of Prepare may wait for its reader; then the call is ended."""
    idle_stream_s: Annotated[PositiveSeconds, Setting("idle_stream_s")] = 600.0
    """Time after which a stream ends that sends nothing and has nothing in work."""
    judge_s: Annotated[PositiveSeconds, Setting("judge_deadline_s")] = 3600.0
    """Longest wait for a judge's answers in a stream that has no deadline of its own.

    A judge takes seconds where an encoder takes milliseconds, and a whole window of items may wait for it."""


@dataclass(frozen=True, slots=True, config=group("Limits"))
class Limits:
    """Limits of one request; `Models.List` tells them to clients, which cut their work accordingly."""

    max_items_per_request: Annotated[Count, Setting("max_items_per_request")] = 4096
    """Items of one message.

    Items of a Score, entries of a Prepare, items of one stream message."""
    max_metrics_per_request: Annotated[Count, Setting("max_metrics_per_request")] = 32
    """Metrics of one request."""
    max_references_per_item: Annotated[Count, Setting("max_references_per_item")] = 1024
    """References of one item.

    More make that item INVALID_INPUT."""
    max_item_bytes: Annotated[Bytes, Setting("max_item_bytes")] = 3 * MIB // 2
    """Text of one item.

    Sum of its strings in UTF-8; a larger item is INVALID_INPUT."""
    max_message_bytes: Annotated[Bytes, Setting("max_message_bytes")] = 32 * MIB
    """One message, either way."""
    stream_window_items: Annotated[Count, Setting("stream_window_items")] = 512
    """Items of one stream in work.

    Their unsent results are counted."""


@dataclass(frozen=True, slots=True, config=group("Limits"))
class Capacity:
    """Bounds of what is in flight in the whole server."""

    max_items: Annotated[Count, Setting("max_items_in_flight")] = 16384
    """Items in work in the whole server.

    Entries that are being prepared are counted."""
    max_bytes: Annotated[BytesOrAuto, Setting("max_bytes_in_flight", default=int)] = 256 * MIB
    """Memory of requests in the whole server, without streams; 0: a share of memory_limit.

    What a request takes is told from its bytes before it is parsed: six times as much, and more for many items, metrics
    and references."""
    max_stream_bytes: Annotated[BytesOrAuto, Setting("max_stream_bytes", default=int)] = 256 * MIB
    """Memory of what all streams together have in work; 0: a share of memory_limit.

    One stream gets an eighth of it at the most. A message counts until the last of its results is taken."""
    max_streams: Annotated[Count, Setting("max_streams")] = 1024
    """Streams that are open at a time.

    Further ones are refused with RESOURCE_EXHAUSTED."""
    max_wait_s: Annotated[PositiveSeconds, Setting("max_wait_s")] = 1.0
    """A small request that would wait longer than this for the work of others is refused.

    So is one that would wait beyond its deadline: at once, with RESOURCE_EXHAUSTED."""

    unready_overload_s: Annotated[Seconds, Setting("unready_overload_s")] = 0.0
    """Overload of so many seconds makes /readyz say no; 0: never.

    Where all replicas say no, no call gets through: only for a service with replicas to spare."""


@dataclass(frozen=True, slots=True, config=group("Limits"))
class Connections:
    """Number and life of connections."""

    max_count: Annotated[Count, Setting("max_connections")] = 1000
    """Connections to the gRPC port that are open at a time.

    Further ones are closed at once. No more than there are file descriptors for."""
    idle_s: Annotated[PositiveSeconds, Setting("idle_connection_s")] = 900.0
    """Time after which a connection without calls is closed.

    Clients open another by themselves when they call again."""


@dataclass(frozen=True, slots=True, config=group("Limits"))
class MemoryConfig:
    """Memory of everything together."""

    limit_bytes: Annotated[BytesOrAuto, Setting("memory_limit", everyday=True)] = 0
    """Memory of the whole process; 0: what its container has, else 3/4 of the machine's."""
