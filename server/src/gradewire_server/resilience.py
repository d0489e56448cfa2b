"""A circuit breaker for backends that fail, and single flight for equal work that is requested twice."""

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable, Coroutine, Hashable
from enum import StrEnum
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")


class BreakerState(StrEnum):
    """State of a breaker."""

    CLOSED = "closed"
    HALF_OPEN = "half_open"
    OPEN = "open"


class Breaker:
    """A circuit breaker: it counts failures within a window.

    While it is closed, callers use the backend. `failures_to_open` failures within `window_s` open it, and callers
    leave the backend alone. Its owner then probes the backend (`probing`); the outcome closes or reopens it.
    """

    def __init__(
        self,
        *,
        failures_to_open: int,
        window_s: float,
        clock: Callable[[], float],
        changed: Callable[[BreakerState], None],
    ) -> None:
        self._window_s = window_s
        self._clock = clock
        self._changed = changed
        self._failures: deque[float] = deque(maxlen=failures_to_open)
        self.state = BreakerState.CLOSED

    @property
    def closed(self) -> bool:
        """True if the backend may be used."""
        return self.state is BreakerState.CLOSED

    def succeeded(self) -> None:
        """Record a successful call; close a breaker that was probing."""
        if self.state is BreakerState.HALF_OPEN:
            self._failures.clear()
            self._become(BreakerState.CLOSED)

    def failed(self) -> None:
        """Record a call that failed or took too long."""
        if self.state is BreakerState.HALF_OPEN:
            self._become(BreakerState.OPEN)
            return
        now_s = self._clock()
        self._failures.append(now_s)
        full = len(self._failures) == self._failures.maxlen
        if self.closed and full and now_s - self._failures[0] <= self._window_s:
            self._become(BreakerState.OPEN)

    def open(self) -> None:
        """Open it regardless of the count: the backend is known to be unusable."""
        if self.state is not BreakerState.OPEN:
            self._become(BreakerState.OPEN)

    def probing(self) -> None:
        """Let the owner of an open breaker try the backend once; the outcome closes or reopens it."""
        if self.state is BreakerState.OPEN:
            self._become(BreakerState.HALF_OPEN)

    def _become(self, state: BreakerState) -> None:
        self.state = state
        self._changed(state)


class SingleFlight(Generic[K, R]):
    """Running work by key, on one event loop.

    A caller that gives up does not cancel the work: other callers still wait for it, and a later one joins it.
    """

    def __init__(self) -> None:
        self._tasks: dict[K, asyncio.Task[R]] = {}

    def __contains__(self, key: K) -> bool:
        return key in self._tasks

    async def result(
        self, key: K, work: Callable[[], Coroutine[Any, Any, R]], *, context: contextvars.Context | None = None
    ) -> R:
        """Return or raise the outcome of the work for `key`; start it as `begin` does unless it is running."""
        return await asyncio.shield(self._tasks.get(key) or self.begin(key, work, context=context))

    def begin(
        self, key: K, work: Callable[[], Coroutine[Any, Any, R]], *, context: contextvars.Context | None = None
    ) -> "asyncio.Task[R]":
        """Start work for a key that has none running; later callers join it.

        Without `context`, the work runs in a copy of the caller's context.
        """
        task = self._tasks[key] = asyncio.get_running_loop().create_task(work(), context=context)
        task.add_done_callback(lambda _: self._tasks.pop(key, None))
        return task

    async def wait(self) -> None:
        """Wait until all work that is running now has ended, also by failing."""
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()))

    async def cancel(self) -> None:
        """Cancel all running work and wait until it has ended."""
        for task in self._tasks.values():
            task.cancel()
        await self.wait()
