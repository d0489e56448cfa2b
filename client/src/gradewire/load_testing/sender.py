"""Sends the calls of a step and counts them; what a client process does."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from gradewire.load_testing.counts import REFUSED, STOPPED, CallTimes, StepCounts
from gradewire.load_testing.open_loop import open_loop

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from gradewire.load_testing.calls import Caller
    from gradewire.load_testing.content.mixes import Items
    from gradewire_proto.v1 import types_pb2

_REFUSED_WAIT_S: Final = 0.2
_REFUSED_FOR_S: Final = 20.0


@dataclass(slots=True)
class Sender:
    """Sends calls, and counts them into `counts`.

    Attributes:
        caller: Makes them.
        items: What they hold.
        batch: Items of each.
        in_time_until_s: When a call has to be scored in order to count as in time, on the event loop's clock.
    """

    caller: Caller
    items: Items
    batch: int
    in_time_until_s: float = float("inf")
    counts: StepCounts = field(default_factory=StepCounts)

    async def open(self, due_s: Iterable[float]) -> None:
        """Calls that are due at these times of the event loop's clock."""
        await open_loop(due_s, self.send)

    async def closed(self, duration_s: float, in_flight: int) -> None:
        """So many calls at any time: what comes back in a second is about what the server can do."""
        loop = asyncio.get_running_loop()
        end_s = loop.time() + duration_s

        async def one_after_another() -> None:
            while loop.time() < end_s:
                await self.send(loop.time())

        await _several(in_flight, one_after_another)

    async def send(self, due_s: float) -> None:
        """One call that was due at this time."""
        clock = asyncio.get_running_loop().time
        drawn = [self.items.next() for _ in range(self.batch)]
        counts = self.counts
        counts.due += 1
        counts.sent_items += len(drawn)
        counts.repeated += sum(one.repeated for one in drawn)
        counts.again += sum(one.again for one in drawn)
        counts.words += sum(one.words for one in drawn)
        left_s = clock()
        counts.lag.record(left_s - due_s)
        try:
            ended = await self.caller.call([one.item for one in drawn])
        except asyncio.CancelledError:
            counts.codes[STOPPED] += 1
            raise
        counts.count(ended, CallTimes(due_s, left_s, clock()), len(drawn), self.in_time_until_s)


async def send_once(caller: Caller, items: list[types_pb2.Item], *, batch: int, in_flight: int) -> None:
    """Sends each item once, and again while the server has no room for it; counts nothing.

    Whatever else goes wrong with one shows in the steps, where it is sent again and counted; so does a server that
    refuses everything for 20 s, as one does whose quota is used up: what is left then is not sent.
    """
    clock = asyncio.get_running_loop().time
    taken_s = clock()
    left = iter([items[begin : begin + batch] for begin in range(0, len(items), batch)])

    async def one_after_another() -> None:
        nonlocal taken_s
        for call in left:
            while (await caller.call(call)).code == REFUSED:
                if clock() - taken_s > _REFUSED_FOR_S:
                    return
                await asyncio.sleep(_REFUSED_WAIT_S)
            taken_s = clock()

    await _several(in_flight, one_after_another)


async def _several(count: int, run: Callable[[], Awaitable[None]]) -> None:
    async def one() -> None:
        await run()

    async with asyncio.TaskGroup() as tasks:
        for _ in range(count):
            tasks.create_task(one())
