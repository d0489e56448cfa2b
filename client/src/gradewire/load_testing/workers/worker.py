"""A client process: takes orders over a pipe, and answers each with what it counted."""

from __future__ import annotations

import asyncio
import os
import selectors
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from gradewire.errors import GradewireError
from gradewire.load_testing.calls import Caller, Connections, UnaryCaller
from gradewire.load_testing.sender import Sender, send_once
from gradewire.load_testing.stream_calls import StreamCaller
from gradewire.load_testing.workers.slices import ask_for_short_slices
from gradewire_proto.v1 import types_pb2

if TYPE_CHECKING:
    from collections.abc import Sequence
    from multiprocessing.connection import Connection

    from gradewire._transport.endpoint import Endpoint
    from gradewire.load_testing.arrivals import Offsets
    from gradewire.load_testing.content.mixes import Mix, Supply
    from gradewire.load_testing.content.own_rows import OwnRows
    from gradewire.load_testing.counts import StepCounts

CallKind = Literal["unary", "stream"]
_FILL_IN_FLIGHT: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSetup:
    """What holds for all calls of a run; pickled into the processes.

    Attributes:
        endpoint: The server.
        connections: Of each process.
        call: Calls of Score, or messages of streams.
        metrics: Serialized metric specs.
        rows: What is sent.
        batch: Items of a call.
        deadline_s: Of a call, from when it leaves.
        seed: Of all random choices.
        wait_s: How long connecting may take.
    """

    endpoint: Endpoint
    connections: int
    call: CallKind
    metrics: Sequence[bytes]
    rows: Mix | OwnRows
    batch: int
    deadline_s: float
    seed: int
    wait_s: float

    async def open(self) -> Caller:
        """Connects; raises GradewireError where that cannot be."""
        connections = Connections(self.endpoint, self.connections)
        await connections.ready(self.wait_s)
        specs = [types_pb2.MetricSpec.FromString(one) for one in self.metrics]
        kind = UnaryCaller if self.call == "unary" else StreamCaller
        return kind(connections, specs, self.deadline_s)


@dataclass(frozen=True, slots=True)
class Fill:
    """Sends items that will be repeated, each once; counts nothing.

    Attributes:
        part: Of `parts`, this process's.
    """

    part: int
    parts: int

    async def run(self, sender: Sender, setup: WorkerSetup) -> None:
        """Sends them."""
        own = setup.rows.pool()[self.part :: self.parts]
        await send_once(sender.caller, own, batch=setup.batch, in_flight=_FILL_IN_FLIGHT)


@dataclass(frozen=True, slots=True)
class Probe:
    """A closed loop, for a first guess of what the server can do."""

    duration_s: float
    in_flight: int

    async def run(self, sender: Sender, setup: WorkerSetup) -> None:
        """Sends calls."""
        del setup
        await sender.closed(self.duration_s, self.in_flight)


@dataclass(frozen=True, slots=True)
class OpenStep:
    """An open loop.

    Attributes:
        offsets: When this process's calls are due, after the start.
        start_s: On the monotonic clock, which all processes of a machine share.
        in_time_until_s: When a call has to be scored in order to count as in time, on the same clock.
    """

    offsets: Offsets
    start_s: float
    in_time_until_s: float

    async def run(self, sender: Sender, setup: WorkerSetup) -> None:
        """Sends calls."""
        del setup
        sender.in_time_until_s = self.in_time_until_s
        await sender.open(self.start_s + offset for offset in self.offsets.tolist())


@dataclass(frozen=True, slots=True)
class Stop:
    """Ends the order that is carried out; what was counted is still answered."""


Order = Fill | Probe | OpenStep


def main(pipe: Connection, setup: WorkerSetup, number: int, count: int) -> None:
    """Carries out orders until the pipe is closed. Ctrl-C of a terminal is for the process that gives the orders.

    Args:
        pipe: To the process that gives the orders.
        setup: Of the run.
        number: Of this process, from 0.
        count: Processes of the run.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ask_for_short_slices()
    # epoll waits in whole milliseconds, and every call would leave up to one too late.
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selectors.SelectSelector())) as runner:
        runner.run(_carry_out(pipe, setup, setup.rows.supply(setup.seed, number, count)))


async def _carry_out(pipe: Connection, setup: WorkerSetup, supply: Supply) -> None:
    try:
        caller = await setup.open()
    except GradewireError as error:
        pipe.send(error)
        return
    pipe.send(None)
    orders: asyncio.Queue[Order | Stop | None] = asyncio.Queue()
    asyncio.get_running_loop().add_reader(pipe.fileno(), _receive, pipe, orders)
    given = 0
    try:
        while (order := await orders.get()) is not None:
            if isinstance(order, Stop):
                continue
            given += 1
            pipe.send(await _counted(order, Sender(caller, supply(given), setup.batch), setup, orders))
    finally:
        await caller.close()


async def _counted(
    order: Order, sender: Sender, setup: WorkerSetup, orders: asyncio.Queue[Order | Stop | None]
) -> StepCounts:
    before_s = _cpu_s()
    work = asyncio.create_task(order.run(sender, setup))
    stop = asyncio.create_task(orders.get())
    await asyncio.wait((work, stop), return_when=asyncio.FIRST_COMPLETED)
    if work.done():
        stop.cancel()
        work.result()
    else:
        work.cancel()
        await asyncio.wait((work,))
        if stop.result() is None:
            orders.put_nowait(None)
    sender.counts.cpu_s = _cpu_s() - before_s
    return sender.counts


def _receive(pipe: Connection, orders: asyncio.Queue[Order | Stop | None]) -> None:
    try:
        orders.put_nowait(pipe.recv())
    except (EOFError, OSError):
        asyncio.get_running_loop().remove_reader(pipe.fileno())
        orders.put_nowait(None)


def _cpu_s() -> float:
    times = os.times()
    return times.user + times.system
