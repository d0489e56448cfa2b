"""A server process and the judge host, seen from the supervisor: started, watched, replaced when lost."""

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
"""Seconds without a beat after which a process hangs."""
START_S: Final = 120.0
"""Seconds as `SILENT_S`, until its first beat: before that it reads Python's libraries, on a slow disk or machine."""
_PAUSE_CHECK_EVERY_S: Final = 0.1
_PAUSED_S: Final = 1.0
"""Seconds by which a look is late, from which on they do not count as silence."""
_ASK_S: Final = 1.0

_EXIT_CHECK_EVERY_S: Final = 0.05
LOAD_S: Final = 1800.0
"""Seconds that a new process may load in a restart. It beats meanwhile, or it is lost: large models on slow disks."""
READY_S: Final = 120.0
"""Seconds from when it serves until it is ready: it has loaded by then, and waits for servers that it asks."""


class ServerProcess(SupervisedProcess):
    """A process that serves, or runs the judges of those that do; made by `start`.

    `report` is what its last beat said; empty before the first one.
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
        """Start one, with the settings that were given as flags; it is ready when it says so.

        `totals` gives the metrics of all processes, which it may ask for. One that hosts judges takes no calls of
        callers. Raise OSError where no process can be made.
        """
        module = "gradewire_server.judge_host" if hosts_judges else "gradewire_server.server_child"
        name = JUDGE_HOST if hosts_judges else f"process {position.index}"
        ours, theirs = socket.socketpair()
        ours.setblocking(False)  # noqa: FBT003 - socket takes it by position
        with theirs:
            try:
                child = await start_module(module, theirs.fileno(), settings=True)
            except OSError:
                ours.close()
                raise
        process = cls(child, name, ours, totals)
        await process.send(StartMessage(position, values).encode())
        process.close_input()
        return process

    @property
    def ready(self) -> bool:
        """True if it takes calls."""
        return bool(self.report.get("ready"))

    @property
    def serves(self) -> bool:
        """True if it has come up and is not ending; unlike `ready`, also where its backend is down or overloaded."""
        return self.report.get("phase") == Phase.SERVING

    async def lost(self, silent_s: float = SILENT_S) -> str:
        """Waits until it ends or hangs; returns how. It is gone by then.

        Args:
            silent_s: Without a beat for so long, it hangs; `START_S` before the first one, where that is longer.
        """
        ending = asyncio.create_task(self.wait_for_exit())
        clock = asyncio.get_running_loop().time
        looked_s = clock()
        try:
            while not ending.done():
                await asyncio.wait((ending,), timeout=_PAUSE_CHECK_EVERY_S)
                now_s = clock()
                if (late_s := now_s - looked_s - _PAUSE_CHECK_EVERY_S) > _PAUSED_S:
                    # The supervisor stood still too (a paused container): nobody can have been heard meanwhile.
                    self._heard_s = min(now_s, self._heard_s + late_s)
                looked_s = now_s
                allowed_s = silent_s if self.report else max(silent_s, START_S)
                if now_s - self._heard_s > allowed_s:
                    await self.kill()
                    return f"{self._name} was silent for {allowed_s:g} s and was ended"
            return f"{self._name} {ending.result()}"
        finally:
            ending.cancel()

    async def refresh(self) -> None:
        """Asks for its figures; where it does not answer soon, those known before stay."""
        with suppress(TimeoutError, ConnectionError):
            metrics = await self._connection.ask(_ASK_S)
            if not self._has_counted:  # what it says last may come before this one goes on
                self.metrics = metrics

    async def leave(self, timeout_s: float) -> None:
        """Stop it while other processes go on: it takes no more connections and sends its callers to them."""
        await self.stop(timeout_s, by=signal.SIGHUP)

    @override
    async def kill(self) -> None:
        await super().kill()
        # What it has said last is read first.
        await asyncio.wait((self._reading,), timeout=_ASK_S)
        self._reading.cancel()

    def _beat(self, report: dict[str, Any]) -> None:
        self._heard_s = asyncio.get_running_loop().time()
        if "metrics" in report:
            self.metrics, self._has_counted = report["metrics"], True
        else:
            self.report = report


class RestartError(Exception):
    """The process that was to take another one's place was lost or is not ready; the message says which, and why."""


