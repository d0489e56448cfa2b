"""One server process, seen from the supervisor."""

import asyncio
import signal
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from gradewire_server.concurrency.supervised import SupervisedProcess
from gradewire_server.phase import Phase
from gradewire_server.processes.link import Collect, Link
from gradewire_server.processes.member import Place
from gradewire_server.processes.start_message import StartMessage

if TYPE_CHECKING:
    from gradewire_server.processes.figures import Families

SILENT_S: Final = 30.0
"""Seconds without a beat after which a process hangs."""
START_S: Final = 120.0
"""As `SILENT_S`, until its first beat: before that it reads Python's libraries, on a disk or a machine that is slow."""
_LOOK_EVERY_S: Final = 0.1
_PAUSED_S: Final = 1.0
"""Seconds by which a look is late, from which on they do not count as silence."""
_ASK_S: Final = 1.0


class ServerProcess:
    """A process that serves; made by `start`.

    Attributes:
        MODULE: What it runs.
        report: What its last beat said; empty before the first one.
        figures: The last that are known.
    """

    MODULE: ClassVar[str] = "gradewire_server.child"

    def __init__(self, process: asyncio.subprocess.Process, name: str, end: socket.socket, totals: Collect) -> None:
        self._process = SupervisedProcess(process)
        self._name = name
        self.report: dict[str, Any] = {}
        self.figures: Families = []
        self._has_counted = False
        self._heard_s = asyncio.get_running_loop().time()
        self._link = Link(end, totals, self._beat)
        self._reading = asyncio.create_task(self._link.run())

    @classmethod
    async def start(cls, place: Place, values: Mapping[str, Any], totals: Collect) -> Self:
        """Starts one; it is ready when it says so.

        Args:
            place: Where it stands.
            values: Settings that were given as flags.
            totals: Figures of all processes, which it may ask for.

        Raises:
            OSError: No process can be made.
        """
        ours, theirs = socket.socketpair()
        ours.setblocking(False)  # noqa: FBT003 - socket takes it by position
        with theirs:
            try:
                # A session of its own: Ctrl-C at the terminal is for the supervisor.
                process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-P",  # what lies in the working directory is no module of ours
                    "-m",
                    cls.MODULE,
                    str(theirs.fileno()),
                    stdin=asyncio.subprocess.PIPE,
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,
                )
            except OSError:
                ours.close()
                raise
        assert process.stdin is not None  # noqa: S101 - for mypy: it was asked for
        process.stdin.write(StartMessage(place, values).encode())
        with suppress(ConnectionError):  # `lost` says how it ended
            await process.stdin.drain()
        process.stdin.close()
        return cls(process, cls.name_of(place), ours, totals)

    @classmethod
    def name_of(cls, place: Place) -> str:
        """What it is called in the log and in health."""
        return f"process {place.index}"

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def ready(self) -> bool:
        """Whether it takes calls."""
        return bool(self.report.get("ready"))

    @property
    def serves(self) -> bool:
        """Whether it has come up and is not ending; unlike `ready`, also where its backend is down or overloaded."""
        return self.report.get("phase") == Phase.SERVING

    async def lost(self, silent_s: float = SILENT_S) -> str:
        """Waits until it ends or hangs; returns how. It is gone by then.

        Args:
            silent_s: Without a beat for so long, it hangs; `START_S` before the first one, where that is longer.
        """
        ending = asyncio.create_task(self._process.ended())
        clock = asyncio.get_running_loop().time
        looked_s = clock()
        try:
            while not ending.done():
                await asyncio.wait((ending,), timeout=_LOOK_EVERY_S)
                now_s = clock()
                if (late_s := now_s - looked_s - _LOOK_EVERY_S) > _PAUSED_S:
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
            figures = await self._link.ask(_ASK_S)
            if not self._has_counted:  # what it says last may come before this one goes on
                self.figures = figures

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal."""
        self._process.signal(number)

    async def stop(self, timeout_s: float) -> None:
        """Lets it finish its calls, for so long at the most, and waits until it is gone."""
        await self._process.stop(timeout_s)
        await self._end_link()

    async def leave(self, timeout_s: float) -> None:
        """As `stop`, while other processes go on: it takes no more connections and sends its callers to them."""
        await self._process.stop(timeout_s, by=signal.SIGHUP)
        await self._end_link()

    async def kill(self) -> None:
        """Ends it at once and waits until it is gone."""
        await self._process.kill()
        await self._end_link()

    async def _end_link(self) -> None:
        """Reads what it has said last."""
        await asyncio.wait((self._reading,), timeout=_ASK_S)
        self._reading.cancel()

    def _beat(self, report: dict[str, Any]) -> None:
        self._heard_s = asyncio.get_running_loop().time()
        if "figures" in report:
            self.figures, self._has_counted = report["figures"], True
        else:
            self.report = report
