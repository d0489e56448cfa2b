"""Tools for concurrent work: back-off, circuit breaker, single flight, child processes, phases and requests to stop."""

import asyncio
import contextvars
import os
import random
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from signal import SIGKILL, SIGTERM, Signals
from typing import Any, Final, Generic, Self, TypeVar, cast


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential, with full jitter: many callers that failed together do not come back together.

    Attributes:
        base_s: Upper bound of the first wait; each further one's is twice as high.
        cap_s: Upper bound of all of them.
        uniform: Source of randomness, as `random.uniform`.
    """

    base_s: float = 0.5
    cap_s: float = 8.0
    uniform: Callable[[float, float], float] = field(default=random.uniform)

    def wait_s(self, attempt: int, asked_s: float | None = None) -> float:
        """Seconds to wait.

        Args:
            attempt: How many have failed, 1 or more.
            asked_s: What the server asks for: never less than that is waited.
        """
        jitter_s = self.uniform(0, min(self.cap_s, self.base_s * 2.0 ** min(attempt - 1, 30)))
        return jitter_s if asked_s is None else asked_s + min(jitter_s, self.base_s)


class BreakerState(StrEnum):
    """State of a breaker."""

    CLOSED = "closed"
    HALF_OPEN = "half_open"
    OPEN = "open"


class Breaker:
    """Counts failures within a window; knows nothing of what it guards.

    Closed, work goes on. `failures_to_open` failures within `window_s` open it: callers leave the backend alone. Its
    owner probes then (`probing`), and the probe's outcome closes it or opens it again.

    Args:
        failures_to_open: See above, 1 or more.
        window_s: See above.
        clock: Monotonic seconds.
        changed: Called with every new state.
    """

    def __init__(
        self,
        *,
        failures_to_open: int,
        window_s: float,
        clock: Callable[[], float],
        changed: Callable[[BreakerState], None],
    ) -> None:
        self._window_s = window_s
        self._clock = clock
        self._changed = changed
        self._failures: deque[float] = deque(maxlen=failures_to_open)
        self.state = BreakerState.CLOSED

    @property
    def closed(self) -> bool:
        """Whether the backend may be used."""
        return self.state is BreakerState.CLOSED

    def succeeded(self) -> None:
        """A call went well; closes a breaker that was probing."""
        if self.state is BreakerState.HALF_OPEN:
            self._failures.clear()
            self._become(BreakerState.CLOSED)

    def failed(self) -> None:
        """A call failed or took too long."""
        if self.state is BreakerState.HALF_OPEN:
            self._become(BreakerState.OPEN)
            return
        now_s = self._clock()
        self._failures.append(now_s)
        full = len(self._failures) == self._failures.maxlen
        if self.closed and full and now_s - self._failures[0] <= self._window_s:
            self._become(BreakerState.OPEN)

    def open(self) -> None:
        """The backend is known to be of no use now, whatever was counted."""
        if self.state is not BreakerState.OPEN:
            self._become(BreakerState.OPEN)

    def probing(self) -> None:
        """An open breaker's owner tries the backend once; the next outcome decides."""
        if self.state is BreakerState.OPEN:
            self._become(BreakerState.HALF_OPEN)

    def _become(self, state: BreakerState) -> None:
        self.state = state
        self._changed(state)


K = TypeVar("K", bound=Hashable)
R = TypeVar("R")


class SingleFlight(Generic[K, R]):
    """Work under way, by key. Belongs to one event loop.

    The work belongs to nobody who asks for it: one who gives up takes it from none of the others, and the next one
    need not begin again.
    """

    def __init__(self) -> None:
        self._tasks: dict[K, asyncio.Task[R]] = {}

    def __contains__(self, key: K) -> bool:
        return key in self._tasks

    async def result(
        self, key: K, work: Callable[[], Coroutine[Any, Any, R]], *, context: contextvars.Context | None = None
    ) -> R:
        """What the work of that key gives, or raises; it is begun, as by `begin`, unless it is under way."""
        return await asyncio.shield(self._tasks.get(key) or self.begin(key, work, context=context))

    def begin(
        self, key: K, work: Callable[[], Coroutine[Any, Any, R]], *, context: contextvars.Context | None = None
    ) -> "asyncio.Task[R]":
        """Begins work that is not under way; whoever asks for it from now on joins.

        Args:
            key: Its name.
            work: Called at once.
            context: What it runs in; None: in a copy of the caller's.
        """
        task = self._tasks[key] = asyncio.get_running_loop().create_task(work(), context=context)
        task.add_done_callback(lambda _: self._tasks.pop(key, None))
        return task

    async def wait(self) -> None:
        """Returns when what is under way now has ended, however it ends."""
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()))

    async def cancel(self) -> None:
        """Cancels what is under way and waits for its end."""
        for task in self._tasks.values():
            task.cancel()
        await self.wait()


RESTART_BACKOFF: Final = Backoff(base_s=0.5, cap_s=30.0)
"""Waits before a process is started that replaces a lost one."""
STEADY_AFTER_S: Final = 60.0
"""Seconds that one must have run for its loss to count as the first."""


class SupervisedProcess:
    """A process that runs one of our modules, in a session of its own: Ctrl-C at the terminal is for its supervisor.

    Args:
        process: Made by `start`.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(
        cls,
        module: str,
        descriptor: int,
        *,
        stdout: int | None = None,
        stderr: int | None = None,
        settings: bool = False,
    ) -> Self:
        """Start `python -m MODULE DESCRIPTOR`; raise OSError where no process can be made.

        Args:
            module: Name of the module.
            descriptor: Number of an open file that the process inherits.
            stdout: Destination of its output, as `subprocess` has it; None: that of this process.
            stderr: The same for its errors.
            settings: Whether it gets our variables: a process that only computes needs no tokens and addresses.
        """
        return cls(
            await asyncio.create_subprocess_exec(
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
                    name: value
                    for name, value in os.environ.items()
                    if settings or not name.upper().startswith("GRADEWIRE_")
                },
                start_new_session=True,
            )
        )

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
    """Runs one after another until cancelled; after losses that come soon, it waits longer and longer.

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


class Phase(StrEnum):
    """Loading, serving, draining (calls are still taken), stopping (calls in flight may finish)."""

    LOADING = "loading"
    SERVING = "serving"
    DRAINING = "draining"
    STOPPING = "stopping"


class Stop:
    """Requests to stop: the first asks for an orderly end, the second for an end at once.

    Attributes:
        others_serve: Whether other processes of the server go on, so that this one may send its callers to them.
    """

    def __init__(self) -> None:
        self.requested = asyncio.Event()
        self.urgent = asyncio.Event()
        self.others_serve = False

    def request(self) -> None:
        """Asks to stop; a second time: at once."""
        (self.urgent if self.requested.is_set() else self.requested).set()

    def leave(self) -> None:
        """Asks one process to stop while others go on; does nothing where it stops already."""
        self.others_serve = self.others_serve or not self.requested.is_set()
        self.requested.set()
