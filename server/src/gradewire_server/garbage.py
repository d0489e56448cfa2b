"""When Python looks for garbage in cycles: seldom, and when no call is in flight.

By itself Python looks through everything that has become old whenever a quarter of it is new, and the event loop stands
still meanwhile: with some thousand remembered results 25 to 125 ms, every other second under overload
(docs/adr/0039-garbage.md). Calls leave next to nothing in cycles, so what is looked for is what was overlooked.
"""

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count
from typing import Final

_OLD_AFTER: Final = 100
"""Looks at younger objects until old ones are looked at in any case, in place of 10: some 700 000 new objects."""
_EVERY_S: Final = 10.0
_ALL_EVERY: Final = 360
"""Looks until everything is looked at once more, an hour at least: what is in use now may be garbage by then."""


def collect_and_keep() -> None:
    """Frees what is garbage. What is in use is not looked at again, and freed as ever when it is let go.

    To be called while no call is in flight: what a call holds would be kept for long if it ended up in a cycle.
    """
    gc.collect()
    gc.freeze()


@asynccontextmanager
async def collected_at_rest(idle: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Has garbage looked for again and again, always when no call is in flight; afterwards all is as Python has it.

    Where a call is in flight at any time, old objects are looked at after many new ones alone.

    Args:
        idle: Waits until no call is in flight.
    """
    thresholds = gc.get_threshold()
    gc.set_threshold(*thresholds[:2], _OLD_AFTER)
    looking = asyncio.create_task(_look(idle))
    try:
        yield
    finally:
        looking.cancel()
        gc.unfreeze()
        gc.set_threshold(*thresholds)


async def _look(idle: Callable[[], Awaitable[None]]) -> None:
    for looks in count(1):
        await asyncio.sleep(_EVERY_S)
        await idle()
        if looks % _ALL_EVERY == 0:
            gc.unfreeze()
        collect_and_keep()
