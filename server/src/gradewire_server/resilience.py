"""A circuit breaker for failing backends, and single flight, which runs equal work only once."""

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable, Coroutine, Hashable
from enum import StrEnum
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")


class BreakerState(StrEnum):
    """The state of a circuit breaker."""

    CLOSED = "closed"
    HALF_OPEN = "half_open"
    OPEN = "open"


class Breaker:
    """A circuit breaker, which stops calls to a backend that fails too often.

    Callers may use the backend only while the breaker is closed. `failures_to_open` failures within `window_s` open the
    breaker. The breaker's owner then probes the backend (`probing`). A successful probe closes the breaker; a failed
    probe opens the breaker again.
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
        """Record a successful call. Close the breaker if this was a probe."""
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
        """Open the breaker regardless of the number of failures, because the backend is known to be unusable."""
        if self.state is not BreakerState.OPEN:
            self._become(BreakerState.OPEN)

    def probing(self) -> None:
        """Let the owner of an open breaker probe the backend once. The probe's result closes or reopens the breaker."""
        if self.state is BreakerState.OPEN:
            self._become(BreakerState.HALF_OPEN)

    def _become(self, state: BreakerState) -> None:
        self.state = state
        self._changed(state)


class SingleFlight(Generic[K, R]):
    """The running work by key, on one event loop. Work with the same key runs only once at a time.

    A caller that gives up does not cancel the work, because other callers may wait for the result.
    """

    def __init__(self) -> None:
        self._tasks: dict[K, asyncio.Task[R]] = {}

    def __contains__(self, key: K) -> bool:
        return key in self._tasks

    async def result(
        self, key: K, work: Callable[[], Coroutine[Any, Any, R]], *, context: contextvars.Context | None = None
    ) -> R:
        """Return the result of the work for `key`, or raise the work's error. Start the work if it is not running."""
        return await asyncio.shield(self._tasks.get(key) or self.begin(key, work, context=context))

    def begin(
        self, key: K, work: Callable[[], Coroutine[Any, Any, R]], *, context: contextvars.Context | None = None
    ) -> "asyncio.Task[R]":
        """Start work for a key that has no running work. Later callers of `result` wait for this work.

        Without `context`, the work runs in a copy of the caller's context.
        """
        task = self._tasks[key] = asyncio.get_running_loop().create_task(work(), context=context)
        task.add_done_callback(lambda _: self._tasks.pop(key, None))
        return task

    async def wait(self) -> None:
        """Wait until all currently running work has ended or failed."""
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()))

    async def cancel(self) -> None:
        """Cancel all running work and wait until it has ended."""
        for task in self._tasks.values():
            task.cancel()
        await self.wait()
