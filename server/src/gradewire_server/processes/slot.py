"""The place of one server process: when that is lost another one takes it, and a restart in order replaces it."""

import asyncio
import logging
import math
import signal
from collections.abc import Awaitable, Callable
from typing import Final

from gradewire_server.concurrency.supervised import keep_running
from gradewire_server.processes.server_process import SILENT_S, ServerProcess

_log = logging.getLogger(__name__)
_LOOK_EVERY_S: Final = 0.05
LOAD_S: Final = 1800.0
"""Seconds that a new process may load in a restart. It beats meanwhile, or it is lost: large models on slow disks."""
READY_S: Final = 120.0
"""Seconds from when it serves until it is ready: it has loaded by then, and waits for servers that it asks."""


class RestartError(Exception):
    """The process that was to take another one's place was lost or is not ready; the message says which, and why."""


class Slot:
    """One process at a time. Lives on one event loop.

    Args:
        index: Of its processes.
        start: Starts one.
        stop_s: How long one may take to stop.
        ended: Told each process that is gone, and whether it was lost.
        silent_s: Without a beat for so long, a process hangs.
        name: What its process is called; empty: by its number.

    Attributes:
        process: The one there is now; None while there is none.
        trouble: Why it does not serve, where it does not.
    """

    def __init__(  # noqa: PLR0913 - what one place is, all but two by name
        self,
        index: int,
        start: Callable[[], Awaitable[ServerProcess]],
        *,
        stop_s: float,
        ended: Callable[[ServerProcess, bool], None],
        silent_s: float = SILENT_S,
        name: str = "",
    ) -> None:
        self.index = index
        self.name = name or f"process {index}"
        self._start = start
        self._stop_s = stop_s
        self._ended = ended
        self._silent_s = silent_s
        self._replace = asyncio.Event()
        self._losses, self._loss = 0, ""
        self.process: ServerProcess | None = None
        self.trouble = f"{self.name} is starting"

    @property
    def ready(self) -> bool:
        """Whether its process takes calls."""
        return self.process is not None and self.process.ready

    @property
    def serves(self) -> bool:
        """Whether its process has come up and is not ending; it may lack something that a restart is to mend."""
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
        """As `until_serving`, until its process has all that it needs."""
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
                    await asyncio.sleep(_LOOK_EVERY_S)
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
                await asyncio.sleep(_LOOK_EVERY_S)
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
        end = process.stop
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
            await _whole(asyncio.create_task(self._end(process, end, lost=lost)))
        return not lost

    def _note_loss(self, how: str) -> None:
        self._losses += 1
        self._loss = self.trouble = how

    async def _end(self, process: ServerProcess, end: Callable[[float], Awaitable[None]], *, lost: bool) -> None:
        await end(self._stop_s)
        self.process = None
        self._ended(process, lost)


async def _whole(task: asyncio.Task[None]) -> None:
    """Waits until a task is done, also where the waiting is cancelled."""
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait((task,))
        raise
