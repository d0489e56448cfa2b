"""Reads a plain iterable on a thread, for an event loop that must not wait for it."""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Iterable
from typing import Generic, TypeVar

_AHEAD_ITEMS = 64

T = TypeVar("T")


class IterableReader(Generic[T]):
    """An async iterable over a plain one; reads at most a few items ahead, and stops when `close` is called."""

    def __init__(self, source: Iterable[T]) -> None:
        self._source = source
        self._read: deque[T] = deque()
        self._room = threading.Semaphore(_AHEAD_ITEMS)
        self._ready = asyncio.Event()
        self._error: BaseException | None = None
        self._ended = False
        self._closed = False

    async def __aiter__(self) -> AsyncIterator[T]:
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._run, args=(loop,), name="gradewire-reader", daemon=True).start()
        while True:
            self._ready.clear()
            while self._read:
                item = self._read.popleft()
                self._room.release()
                yield item
            # Looked at in this order: the thread appends before it says that it has ended.
            if self._ended and not self._read:
                break
            await self._ready.wait()
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Ends the thread as soon as the source lets go of it."""
        self._closed = True
        self._room.release()

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            for item in self._source:
                self._room.acquire()
                if self._closed:
                    return
                self._read.append(item)
                self._wake(loop)
        except BaseException as error:  # noqa: BLE001 - whatever the caller's source raises, its consumer gets
            self._error = error
        finally:
            self._ended = True
            self._wake(loop)

    def _wake(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._ready.is_set() and not loop.is_closed():
            loop.call_soon_threadsafe(self._ready.set)
