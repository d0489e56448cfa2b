"""Limits for one request and for all requests together, and the server's memory limit."""

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
    """Time limits for calls, in seconds."""

    default_s: PositiveSeconds = 60.0
    """Deadline for calls that set none, and for the items of a stream's message that sets none."""
    max_s: Annotated[PositiveSeconds, Setting("max_deadline_s")] = 600.0
    """Maximum deadline of a call. The server shortens longer deadlines.

    Raise it for slow judges. Streams and Prepare calls may run longer in total."""
    stall_s: PositiveSeconds = 60.0
    """Timeout for receiving a request, and for the caller to read a streamed reply."""
    judge_s: PositiveSeconds = 3600.0
    """Timeout for a judge's answers in a stream without a deadline.

    The timeout is long, because a judge takes seconds for an item, and a whole window of items may wait."""


@dataclass(frozen=True, slots=True, config=group("Limits"))
class Limits:
    """Limits for one request. Clients get them from `Models.List` and split their work accordingly."""

    max_items_per_request: Count = 4096
    """Maximum number of items in a Score request or stream message, or of entries in a Prepare request."""
    max_metrics_per_request: Count = 32
    max_references_per_item: Count = 1024
    """Maximum number of references per item. An item with more is INVALID_INPUT."""
    max_item_bytes: Bytes = 3 * MIB // 2
    """Maximum size of all strings in one item, as UTF-8. A larger item is INVALID_INPUT."""
    max_message_bytes: Annotated[Bytes, Setting("max_message_bytes")] = 32 * MIB
    """Maximum size of a request or reply message. The server refuses larger ones.

    Raise it for pictures or very long answers. Clients adapt to it."""
    stream_window_items: Count = 512
    """Maximum number of unfinished items in one stream. Items whose results have not been sent yet also count."""


@dataclass(frozen=True, slots=True, config=group("Limits"))
class Capacity:
    """Limits for the work in flight in the whole server."""

    max_items: Count = 16384
    """Maximum number of items being scored and entries being prepared."""
    max_bytes: Bytes = 256 * MIB
    """Maximum memory for unary requests, a share of memory_limit (`shares.capacity_of`).

    A request counts six times its size before it is parsed, and more if it has many items, metrics and references."""
    max_stream_bytes: Bytes = 256 * MIB
    """Maximum memory for all streams, as large as `max_bytes`.

    One stream gets at most an eighth of this memory. A message counts until its last result is sent."""
    max_streams: Count = 1024
    """Maximum number of open streams. The server refuses another stream with RESOURCE_EXHAUSTED."""
    max_wait_s: Annotated[PositiveSeconds, Setting("max_wait_s")] = 1.0
    """Refuse a small request if it would wait longer than this.

    Raise it if callers prefer a late answer to a retry. A request that would miss its deadline is always refused."""
    max_connections: Annotated[Count, Setting("max_connections")] = 1000
    """Maximum number of connections to the gRPC port. The server closes further connections.

    Raise it for more clients, up to the limit of file descriptors."""


@dataclass(frozen=True, slots=True, config=group("Limits"))
class MemoryConfig:
    """The server's memory limit."""

    limit_bytes: Annotated[BytesOrAuto, Setting("memory_limit", everyday=True)] = 0
    """Keep the total memory of all processes below this. 0 means the container's limit, or 3/4 of the machine's memory
    if no container sets a limit.

    Set it if other programs share the machine."""
