"""When Python looks for garbage in cycles: seldom, and when no call is in flight.

By itself Python looks through everything that has become old whenever a quarter of it is new, and the event loop stands
still meanwhile: with some thousand remembered results 25 to 125 ms, every other second under overload
(docs/adr/0039-garbage.md). Calls leave nothing in cycles that was found, so what is looked for is what was overlooked.
"""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Final

_THRESHOLDS: Final = (700, 10, 100)
"""As Python's own, but for the last: old objects are looked at after 700 000 new ones, in case calls do leave some."""
_EVERY_S: Final = 10.0
_PATIENCE_S: Final = 60.0
"""Seconds to wait for a moment without calls."""
_ALL_EVERY: Final = 360
"""Looks until everything is looked at once more, about an hour: what was in use at one look may be garbage by then."""


def collect_and_keep() -> None:
    """Frees what is garbage. The rest stays: what is old now is not looked at again, and freed when it is let go."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)


async def collect_at_rest(idle: Callable[[], Awaitable[None]]) -> None:
    """Does so again and again, at moments without calls where there are some.

    Args:
        idle: Waits until no call is in flight.
    """
    looks = count(1)
    while True:
        await asyncio.sleep(_EVERY_S)
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await idle()
        except TimeoutError:
            pass  # what is new is looked at all the same; the rest can wait for a better moment
        else:
            if next(looks) % _ALL_EVERY == 0:
                gc.unfreeze()
        collect_and_keep()
