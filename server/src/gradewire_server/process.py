"""Processes: phases of one and requests to stop it; children that are started, stopped and restarted when lost."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from enum import StrEnum
from signal import SIGHUP, SIGINT, SIGKILL, SIGTERM, Signals
from typing import Any, Final, Protocol, TypeVar, cast

from gradewire_proto.wire_rules import Backoff

R = TypeVar("R")

RESTART_BACKOFF: Final = Backoff(0.5, 30.0)
"""Waits before a process is started that replaces a lost one."""
STEADY_AFTER_S: Final = 60.0
"""Seconds that one must have run for its loss to count as the first."""


class Phase(StrEnum):
    """Loading, serving, draining (calls are still taken), stopping (calls in flight may finish)."""

    LOADING = "loading"
    SERVING = "serving"
    DRAINING = "draining"
    STOPPING = "stopping"


class Reporter(Protocol):
    """A server, or a supervisor of servers, that reports its state."""

    @property
    def ready(self) -> bool:
        """True if new callers are welcome; for any thread."""

    def report(self) -> dict[str, Any]:
        """Return the state for /healthz, with `phase`, `degraded`, `judging`; for any thread."""


class Stop:
    """Requests to stop: the first asks for an orderly end, the second for an end at once.

    Attributes:
        others_serve: Whether other processes of the server go on, so that this one may send its callers to them.
    """

    def __init__(self) -> None:
        self.requested = asyncio.Event()
        self.urgent = asyncio.Event()
        self.others_serve = False

    def listen(self, hangup: Callable[[], object]) -> None:
        """Ask to stop at SIGTERM and SIGINT, and at SIGHUP from a terminal; call `hangup` at other SIGHUPs."""
        loop = asyncio.get_running_loop()
        with_terminal = sys.stdin is not None and sys.stdin.isatty()
        for number in (SIGTERM, SIGINT):
            loop.add_signal_handler(number, self.request)
        loop.add_signal_handler(SIGHUP, self.request if with_terminal else hangup)

    def request(self) -> None:
        """Ask to stop; a second time: at once."""
        (self.urgent if self.requested.is_set() else self.requested).set()

    def leave(self) -> None:
        """Ask one process to stop while others go on; does nothing where it stops already."""
        self.others_serve = self.others_serve or not self.requested.is_set()
        self.requested.set()


async def unless(stopped: asyncio.Event, work: Coroutine[Any, Any, R], timeout_s: float | None = None) -> R | None:
    """Return the result of work, or raise its error; None where `stopped` or a time-out cuts it short."""
    working, stopping = asyncio.create_task(work), asyncio.create_task(stopped.wait())
    try:
        await asyncio.wait((working, stopping), timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        working.cancel()
        stopping.cancel()


async def start_module(
    module: str, descriptor: int, *, stdout: int | None = None, stderr: int | None = None, settings: bool = False
) -> asyncio.subprocess.Process:
    """Start `python -m MODULE DESCRIPTOR` with that open file; raise OSError where it cannot.

    It has a session of its own: Ctrl-C at the terminal is for its supervisor. It gets our variables with `settings`
    alone: a process that only computes needs no tokens and addresses.
    """
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",  # modules in the working directory are none of ours
        "-m",
        module,
        str(descriptor),
        stdin=asyncio.subprocess.PIPE,
        stdout=stdout,
        stderr=stderr,
        pass_fds=(descriptor,),
        env={
            name: value for name, value in os.environ.items() if settings or not name.upper().startswith("GRADEWIRE_")
        },
        start_new_session=True,
    )


class SupervisedProcess:
    """A process that runs one of our modules, made by `start_module`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    async def send(self, line: bytes) -> None:
        """Write a line to its input; `wait_for_exit` says where it has ended."""
        writer = cast("asyncio.StreamWriter", self._process.stdin)
        writer.write(line)
        with suppress(ConnectionError):
            await writer.drain()

    def close_input(self) -> None:
        """End its input."""
        cast("asyncio.StreamWriter", self._process.stdin).close()

    async def read_line(self) -> bytes:
        """Return a line of its output, which is a pipe; empty at its end."""
        return await cast("asyncio.StreamReader", self._process.stdout).readline()

    def signal(self, number: Signals) -> None:
        """Send a signal, unless it has ended."""
        # Not by the library's own method: that looks for an exit code first, and takes it away from who waits for it.
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    async def stop(self, timeout_s: float, by: Signals = SIGTERM) -> None:
        """Ask it to end by a signal, wait so long, end it at once then, and wait until it is gone."""
        self.signal(by)
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._process.wait()
        await self.kill()

    async def kill(self) -> None:
        """End it at once and wait until it is gone."""
        self.signal(SIGKILL)
        await self._process.wait()

    async def wait_for_exit(self) -> str:
        """Wait until it has ended; return how, as the rest of a sentence about it."""
        code = await self._process.wait()
        return f"ended with signal {-code}" if code < 0 else f"ended with exit code {code}"


async def keep_running(run_one: Callable[[], Awaitable[None]]) -> None:
    """Run one after another until cancelled; after losses that come soon, it waits longer and longer.

    Args:
        run_one: Returns when one was lost.
    """
    losses = 0
    while True:
        began_s = asyncio.get_running_loop().time()
        await run_one()
        if asyncio.get_running_loop().time() - began_s > STEADY_AFTER_S:
            losses = 0
        losses += 1
        await asyncio.sleep(RESTART_BACKOFF.wait_s(losses))