class Worker:
    """One process at a time. Lives on one event loop.

    `on_exit` is called with each process that is gone, and whether it was lost; after `silent_s` without a beat it
    hangs. `trouble` says why it does not serve, where it does not.
    """

    def __init__(  # noqa: PLR0913 - what one place is, all but two by name
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
        """True if its process takes calls."""
        return self.process is not None and self.process.ready

    @property
    def serves(self) -> bool:
        """True if its process has come up and is not ending; it may lack something that a restart is to mend."""
        return self.process is not None and self.process.serves

    async def run(self) -> None:
        """Keeps one running until cancelled, which lets it finish its calls."""
        await keep_running(self._run_until_lost)

    async def until_serving(self, within_s: float = math.inf) -> None:
        """Waits until its process has come up, whatever that lacks.

        Raises:
            RestartError: One was lost before, or it still loads after so many seconds.
        """
        await self._until(lambda: self.serves, within_s, lambda: f"has been loading for {within_s:g} s")

    async def until_ready(self, within_s: float) -> None:
        """Wait as `until_serving` does, until its process has all that it needs."""
        await self._until(
            lambda: self.ready, within_s, lambda: f"serves and has not become ready in {within_s:g} s: {self._lacks}"
        )

    @property
    def _lacks(self) -> str:
        process = self.process
        lacks = [] if process is None else process.report.get("degraded", [])
        return "; ".join(lacks) or "it refuses calls because it is overloaded"

    async def _until(self, holds: Callable[[], bool], within_s: float, late: Callable[[], str]) -> None:
        losses = self._losses
        try:
            async with asyncio.timeout(within_s):
                while not holds():
                    if self._losses > losses:
                        raise RestartError(self._loss)  # `trouble` may tell of the next one by now
                    await asyncio.sleep(_EXIT_CHECK_EVERY_S)
        except TimeoutError:
            raise RestartError(f"{self.name} {late()}") from None

    async def restart(self) -> None:
        """Replaces its process by another one, and waits until that is ready.

        Raises:
            RestartError: It was lost before, has not come up after `LOAD_S`, or is not ready `READY_S` after that.
        """
        old = self.process
        if old is not None:
            self._replace.set()
            while self.process is old:  # noqa: ASYNC110 - it ends in its own time
                await asyncio.sleep(_EXIT_CHECK_EVERY_S)
        await self.until_serving(LOAD_S)
        await self.until_ready(READY_S)

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to its process."""
        if self.process is not None:
            self.process.signal(number)

    async def _run_until_lost(self) -> None:
        while await self._run_one():
            pass

    async def _run_one(self) -> bool:
        """Runs one until it is lost or replaced; returns whether it was replaced."""
        try:
            process = self.process = await self._start()
        except OSError as error:
            self._note_loss(f"{self.name} cannot be started: {error.strerror}")
            _log.exception("%s", self.trouble)
            return False
        self._replace.clear()  # asked for while the one before was lost, it is done with this one
        self.trouble = f"{self.name} is starting"
        losing = asyncio.create_task(process.lost(self._silent_s))
        replacing = asyncio.create_task(self._replace.wait())
        end: Callable[[float], Awaitable[None]] = process.stop
        try:
            await asyncio.wait((losing, replacing), return_when=asyncio.FIRST_COMPLETED)
            if losing.done():
                self._note_loss(losing.result())
                _log.error("%s; starting another one", self.trouble)
            else:
                self.trouble, end = f"{self.name} is being replaced", process.leave
        finally:
            lost = losing.done()
            for task in (losing, replacing):
                task.cancel()
            ending = asyncio.create_task(self._end(process, end, lost=lost))
            try:
                await asyncio.shield(ending)
            except asyncio.CancelledError:  # the end is waited for all the same
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
