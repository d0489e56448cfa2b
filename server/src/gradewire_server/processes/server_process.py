"""Server processes and the judge host, which the supervisor starts, watches and replaces."""

import asyncio
import logging
import math
import signal
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Final, Self

from typing_extensions import override

from gradewire_server.process import Phase, SupervisedProcess, keep_running, start_module
from gradewire_server.processes.child import Position, StartMessage
from gradewire_server.processes.process_connection import Collect, MetricsJson, ProcessConnection

_log = logging.getLogger(__name__)

JUDGE_HOST: Final = "the judge host"
SILENT_S: Final = 30.0
"""Seconds without a heartbeat after which a process counts as hung."""
START_S: Final = 120.0
"""Timeout for the first heartbeat, long enough to import libraries from a slow disk."""
_PAUSE_CHECK_EVERY_S: Final = 0.1
_PAUSED_S: Final = 1.0
"""The maximum delay of a check in seconds. A longer delay means that the supervisor itself was paused."""
_ASK_S: Final = 1.0

_EXIT_CHECK_EVERY_S: Final = 0.05
LOAD_S: Final = 1800.0
"""Timeout for a new process to load during a restart, long enough for large models and slow disks."""
READY_S: Final = 120.0
"""Timeout for a loaded process to become ready, which may include waiting for backends."""


class ServerProcess(SupervisedProcess):
    """A server process or the judge host.

    Attributes:
        report: The state from the last heartbeat, if there was a heartbeat.
    """

    def __init__(self, process: asyncio.subprocess.Process, name: str, end: socket.socket, totals: Collect) -> None:
        super().__init__(process)
        self._name = name
        self.report: dict[str, Any] = {}
        self.metrics: MetricsJson = []
        self._has_counted = False
        self._heard_s = asyncio.get_running_loop().time()
        self._connection = ProcessConnection(end, totals, self._beat)
        self._reading = asyncio.create_task(self._connection.run())

    @classmethod
    async def start(
        cls, position: Position, values: Mapping[str, Any], totals: Collect, *, hosts_judges: bool = False
    ) -> Self:
        """Start a process. Its heartbeats will report when the process is ready. Raise OSError if the start fails.

        `values` contains the settings given as flags. `totals` returns all processes' metrics when the process requests
        these metrics.
        """
        module = "gradewire_server.judge_host" if hosts_judges else "gradewire_server.server_child"
        name = JUDGE_HOST if hosts_judges else f"process {position.index}"
        shared = () if hosts_judges or position.shared is None else (position.shared,)
        ours, theirs = socket.socketpair()
        ours.setblocking(False)  # noqa: FBT003 - a positional parameter of socket
        with theirs:
            try:
                child = await start_module(module, theirs.fileno(), *shared, settings=True)
            except OSError:
                ours.close()
                raise
        process = cls(child, name, ours, totals)
        await process.send(StartMessage(position, values).encode())
        process.close_input()
        return process

    @property
    def ready(self) -> bool:
        """True if the process is ready for calls."""
        return bool(self.report.get("ready"))

    @property
    def serves(self) -> bool:
        """True if the process has loaded and is not ending, even if it is not ready."""
        return self.report.get("phase") == Phase.SERVING

    async def lost(self, silent_s: float = SILENT_S) -> str:
        """Wait until the process ends, or kill it if it hangs. Return a message about the loss.

        A process hangs if it sends no heartbeat for `silent_s`. The first heartbeat may always take `START_S`.
        """
        ending = asyncio.create_task(self.wait_for_exit())
        clock = asyncio.get_running_loop().time
        looked_s = clock()
        try:
            while not ending.done():
                await asyncio.wait((ending,), timeout=_PAUSE_CHECK_EVERY_S)
                now_s = clock()
                if (late_s := now_s - looked_s - _PAUSE_CHECK_EVERY_S) > _PAUSED_S:
                    # The supervisor was paused, perhaps with its container, so it received no heartbeats.
                    self._heard_s = min(now_s, self._heard_s + late_s)
                looked_s = now_s
                allowed_s = silent_s if self.report else max(silent_s, START_S)
                if now_s - self._heard_s > allowed_s:
                    await self.kill()
                    return f"{self._name} sent no heartbeat for {allowed_s:g} s and was killed"
            return f"{self._name} {ending.result()}"
        finally:
            ending.cancel()

    async def refresh(self) -> None:
        """Request the process's metrics. If the process does not answer in time, keep the previous metrics."""
        with suppress(TimeoutError, ConnectionError):
            metrics = await self._connection.ask(_ASK_S)
            if not self._has_counted:  # the final metrics may have arrived during the request
                self.metrics = metrics

    async def leave(self, timeout_s: float) -> None:
        """Stop the process while other processes serve. The process redirects its callers to these processes."""
        await self.stop(timeout_s, by=signal.SIGHUP)

    @override
    async def kill(self) -> None:
        await super().kill()
        # First read the process's last messages.
        await asyncio.wait((self._reading,), timeout=_ASK_S)
        self._reading.cancel()

    def _beat(self, report: dict[str, Any]) -> None:
        self._heard_s = asyncio.get_running_loop().time()
        if "metrics" in report:
            self.metrics, self._has_counted = report["metrics"], True
        else:
            self.report = report


