"""How much one caller may ask for at once."""

from dataclasses import dataclass
from typing import Final

MEBIBYTE: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one request; `Models.List` tells them to clients, which cut their work accordingly.

    Attributes:
        max_items_per_request: Items of a Score, entries of a Prepare, items of one stream message.
        max_metrics_per_request: Metrics of a request or stream.
        max_references_per_item: More make that item INVALID_INPUT.
        max_item_bytes: Sum of an item's strings in UTF-8; a larger item is INVALID_INPUT.
        max_message_bytes: A message on the wire, either way.
        stream_window_items: Items of one stream in work, their unsent results included.
    """

    max_items_per_request: int = 4096
    max_metrics_per_request: int = 32
    max_references_per_item: int = 1024
    max_item_bytes: int = 3 * MEBIBYTE // 2
    max_message_bytes: int = 32 * MEBIBYTE
    stream_window_items: int = 512


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds a call may take.

    Attributes:
        default_s: For a call that names none; in a stream, for each message's items.
        max_s: A longer wish of the caller is cut to this. Streams and Prepare may run longer, their parts may not.
        judge_s: For what a judge says, in a stream without a deadline: a judge takes seconds where an encoder takes
            milliseconds, and a whole window of items may wait for it.
        stall_s: How long a reply of a stream or of Prepare may wait for its reader before the call is ended.
    """

    default_s: float = 60.0
    max_s: float = 600.0
    stall_s: float = 60.0
    judge_s: float = 3600.0


_LEAST_MARGIN_S: Final = 0.05
_MARGIN_SHARE: Final = 0.05
_MARGIN_PER_PAIR_S: Final = 0.0005
_MAX_MARGIN_S: Final = 1.0
_MAX_MARGIN_SHARE: Final = 0.2


def reply_margin_s(left_s: float, pairs: int) -> float:
    """Time to keep back at the end of a call, so that its reply reaches the caller before the deadline.

    It covers telling of every (item, metric) pair and an event loop busy with their texts; at most 1 s and a
    fifth of the time.

    Args:
        left_s: Seconds until the deadline; may be negative.
        pairs: Results of the reply.
    """
    wanted_s = _LEAST_MARGIN_S + _MARGIN_SHARE * left_s + _MARGIN_PER_PAIR_S * pairs
    return max(0.0, min(wanted_s, _MAX_MARGIN_S, _MAX_MARGIN_SHARE * left_s))
