"""Single flight for judges: equal needs that are open at the same time are one piece of work.

Unlike an encoder's, a judge's work is dear: where the last one who waits for it leaves, it is cancelled.
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple, TypeAlias

from gradewire_server.domain.needs import Source
from gradewire_server.domain.result import Failure, Status, Timing

TIMED_OUT: Final = Failure(
    Status.TIMEOUT, "the deadline passed before the judge was done; allow more time or send less"
)
_SHORTEST_RETRY_S: Final = 1.0
_LONGEST_RETRY_S: Final = 60.0
_MEASURED: Final = 64


class Landed(NamedTuple):
    """How a flight ended."""

    answer: Any
    source: Source
    timing: Timing


Work: TypeAlias = Callable[[float | None], Awaitable[Landed]]
"""Does the work by a deadline in `time.monotonic()` seconds."""


class _Flight:
    """One piece of work and how many wait for it."""

    __slots__ = ("deadline_s", "task", "waiters")

    def __init__(self, deadline_s: float) -> None:
        self.deadline_s = deadline_s
        self.waiters = 0
        self.task: asyncio.Task[Landed]

    async def run(self, work: Work) -> Landed:
        """Works until the deadline of the one who waits longest, also where that one came later."""
        while True:
            deadline_s = self.deadline_s
            landed = await work(None if deadline_s == math.inf else deadline_s)
            late = isinstance(landed.answer, Failure) and landed.answer.status is Status.TIMEOUT
            if not late or self.deadline_s <= deadline_s:
                return landed


class JudgeFlights:
    """Work under way by name, bounded. Belongs to one event loop.

    Args:
        max_open: Pieces of work that may be open; further ones fail at once.
    """

    def __init__(self, *, max_open: int) -> None:
        self._max_open = max_open
        self._open: dict[bytes, _Flight] = {}
        self._finished_s: deque[float] = deque(maxlen=_MEASURED)
        self._closed = False

    def __len__(self) -> int:
        return len(self._open)

    async def join(self, name: bytes, work: Work, *, deadline_s: float | None) -> Landed:
        """The result of the work of that name, which is begun unless it is under way.

        A full queue is UNAVAILABLE with a hint, a passed deadline TIMEOUT. Cancelling it cancels the work where nobody
        else waits for it.
        """
        until_s = math.inf if deadline_s is None else deadline_s
        flight = self._open.get(name)
        joined = flight is not None
        if flight is None:
            if self._closed or len(self._open) >= self._max_open:
                return Landed(self.full(len(self._open)), Source.COMPUTED, Timing())
            flight = self._begin(name, work, until_s)
        flight.deadline_s = max(flight.deadline_s, until_s)
        flight.waiters += 1
        try:
            # Not wait_for, which would cancel the others' work with this caller.
            done, _ = await asyncio.wait((flight.task,), timeout=_left_s(until_s))
        finally:
            flight.waiters -= 1
            if not flight.waiters and not flight.task.done():
                self._open.pop(name, None)
                flight.task.cancel()
        if not done:
            return Landed(TIMED_OUT, Source.COMPUTED, Timing())
        if flight.task.cancelled():
            return Landed(self.full(len(self._open)), Source.COMPUTED, Timing())
        landed = flight.task.result()
        return landed._replace(source=Source.JOINED) if joined else landed

    async def close(self) -> None:
        """Cancels all work; whoever waits is told UNAVAILABLE."""
        self._closed = True
        tasks = [flight.task for flight in self._open.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, name: bytes, work: Work, until_s: float) -> _Flight:
        flight = self._open[name] = _Flight(until_s)
        flight.task = asyncio.get_running_loop().create_task(flight.run(work))

        def landed(_: asyncio.Task[Landed]) -> None:
            self._finished_s.append(time.monotonic())
            if self._open.get(name) is flight:
                del self._open[name]

        flight.task.add_done_callback(landed)
        return flight

    def full(self, waiting: int) -> Failure:
        """What is said to those for whom there is no room."""
        if self._closed:
            return Failure(Status.UNAVAILABLE, "the server is shutting down; try another replica", _SHORTEST_RETRY_S)
        return Failure(
            Status.UNAVAILABLE,
            f"{waiting} items wait for the judge already (judge_max_queue_items); send less at a time, or try later",
            retry_after_s=self._drained_s(waiting),
        )

    def _drained_s(self, waiting: int) -> float:
        """When half of what waits will be done, at the pace of the last few."""
        finished_s = self._finished_s
        if len(finished_s) < 2 or finished_s[-1] <= finished_s[0]:
            return _SHORTEST_RETRY_S
        each_s = (finished_s[-1] - finished_s[0]) / (len(finished_s) - 1)
        return min(max(waiting / 2 * each_s, _SHORTEST_RETRY_S), _LONGEST_RETRY_S)


def _left_s(until_s: float) -> float | None:
    return None if until_s == math.inf else max(0.0, until_s - time.monotonic())
