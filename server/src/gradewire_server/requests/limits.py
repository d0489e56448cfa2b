"""Bounds of a request that nobody can set."""

from typing import Final

MAX_REFERENCE_SET_BYTES: Final = 256
"""Length of the name of a reference set; it becomes part of a key."""

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
