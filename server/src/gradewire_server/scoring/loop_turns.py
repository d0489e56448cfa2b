"""Turns on the event loop: bulk work does one slice of Python in each round of it, however many requests it is."""

import asyncio
import time
from collections import deque
from typing import Final

from gradewire_server.domain.turn import Lane, current_turn

SLICE_S: Final = 0.002
"""Seconds of Python work after which other tasks of the event loop get their turn."""
BULK_SLICE_S: Final = 0.001
"""The same for bulk work, of which one request at a time has its turn."""


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


class LoopSlice:
    """How long one request has been at work on the event loop; begins when it is made.

    Args:
        turns: Of bulk work, shared by all that runs on the event loop.
    """

    __slots__ = ("_end_s", "_is_bulk", "_turns")

    def __init__(self, turns: LoopTurns) -> None:
        self._turns = turns
        self._is_bulk = current_turn().lane is Lane.BULK
        self.start()

    def start(self) -> None:
        """Begins a new slice: others have had the loop."""
        self._end_s = time.perf_counter() + (BULK_SLICE_S if self._is_bulk else SLICE_S)

    async def begin(self) -> None:
        """Waits for the first turn of bulk work: parts that are let in together do not all begin in one round."""
        if self._is_bulk:
            await self._turns.next()
        self.start()

    async def give_way(self) -> None:
        """Lets others have the loop where the slice is over."""
        if time.perf_counter() > self._end_s:
            await (self._turns.next() if self._is_bulk else asyncio.sleep(0))
            self.start()