class RestartError(Exception):
    """Raised when a new process was lost or did not become ready."""


class Worker:
    """A position that one process at a time fills. For one event loop only.

    Args:
        on_exit: Function to call with a process that has ended, and with True if this process was lost.
        silent_s: Seconds without a heartbeat after which a process counts as hung.

    Attributes:
        trouble: The reason why no process serves, valid only while `serves` is False.
    """

    def __init__(  # noqa: PLR0913 - four are keyword-only
        self,
        index: int,
        start: Callable[[], Awaitable[ServerProcess]],
        *,
        stop_s: float,
        on_exit: Callable[[ServerProcess, bool], None],
        silent_s: float = SILENT_S,
        name: str = "",
    ) -> None:
        self.index = index
        self.name = name or f"process {index}"
        self._start = start
        self._stop_s = stop_s
        self._on_exit = on_exit
        self._silent_s = silent_s
        self._replace = asyncio.Event()
        self._losses, self._loss = 0, ""
        self.process: ServerProcess | None = None
        self.trouble = f"{self.name} is starting"

    @property
    def ready(self) -> bool:
        """True if the process is ready for calls."""
        return self.process is not None and self.process.ready

    @property
    def serves(self) -> bool:
        """True if the process has loaded and is not ending, even if it is not ready."""
        return self.process is not None and self.process.serves

    async def run(self) -> None:
        """Keep a process running until you cancel this call. Then let the process finish its calls."""
        await keep_running(self._run_until_lost)

    async def until_serving(self, within_s: float = math.inf) -> None:
        """Wait until the process has loaded, even if it is not ready.

        Raises:
            RestartError: A process was lost, or is still loading after `within_s`.
        """
        await self._until(lambda: self.serves, within_s, lambda: f"has been loading for {within_s:g} s")

    async def until_ready(self, within_s: float) -> None:
        """Wait until the process is ready; raise RestartError if it is lost or not ready after `within_s`."""
        await self._until(
            lambda: self.ready, within_s, lambda: f"serves but has not become ready in {within_s:g} s: {self._lacks}"
        )

    @property
    def _lacks(self) -> str:
        process = self.process
        lacks = [] if process is None else process.report.get("degraded", [])
        return "; ".join(lacks) or "the process is overloaded and refuses calls"

    async def _until(self, holds: Callable[[], bool], within_s: float, late: Callable[[], str]) -> None:
        losses = self._losses
        try:
            async with asyncio.timeout(within_s):
                while not holds():
                    if self._losses > losses:
                        raise RestartError(self._loss)  # `trouble` may already be about the next process
                    await asyncio.sleep(_EXIT_CHECK_EVERY_S)
        except TimeoutError:
            raise RestartError(f"{self.name} {late()}") from None

    async def restart(self) -> None:
        """Replace the process, and wait until the new process is ready.

        Raises:
            RestartError: The new process was lost, has not loaded after `LOAD_S`, or is not ready `READY_S` later.
        """
        old = self.process
        if old is not None:
            self._replace.set()
            while self.process is old:  # noqa: ASYNC110 - no event reports the end of a process
                await asyncio.sleep(_EXIT_CHECK_EVERY_S)
        await self.until_serving(LOAD_S)
        await self.until_ready(READY_S)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process, if there is one."""
        if self.process is not None:
            self.process.signal(number)

    async def _run_until_lost(self) -> None:
        while await self._run_one():
            pass

    async def _run_one(self) -> bool:
        """Run a process until it is lost or replaced; return True if it was replaced."""
        try:
            process = self.process = await self._start()
        except OSError as error:
            self._note_loss(f"{self.name} cannot be started: {error.strerror}")
            _log.exception("%s", self.trouble)
            return False
        self._replace.clear()  # the lost process need not be replaced any more
        self.trouble = f"{self.name} is starting"
        losing = asyncio.create_task(process.lost(self._silent_s))
        replacing = asyncio.create_task(self._replace.wait())
        end: Callable[[float], Awaitable[None]] = process.stop
        try:
            await asyncio.wait((losing, replacing), return_when=asyncio.FIRST_COMPLETED)
            if losing.done():
                self._note_loss(losing.result())
                _log.error("%s; starting a new process", self.trouble)
            else:
                self.trouble, end = f"{self.name} is being replaced", process.leave
        finally:
            lost = losing.done()
            for task in (losing, replacing):
                task.cancel()
            ending = asyncio.create_task(self._end(process, end, lost=lost))
            try:
                await asyncio.shield(ending)
            except asyncio.CancelledError:  # first wait until the process has ended
                await asyncio.wait((ending,))
                raise
        return not lost

    def _note_loss(self, how: str) -> None:
        self._losses += 1
        self._loss = self.trouble = how

    async def _end(self, process: ServerProcess, end: Callable[[float], Awaitable[None]], *, lost: bool) -> None:
        await end(self._stop_s)
        self.process = None
        self._on_exit(process, lost)
