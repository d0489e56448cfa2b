"""Help with backends that fail or are asked the same twice: circuit breaker, single flight."""

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
    """Counts failures within a window; knows nothing of what it guards.

    Closed, work goes on. `failures_to_open` failures within `window_s` open it: callers leave the backend alone. Its
    owner probes then (`probing`), and the probe's outcome closes it or opens it again.
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
        """A call went well; closes a breaker that was probing."""
        if self.state is BreakerState.HALF_OPEN:
            self._failures.clear()
            self._become(BreakerState.CLOSED)

    def failed(self) -> None:
        """A call failed or took too long."""
        if self.state is BreakerState.HALF_OPEN:
            self._become(BreakerState.OPEN)
            return
        now_s = self._clock()
        self._failures.append(now_s)
        full = len(self._failures) == self._failures.maxlen
        if self.closed and full and now_s - self._failures[0] <= self._window_s:
            self._become(BreakerState.OPEN)

    def open(self) -> None:
        """The backend is known to be of no use now, whatever was counted."""
        if self.state is not BreakerState.OPEN:
            self._become(BreakerState.OPEN)

    def probing(self) -> None:
        """An open breaker's owner tries the backend once; the next outcome decides."""
        if self.state is BreakerState.OPEN:
            self._become(BreakerState.HALF_OPEN)

    def _become(self, state: BreakerState) -> None:
        self.state = state
        self._changed(state)


class SingleFlight(Generic[K, R]):
    """Work under way, by key. Belongs to one event loop.

    The work belongs to nobody who asks for it: one who gives up takes it from none of the others, and the next one
    need not begin again.
    """

    def __init__(self) -> None:
        self._tasks: dict[K, asyncio.Task[R]] = {}

    def __contains__(self, key: K) -> bool:
        return key in self._tasks

    async def result(
        self, key: K, work: Callable[[], Coroutine[Any, Any, R]], *, context: contextvars.Context | None = None
    ) -> R:
        """Return or raise what the work of that key gives; it is begun, as by `begin`, unless it is under way."""
        return await asyncio.shield(self._tasks.get(key) or self.begin(key, work, context=context))

    def begin(
        self, key: K, work: Callable[[], Coroutine[Any, Any, R]], *, context: contextvars.Context | None = None
    ) -> "asyncio.Task[R]":
        """Begin work that is not under way; whoever asks for it from now on joins.

        Without a context it runs in a copy of the caller's.
        """
        task = self._tasks[key] = asyncio.get_running_loop().create_task(work(), context=context)
        task.add_done_callback(lambda _: self._tasks.pop(key, None))
        return task

    async def wait(self) -> None:
        """Returns when what is under way now has ended, however it ends."""
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()))

    async def cancel(self) -> None:
        """Cancels what is under way and waits for its end."""
        for task in self._tasks.values():
            task.cancel()
        await self.wait()
