"""The times at which the calls of an open loop are due."""

import asyncio
from collections.abc import Iterator


def even_times(calls_per_s: float, duration_s: float) -> Iterator[float]:
    """Yield times at equal intervals on the clock of the running event loop, the first one now, and one at least."""
    began_s = asyncio.get_running_loop().time()
    calls = max(1, round(calls_per_s * duration_s))
    return (began_s + call / calls_per_s for call in range(calls))
