"""An open loop: calls start on a schedule, whether or not earlier ones are back.

A closed loop sends the next call when the last one is answered. While the server stalls it sends nothing, so the stall
shows in one latency only, although many callers would have waited (coordinated omission). Here every call is made, and
its latency counts from when it was due.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

Send = Callable[[float], Awaitable[None]]


async def open_loop(due_s: Iterable[float], send: Send) -> None:
    """Starts `send(due)` at each due time, and returns when all have ended.

    Args:
        due_s: When calls are due, ascending, seconds on the clock of the running event loop.
        send: Makes the call that was due then; told the due time even where it starts late.

    Raises:
        BaseExceptionGroup: A `send` raised; the others were cancelled.
    """
    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as calls:
        for due in due_s:
            # With 0 where it is late already: answers must be read in between, or all later calls would be late too.
            await asyncio.sleep(max(0.0, due - loop.time()))
            calls.create_task(_started(send, due))


async def _started(send: Send, due: float) -> None:
    await send(due)
