"""A process's phases, requests to stop it, and functions to start, stop and restart child processes."""

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
"""Pauses before a lost process is restarted."""
STEADY_AFTER_S: Final = 60.0
"""After a run of at least this many seconds, a lost process is restarted after the shortest pause again."""


class ProcessLostError(Exception):
    """Raised when this process can no longer do its work, so that another process must replace it."""


class Phase(StrEnum):
    """A process's phase. A draining process still accepts calls. A stopping process only finishes calls in flight."""

    LOADING = "loading"
    SERVING = "serving"
    DRAINING = "draining"
    STOPPING = "stopping"


class Reporter(Protocol):
    """A server, or a supervisor of servers, that reports its state."""

    @property
    def ready(self) -> bool:
        """True if the server wants new callers. Any thread may read this property."""

    def report(self) -> dict[str, Any]:
        """Return the state for /healthz, with `phase`, `degraded` and `judging`. Any thread may call this method."""


class Stop:
    """A request to stop. Calls in flight may then finish. A second, urgent request ends these calls.

    Attributes:
        others_serve: True if other server processes keep serving, so that callers may move to them.
    """

    def __init__(self) -> None:
        self.requested = asyncio.Event()
        self.urgent = asyncio.Event()
        self.others_serve = False

    def listen(self, hangup: Callable[[], object]) -> None:
        """Request a stop at SIGTERM, SIGINT and, in a terminal, SIGHUP. Without a terminal, SIGHUP calls `hangup`."""
        loop = asyncio.get_running_loop()
        with_terminal = sys.stdin is not None and sys.stdin.isatty()
        for number in (SIGTERM, SIGINT):
            loop.add_signal_handler(number, self.request)
        loop.add_signal_handler(SIGHUP, self.request if with_terminal else hangup)

    def request(self) -> None:
        """Request a stop. The second call requests an urgent stop."""
        (self.urgent if self.requested.is_set() else self.requested).set()

    def leave(self) -> None:
        """Request a stop while other processes keep serving. Do nothing if a stop was already requested."""
        self.others_serve = self.others_serve or not self.requested.is_set()
        self.requested.set()


async def unless(stopped: asyncio.Event, work: Coroutine[Any, Any, R], timeout_s: float | None = None) -> R | None:
    """Return the result of `work`. If `stopped` is set or time is up first, cancel `work` and return None."""
    working, stopping = asyncio.create_task(work), asyncio.create_task(stopped.wait())
    try:
        await asyncio.wait((working, stopping), timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        working.cancel()
        stopping.cancel()


async def start_module(
    module: str,
    descriptor: int,
    *others: int,
    stdout: int | None = None,
    stderr: int | None = None,
    settings: bool = False,
) -> asyncio.subprocess.Process:
    """Start `python -m MODULE DESCRIPTOR` with that file descriptor and `others` open; raise OSError if this fails.

    The process gets its own session, so that Ctrl-C in the terminal signals only the supervisor. The process gets
    the GRADEWIRE_ variables only if `settings` is True. A process that only computes needs no tokens or addresses.
    """
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",  # never import modules from the working directory
        "-m",
        module,
        str(descriptor),
        stdin=asyncio.subprocess.PIPE,
        stdout=stdout,
        stderr=stderr,
        pass_fds=(descriptor, *others),
        env={
            name: value for name, value in os.environ.items() if settings or not name.upper().startswith("GRADEWIRE_")
        },
        start_new_session=True,
    )


class SupervisedProcess:
    """A child process that `start_module` started."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        """The process ID."""
        return self._process.pid

    async def send(self, line: bytes) -> None:
        """Write a line to the process's input. An ended process is no error here; `wait_for_exit` reports it."""
        writer = cast("asyncio.StreamWriter", self._process.stdin)
        writer.write(line)
        with suppress(ConnectionError):
            await writer.drain()

    def close_input(self) -> None:
        """Close the process's input."""
        cast("asyncio.StreamWriter", self._process.stdin).close()

    async def read_line(self) -> bytes:
        """Return a line of the process's piped output, or b"" at the end."""
        return await cast("asyncio.StreamReader", self._process.stdout).readline()

    def signal(self, number: Signals) -> None:
        """Send a signal to the process, unless it has ended."""
        # asyncio's method would first poll for the exit code, which a waiting task would then never get.
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    async def stop(self, timeout_s: float, by: Signals = SIGTERM) -> None:
        """Signal the process to end, kill it after the timeout, and wait until it has ended."""
        self.signal(by)
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._process.wait()
        await self.kill()

    async def kill(self) -> None:
        """Kill the process and wait until it has ended."""
        self.signal(SIGKILL)
        await self._process.wait()

    async def wait_for_exit(self) -> str:
        """Wait until the process has ended. Return a phrase for messages, such as "ended with exit code 1"."""
        code = await self._process.wait()
        return f"ended with signal {-code}" if code < 0 else f"ended with exit code {code}"


async def keep_running(run_one: Callable[[], Awaitable[None]]) -> None:
    """Run `run_one` again and again until cancelled. `run_one` returns when its process is lost.

    Losses in quick succession make the pauses between runs longer.
    """
    losses = 0
    while True:
        began_s = asyncio.get_running_loop().time()
        await run_one()
        if asyncio.get_running_loop().time() - began_s > STEADY_AFTER_S:
            losses = 0
        losses += 1
        await asyncio.sleep(RESTART_BACKOFF.wait_s(losses))
