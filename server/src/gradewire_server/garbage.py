"""Garbage of Python's cyclic collector, looked for while no call is in flight."""

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

_COLLECT_OLD_AFTER: Final = 100
"""Looks at younger objects until old ones are looked at in any case, in place of 10: some 700 000 new objects."""
_COLLECT_EVERY_S: Final = 10.0
_COLLECT_ALL_EVERY_S: Final = 3600.0
"""Then everything is looked at once more: what is in use now may be garbage by then."""


def collect_and_keep() -> None:
    """Frees what is garbage. What is in use is not looked at again, and freed as ever when it is let go.

    To be called while no call is answered: what a call holds would be kept for long if it ended up in a cycle.
    """
    gc.collect()
    gc.freeze()


@asynccontextmanager
async def collect_when_idle(idle: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Look for garbage again and again, only when no call is in flight; afterwards all is as Python has it.

    Where a call is in flight at any time, old objects are looked at after many new ones alone. For one server in a
    process: the collector is the process's.
    """
    thresholds = gc.get_threshold()
    gc.set_threshold(*thresholds[:2], _COLLECT_OLD_AFTER)
    looking = asyncio.create_task(_look(idle))
    try:
        yield
    finally:
        looking.cancel()
        gc.unfreeze()
        gc.set_threshold(*thresholds)


async def _look(idle: Callable[[], Awaitable[None]]) -> None:
    clock = asyncio.get_running_loop().time
    all_due_s = clock() + _COLLECT_ALL_EVERY_S
    while True:
        await asyncio.sleep(_COLLECT_EVERY_S)
        await idle()
        if clock() >= all_due_s:
            gc.unfreeze()
            all_due_s = clock() + _COLLECT_ALL_EVERY_S
        collect_and_keep()
