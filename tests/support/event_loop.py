"""How long the turns of an event loop take to come, while it does something else."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

_EVERY_S = 0.001


@dataclass
class Turns:
    """The longest that a turn was late, seconds."""

    latest_s: float = 0.0


@asynccontextmanager
async def taking_turns() -> AsyncIterator[Turns]:
    """Takes a turn of the running event loop every millisecond, for as long as the context lasts."""
    turns = Turns()

    async def take() -> None:
        while True:
            begun_s = time.perf_counter()
            await asyncio.sleep(_EVERY_S)
            turns.latest_s = max(turns.latest_s, time.perf_counter() - begun_s - _EVERY_S)

    taking = asyncio.create_task(take())
    await asyncio.sleep(_EVERY_S)
    try:
        yield turns
    finally:
        taking.cancel()
