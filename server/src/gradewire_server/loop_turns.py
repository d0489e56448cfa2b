"""Let long work on the event loop pause for other tasks, and for threads that wait for the interpreter.

A busy event loop releases the interpreter's lock (GIL) for only a few microseconds at a time, too short for a thread to
take the lock. Without longer pauses, the encoders' threads would wait until the loop is idle. A request with 1,000
items and 32 metrics delayed all other callers by 0.34 s without pauses, and by 0.04 s with pauses.
"""

import asyncio
import time
from collections import deque
from typing import Final

from gradewire_server.domain.caller import Lane, current_turn

SLICE_S: Final = 0.002
"""Seconds of Python work after which other tasks on the event loop get a turn."""
BULK_SLICE_S: Final = 0.001
"""Like `SLICE_S`, but for bulk work. Only one bulk request at a time has a turn."""


def _let_threads_run() -> None:
    time.sleep(0)  # releases the GIL during a system call, so that a waiting thread can take it


async def give_way() -> None:
    """Let other tasks on the event loop and other threads run once."""
    _let_threads_run()
    await asyncio.sleep(0)


class LoopTurns:
    """The order in which bulk work gets its turns on one event loop."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._scheduled = False

    async def next(self) -> None:
        """Wait for a turn. Turns are granted in order, one in each round of the loop."""
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
    """The time that a request may occupy the event loop without a pause. It starts at construction."""

    __slots__ = ("_end_s", "_is_bulk", "_turns")

    def __init__(self, turns: LoopTurns) -> None:
        self._turns = turns
        self._is_bulk = current_turn().lane is Lane.BULK
        self.start()

    def start(self) -> None:
        """Start a new slice after other tasks have had a turn."""
        self._end_s = time.perf_counter() + (BULK_SLICE_S if self._is_bulk else SLICE_S)

    async def begin(self) -> None:
        """Start the first slice. Bulk work first waits for a turn, so that its parts do not all start in one round."""
        if self._is_bulk:
            await self._turns.next()
        self.start()

    @property
    def is_over(self) -> bool:
        """True if `give_way` gives other tasks a turn. A call of `give_way` for each item would take longer."""
        return time.perf_counter() > self._end_s

    async def give_way(self) -> None:
        """Give other tasks a turn if the slice is over."""
        if self.is_over:
            if self._is_bulk:
                _let_threads_run()
                await self._turns.next()
            else:
                await give_way()
            self.start()
