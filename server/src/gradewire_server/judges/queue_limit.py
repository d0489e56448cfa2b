"""How many computations may wait for the judges of a service, and when refused callers may come back."""

import time
from collections import deque
from typing import Final

from gradewire_server.domain.result import Failure, Status

_SHORTEST_RETRY_S: Final = 1.0
_LONGEST_RETRY_S: Final = 60.0
_MEASURED: Final = 64


class QueueLimit:
    """Counts the computations that are under way, over all judges.

    Args:
        max_items: How many there may be; further ones are refused.
    """

    def __init__(self, max_items: int) -> None:
        self._max_items = max_items
        self._finished_s: deque[float] = deque(maxlen=_MEASURED)
        self._closed = False
        self.waiting = 0

    def enter(self) -> Failure | None:
        """Counts one more computation; returns why there is no room for it, and then counts nothing."""
        refusal = self.refusal(self.waiting)
        if refusal is None:
            self.waiting += 1
        return refusal

    def leave(self) -> None:
        """Uncounts one computation: it ended, or nobody waits for it any more."""
        self.waiting -= 1

    def finished(self) -> None:
        """Notes that a computation has ended now, which tells how fast the queue moves."""
        self._finished_s.append(time.monotonic())

    def close(self) -> None:
        """Refuses everything from now on."""
        self._closed = True

    def refusal(self, waiting: int) -> Failure | None:
        """Why nothing more is accepted when so many items wait; None while there is room."""
        return self.full(waiting) if self._closed or waiting >= self._max_items else None

    def full(self, waiting: int) -> Failure:
        """What a caller is told when there is no room."""
        if self._closed:
            return Failure(Status.UNAVAILABLE, "the server is shutting down; try another replica", _SHORTEST_RETRY_S)
        return Failure(
            Status.UNAVAILABLE,
            f"{waiting} items wait for the judge already (judge_max_queue_items); send less at a time, or try later",
            retry_after_s=self._drained_s(waiting),
        )

    def _drained_s(self, waiting: int) -> float:
        """Seconds until half of what waits will be done, at the pace of the last few."""
        finished_s = self._finished_s
        if len(finished_s) < 2 or finished_s[-1] <= finished_s[0]:
            return _SHORTEST_RETRY_S
        each_s = (finished_s[-1] - finished_s[0]) / (len(finished_s) - 1)
        return min(max(waiting / 2 * each_s, _SHORTEST_RETRY_S), _LONGEST_RETRY_S)
