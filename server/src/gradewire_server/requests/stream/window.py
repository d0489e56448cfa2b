"""The window of a stream: how many of its items may be in work, results that nobody has taken yet included."""

import asyncio


class Window:
    """Counts room for items; one reader waits for it, many give it back. Used on one event loop."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._taken = 0
        self._room = asyncio.Event()
        self._room.set()

    async def acquire(self, count: int) -> None:
        """Waits until `count` items fit; more than the whole window fit when it is empty."""
        while self._taken and self._taken + count > self._size:
            self._room.clear()
            await self._room.wait()
        self._taken += count

    def release(self, count: int) -> None:
        """Gives room back."""
        self._taken -= count
        self._room.set()
