"""The client processes of a run: started together, given orders, and ended whatever happens."""

from __future__ import annotations

import multiprocessing
import time
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from gradewire.errors import GradewireError
from gradewire.load_testing.counts import StepCounts
from gradewire.load_testing.workers.worker import OpenStep, Order, Stop, WorkerSetup, main

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from multiprocessing.process import BaseProcess
    from types import TracebackType

    from gradewire.load_testing.arrivals import Offsets

# From the order to the first call: all processes must have it by then.
_START_AFTER_S: Final = 0.3
_TOLD_EVERY_S: Final = 0.5
_STOP_S: Final = 10.0
_END_S: Final = 5.0


class ClientProcessError(GradewireError):
    """A client process ended or hangs, so that what it counted is lost."""


class OrderRun(NamedTuple):
    """What all processes counted, and whether the user interrupted it."""

    counts: StepCounts
    stopped: bool


class LoadProcesses:
    """Client processes, as a context manager.

    Args:
        setup: Of all of them.
        count: How many.
    """

    def __init__(self, setup: WorkerSetup, count: int) -> None:
        self._setup = setup
        self.count = count
        self._pipes: list[Connection] = []
        self._processes: list[BaseProcess] = []

    def __enter__(self) -> Self:
        """Starts them; returns when all are connected.

        Raises:
            GradewireError: One cannot connect, or ended at once.
        """
        context = multiprocessing.get_context("spawn")
        try:
            for number in range(self.count):
                ours, theirs = context.Pipe()
                process = context.Process(target=main, args=(theirs, self._setup, number, self.count), daemon=True)
                process.start()
                theirs.close()
                self._pipes.append(ours)
                self._processes.append(process)
            self._wait_for_connections()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Ends them."""
        self.close()

    def close(self) -> None:
        """Ends them: a closed pipe asks, then signals do."""
        for pipe in self._pipes:
            pipe.close()
        for end in (None, "terminate", "kill"):
            deadline_s = time.monotonic() + _END_S
            for process in self._processes:
                if end is not None and process.is_alive():
                    getattr(process, end)()
                process.join(max(0.0, deadline_s - time.monotonic()))
        self._pipes, self._processes = [], []

    def open_step(self, offsets: Offsets, in_time_after_s: float, tell: Callable[[float], None]) -> OrderRun:
        """An open loop, in which the processes take turns.

        Args:
            offsets: When calls are due, after the start.
            in_time_after_s: When a call has to be scored in order to count as in time, after the start.
            tell: Told every half second how many seconds have passed.
        """
        start_s = time.monotonic() + _START_AFTER_S
        parts = (offsets[number :: self.count] for number in range(self.count))
        return self.run([OpenStep(part, start_s, start_s + in_time_after_s) for part in parts], tell)

    def run(self, orders: Sequence[Order], tell: Callable[[float], None]) -> OrderRun:
        """Has each process carry out its order; Ctrl-C stops them, and what they counted until then comes back.

        Raises:
            ClientProcessError: A process ended.
        """
        began_s = time.monotonic()
        for pipe, order in zip(self._pipes, orders, strict=True):
            pipe.send(order)
        counts, waiting, stopped = StepCounts(), set(range(self.count)), False
        stop_at_s = float("inf")
        while waiting:
            try:
                ready = wait([self._pipes[number] for number in waiting], _TOLD_EVERY_S)
                for number in [number for number in waiting if self._pipes[number] in ready]:
                    said = self._said(number)
                    waiting.discard(number)
                    if isinstance(said, StepCounts):
                        counts.add(said)
                tell(time.monotonic() - began_s)
            except KeyboardInterrupt:
                if stopped:
                    raise
                stopped, stop_at_s = True, time.monotonic() + _STOP_S
                for number in waiting:
                    self._pipes[number].send(Stop())
            if time.monotonic() > stop_at_s:
                raise ClientProcessError("a client process does not stop: its counts are lost")
        return OrderRun(counts, stopped)

    def _wait_for_connections(self) -> None:
        for number in range(self.count):
            if isinstance(said := self._said(number), GradewireError):
                raise said

    def _said(self, number: int) -> object:
        try:
            return self._pipes[number].recv()
        except (EOFError, OSError) as error:
            process = self._processes[number]
            process.join(_END_S)
            raise ClientProcessError(f"client process {number} ended with exit code {process.exitcode}") from error
