"""Messages of a stream in memory: they count from before they are parsed until their last result is taken."""

from collections import deque
from typing import Final

from gradewire_server.requests.admission.permits import Permits

_STREAM_SHARE: Final = 8
"""One stream holds an eighth of what all may hold, at the most."""


class StreamMemory:
    """What one stream holds of the memory of all streams. Lives on one event loop.

    Args:
        shared: Memory of all streams, in bytes.
        limit_bytes: How much that is.
    """

    def __init__(self, shared: Permits, limit_bytes: int) -> None:
        self._shared = shared
        self._own = Permits(max(1, limit_bytes // _STREAM_SHARE), "bytes of a stream")
        self._held: deque[tuple[int, int]] = deque()
        self._items = 0
        self._done = 0

    def in_work(self) -> bool:
        """Whether results of a message are still to come or to be taken."""
        return bool(self._held)

    async def take(self, size_bytes: int, items: int) -> None:
        """Waits until there is room for a message.

        Args:
            size_bytes: What it takes, parsed.
            items: It leaves when so many more items are done; without any it does not stay.
        """
        if not items:
            return
        await self._own.acquire(size_bytes)
        try:
            await self._shared.acquire(size_bytes)
        except BaseException:
            self._own.release(size_bytes)
            raise
        self._items += items
        self._held.append((self._items, size_bytes))

    def done(self, items: int) -> None:
        """So many items have their last result, and the reader has it."""
        self._done += items
        while self._held and self._held[0][0] <= self._done:
            self._release(self._held.popleft()[1])

    def close(self) -> None:
        """Gives all of it back."""
        while self._held:
            self._release(self._held.popleft()[1])

    def _release(self, size_bytes: int) -> None:
        self._own.release(size_bytes)
        self._shared.release(size_bytes)
