"""Turns on the event loop: bulk work does one slice of Python in each round of it, however many requests it is."""

import asyncio
from collections import deque


class LoopTurns:
    """Who does the next slice of bulk work. Lives on one event loop."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._scheduled = False

    async def next(self) -> None:
        """Waits for a turn; turns are given in order, one in each round of the loop."""
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append(turn)
        if not self._scheduled:
            self._scheduled = True
            loop.call_soon(self._give)
        await turn

    def _give(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.cancelled():
                turn.set_result(None)
                break
        self._scheduled = bool(self._waiting)
        if self._scheduled:
            asyncio.get_running_loop().call_soon(self._give)
