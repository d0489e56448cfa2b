"""Processes that are watched over: how one is ended, and how another one takes its place."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from signal import SIGKILL, SIGTERM, Signals
from typing import Final

from gradewire_server.concurrency.backoff import Backoff

_BACKOFF: Final = Backoff(base_s=0.5, cap_s=30.0)
_STEADY_AFTER_S: Final = 60.0
"""Seconds that one must have run for its loss to count as the first."""


class SupervisedProcess:
    """A process that was started here.

    Args:
        process: It.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """As of `subprocess`: negative for a signal; None while it runs."""
        return self._process.returncode

    def signal(self, number: Signals) -> None:
        """Sends a signal; does nothing where it has ended."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)

    async def stop(self, timeout_s: float, by: Signals = SIGTERM) -> None:
        """Asks it to end by a signal, waits so long, ends it at once then, and waits until it is gone."""
        self.signal(by)
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._process.wait()
        await self.kill()

    async def kill(self) -> None:
        """Ends it at once and waits until it is gone."""
        self.signal(SIGKILL)
        await self._process.wait()

    async def ended(self) -> str:
        """Waits until it has ended; returns how, as the rest of a sentence about it."""
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
        if asyncio.get_running_loop().time() - began_s > _STEADY_AFTER_S:
            losses = 0
        losses += 1
        await asyncio.sleep(_BACKOFF.wait_s(losses))
