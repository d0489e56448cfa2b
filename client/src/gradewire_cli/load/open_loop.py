"""An open loop: calls start on a schedule, whether or not earlier ones have returned.

A closed loop sends the next call when the last one is answered. While the server stalls it sends nothing, so the stall
shows in one latency only, although many callers would have waited (coordinated omission). Here every call is made, and
its latency counts from when it was due.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from gradewire_cli.load.calls import STOPPED, CallResult, StepCounts

if TYPE_CHECKING:
    from gradewire_cli.load.content import SentItem
    from gradewire_proto.v1 import types_pb2

Offsets = NDArray[np.float64]
"""float64[calls]: when each is due, ascending, seconds after the start."""
Send = Callable[[float], Awaitable[None]]


class Caller(Protocol):
    """A maker of calls, of any number at a time."""

    async def call(self, items: Sequence[types_pb2.Item]) -> CallResult:
        """Make one call with these items."""
        ...


def poisson(rate_per_s: float, duration_s: float, seed: int) -> Offsets:
    """Return arrivals of a Poisson process: independent exponential gaps, as of callers who know nothing of each other.

    The number of calls varies by its square root; the same seed gives the same calls.
    """
    source = np.random.default_rng(seed)
    most = int(rate_per_s * duration_s + 10 * (rate_per_s * duration_s) ** 0.5 + 20)
    offsets: Offsets = np.cumsum(source.exponential(1 / rate_per_s, most))
    return offsets[offsets < duration_s]


def constant(rate_per_s: float, duration_s: float) -> Offsets:
    """Return arrivals at equal intervals, the first at once."""
    return np.arange(max(1, round(rate_per_s * duration_s)), dtype=np.float64) / rate_per_s


async def open_loop(due_s: Iterable[float], send: Send) -> None:
    """Start `send(due)` at each due time, and return when all have ended.

    Args:
        due_s: Times at which calls are due, ascending, seconds on the clock of the running event loop.
        send: Makes the call that was due then; gets the due time even if it starts late.

    Raises:
        BaseExceptionGroup: A `send` raised; the others were cancelled.
    """
    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as calls:
        for due in due_s:
            # Sleep even when late: answers must be read in between, or all later calls would be late too.
            await asyncio.sleep(max(0.0, due - loop.time()))
            calls.create_task(_started(send, due))


async def _started(send: Send, due: float) -> None:
    await send(due)


@dataclass(slots=True)
class Sender:
    """A sender of calls that counts them into `counts`.

    Attributes:
        caller: Makes the calls.
        items: An endless supply of items.
        batch: Items of each call.
        in_time_until_s: The time by which a call has to be scored to count as in time, on the event loop's clock.
    """

    caller: Caller
    items: Iterator[SentItem]
    batch: int
    in_time_until_s: float = float("inf")
    counts: StepCounts = field(default_factory=StepCounts)

    async def open(self, due_s: Iterable[float]) -> None:
        """Send calls that are due at these times of the event loop's clock."""
        await open_loop(due_s, self.send)

    async def closed(self, until_s: float, in_flight: int) -> None:
        """Keep so many calls in flight: the number returned per second is about what the server can do."""
        clock = asyncio.get_running_loop().time

        async def one_after_another() -> None:
            while clock() < until_s:
                await self.send(clock())

        async with asyncio.TaskGroup() as tasks:
            for _ in range(in_flight):
                tasks.create_task(one_after_another())

    async def send(self, due_s: float) -> None:
        """Send one call that was due at this time."""
        clock = asyncio.get_running_loop().time
        items = [next(self.items) for _ in range(self.batch)]
        counts = self.counts
        counts.due += 1
        counts.sent_items += len(items)
        counts.repeated += sum(each.repeated for each in items)
        counts.lag_s.append(clock() - due_s)
        try:
            result = await self.caller.call([each.item for each in items])
        except asyncio.CancelledError:
            counts.codes[STOPPED] += 1
            raise
        now_s = clock()
        in_time = now_s <= self.in_time_until_s
        counts.count(result, items=len(items), latency_s=now_s - due_s, in_time=in_time)
