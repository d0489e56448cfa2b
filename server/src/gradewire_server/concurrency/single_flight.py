"""Single flight: work that several ask for at the same time is done once."""

import asyncio
import contextvars
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")


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
        """What the work of that key gives, or raises; it is begun, as by `begin`, unless it is under way."""
        return await asyncio.shield(self._tasks.get(key) or self.begin(key, work, context=context))

    def begin(
        self, key: K, work: Callable[[], Coroutine[Any, Any, R]], *, context: contextvars.Context | None = None
    ) -> "asyncio.Task[R]":
        """Begins work that is not under way; whoever asks for it from now on joins.

        Args:
            key: Its name.
            work: Called at once.
            context: What it runs in; None: in a copy of the caller's.
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
