"""The phases of a process, requests to stop it, and child processes that are started, stopped and restarted."""

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
"""Waits before a lost process is replaced."""
STEADY_AFTER_S: Final = 60.0
"""Seconds after which the loss of a process counts as its first one again."""


class Phase(StrEnum):
    """Loading, serving, draining (calls are still accepted), stopping (calls in flight may finish)."""

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
    """A request to stop: in order the first time, at once the second time.

    Attributes:
        others_serve: True if other processes of the server go on, so that this one may send its callers to them.
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
        """Ask this process to stop while others go on; does nothing if it is already stopping."""
        self.others_serve = self.others_serve or not self.requested.is_set()
        self.requested.set()


async def unless(stopped: asyncio.Event, work: Coroutine[Any, Any, R], timeout_s: float | None = None) -> R | None:
    """Return the result of `work`, or raise its error; cancel it and return None after `stopped` or a timeout."""
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
    """Start `python -m MODULE DESCRIPTOR` with that file descriptor open; raise OSError if that fails.

    The process gets its own session, so that Ctrl-C at the terminal reaches only its supervisor. It gets the
    GRADEWIRE_ variables only with `settings`, because a process that only computes needs no tokens or addresses.
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
        pass_fds=(descriptor,),
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
        """Process id."""
        return self._process.pid

    async def send(self, line: bytes) -> None:
        """Write a line to its input; if it has ended, only `wait_for_exit` reports that."""
        writer = cast("asyncio.StreamWriter", self._process.stdin)
        writer.write(line)
        with suppress(ConnectionError):
            await writer.drain()

    def close_input(self) -> None:
        """End its input."""
        cast("asyncio.StreamWriter", self._process.stdin).close()

    async def read_line(self) -> bytes:
        """Return a line of its piped output; empty at the end."""
        return await cast("asyncio.StreamReader", self._process.stdout).readline()

    def signal(self, number: Signals) -> None:
        """Send a signal, unless it has ended."""
        # asyncio's own method polls for the exit code first, and a waiting task would then never receive it.
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    async def stop(self, timeout_s: float, by: Signals = SIGTERM) -> None:
        """Ask it to end with a signal; kill it after the timeout, and wait until it is gone."""
        self.signal(by)
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._process.wait()
        await self.kill()

    async def kill(self) -> None:
        """Kill it and wait until it is gone."""
        self.signal(SIGKILL)
        await self._process.wait()

    async def wait_for_exit(self) -> str:
        """Wait until it has ended; return a phrase for messages, such as "ended with exit code 1"."""
        code = await self._process.wait()
        return f"ended with signal {-code}" if code < 0 else f"ended with exit code {code}"


async def keep_running(run_one: Callable[[], Awaitable[None]]) -> None:
    """Run `run_one`, which returns when a process was lost, again and again until cancelled.

    After losses in quick succession, it waits longer and longer.
    """
    losses = 0
    while True:
        began_s = asyncio.get_running_loop().time()
        await run_one()
        if asyncio.get_running_loop().time() - began_s > STEADY_AFTER_S:
            losses = 0
        losses += 1
        await asyncio.sleep(RESTART_BACKOFF.wait_s(losses))
