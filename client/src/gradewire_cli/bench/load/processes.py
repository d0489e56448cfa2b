"""Send calls from several client processes, because a single process cannot saturate a fast server."""

from __future__ import annotations

import asyncio
import math
import multiprocessing
import selectors
import signal
import time
from concurrent.futures import FIRST_EXCEPTION, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Self

from gradewire.errors import GradewireError
from gradewire_cli.bench.load.calls import LoadCaller, Objective, Offsets, Sender, StepCounts
from gradewire_cli.bench.load.content import Mix, OwnRows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from multiprocessing.synchronize import Event
    from pathlib import Path
    from types import TracebackType

    from gradewire.metrics.choice import MetricChoice
    from gradewire.transport import Endpoint

# Time between an order and its first call, long enough for all processes.
_START_AFTER_S: Final = 0.3
_STOP_POLL_S: Final = 0.2
_PROBE_IN_FLIGHT: Final = 8


class ClientProcessError(GradewireError):
    """Raised when a client process ends early and its counts are lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """The settings of a run, which are pickled into the client processes.

    Attributes:
        deadline_s: Deadline of a call, in seconds after sending.
        wait_s: Maximum time for connecting, in seconds.
        step_s: Duration of a step in seconds. None means 10 s, or up to 60 s if a step needs longer for 500 calls.
        rate_per_s: Rate of the single step in calls per second. None means a search for the knee.
        start_per_s: First rate of the search. None means half the rate that a short closed loop reaches.
    """

    endpoint: Endpoint
    metrics: MetricChoice
    rows: Mix | OwnRows
    files: Sequence[str] = ()
    client_processes: int = 1
    batch: int
    deadline_s: float
    wait_s: float
    seed: int
    objective: Objective
    step_s: float | None = None
    rate_per_s: float | None = None
    start_per_s: float | None = None
    most_per_s: float = math.inf
    metrics_url: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    outputs: Mapping[str, Path | None] = field(default_factory=dict)

    @property
    def file_rows(self) -> int | None:
        """Number of rows in the files, or None for a mix."""
        return len(self.rows) if isinstance(self.rows, OwnRows) else None


class _Order(NamedTuple):
    """An order to a client process. Without `offsets`, the process runs a closed loop.

    Times are on the monotonic clock, which all processes share.
    """

    start_s: float
    in_time_until_s: float
    offsets: Offsets | None = None


class LoadProcesses:
    """The client processes, as a context manager."""

    def __init__(self, options: LoadOptions) -> None:
        self._count = options.client_processes
        context = multiprocessing.get_context("spawn")
        self._stop = context.Event()
        self._pools = [
            ProcessPoolExecutor(1, context, _Process, (options, number, self._stop)) for number in range(self._count)
        ]

    def __enter__(self) -> Self:
        try:
            self.probe(0.0)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the processes and their calls."""
        self._stop.set()
        for pool in self._pools:
            pool.shutdown(cancel_futures=True)

    def probe(self, duration_s: float) -> StepCounts:
        """Run a closed loop in each process."""
        now_s = time.monotonic()
        return self._run([_Order(now_s, now_s + duration_s)] * self._count)

    def open_step(self, offsets: Offsets, in_time_after_s: float) -> StepCounts:
        """Run an open loop, with calls from each process in turn.

        Args:
            offsets: Due times of the calls, relative to the start.
            in_time_after_s: Seconds from the start until which a scored call counts as in time.

        Raises:
            ClientProcessError: A process ended early.
        """
        start_s = time.monotonic() + _START_AFTER_S
        parts = (offsets[number :: self._count] for number in range(self._count))
        return self._run([_Order(start_s, start_s + in_time_after_s, part) for part in parts])

    def _run(self, orders: Sequence[_Order]) -> StepCounts:
        """Give each process its order, and return the total counts. After Ctrl-C, return the counts so far."""
        runs = [pool.submit(_Process.carry_out, order) for pool, order in zip(self._pools, orders, strict=True)]
        try:
            ended, _ = wait(runs, return_when=FIRST_EXCEPTION)
        except KeyboardInterrupt:
            self._stop.set()
            ended, _ = wait(runs)
        counts = StepCounts()
        try:
            for run in ended:
                counts.add(run.result())
        except BrokenProcessPool as error:
            raise ClientProcessError("a client process ended early, so its counts are lost") from error
        counts.stopped = self._stop.is_set()
        self._stop.clear()
        return counts


class _Process:
    _current: ClassVar[_Process]

    def __init__(self, options: LoadOptions, number: int, stop: Event) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        # epoll waits in whole milliseconds, which would delay calls.
        self.runner = asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selectors.SelectSelector()))
        self._options = options
        self._items = options.rows.supply(options.seed, number, options.client_processes)
        self._stop = stop
        self._caller: LoadCaller | None = None
        _Process._current = self

    @classmethod
    def carry_out(cls, order: _Order) -> StepCounts:
        worker = cls._current
        return worker.runner.run(worker.count_calls(order))

    async def count_calls(self, order: _Order) -> StepCounts:
        """Send an order's calls until they end or the run stops. Connect before the first order."""
        options = self._options
        if self._caller is None:
            self._caller = LoadCaller(options.endpoint, options.metrics.specs, options.deadline_s)
            await self._caller.connect(options.wait_s)
        sender = Sender(self._caller, self._items, options.batch, order.in_time_until_s)
        if order.offsets is None:
            work = asyncio.create_task(sender.closed(order.in_time_until_s, _PROBE_IN_FLIGHT))
        else:
            work = asyncio.create_task(sender.open(order.start_s + offset for offset in order.offsets.tolist()))
        while not work.done() and not self._stop.is_set():
            await asyncio.wait((work,), timeout=_STOP_POLL_S)
        work.cancel()
        await asyncio.wait((work,))
        if not work.cancelled():
            work.result()
        return sender.counts
