"""Permits bound what is in flight; a request that does not fit is refused before any work is done for it."""

import asyncio
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from gradewire_server.requests.errors import OverloadedError

_MIN_RETRY_S: Final = 0.05
_UNKNOWN_RETRY_S: Final = 0.2
_MAX_RETRY_S: Final = 5.0
_RATE_WEIGHT: Final = 0.2
"""Weight of the newest measurement in the moving average of items (or bytes) finished per second."""


class Permits:
    """Counts one kind of thing in flight; used on one event loop only.

    What is larger than the whole limit is let in when nothing else is in flight: otherwise it could never be served.
    """

    def __init__(self, limit: int, unit: str) -> None:
        self.limit = limit
        self._unit = unit
        self._taken = 0
        self._waiting: deque[tuple[asyncio.Future[None], int]] = deque()
        self._rate_per_s = 0.0
        self._finished = 0
        self._rate_since = time.monotonic()

    @property
    def taken(self) -> int:
        """How many are in flight now."""
        return self._taken

    def take(self, count: int) -> None:
        """Takes `count` permits at once, which `release` gives back; errors as `hold`."""
        taken = self._taken
        if taken and taken + count > self.limit:
            raise OverloadedError(
                f"{taken} {self._unit} are in flight, {count} more exceed the limit of {self.limit}; come back later",
                retry_after_s=self._retry_after_s(),
            )
        self._taken = taken + count

    @contextmanager
    def hold(self, count: int) -> Iterator[None]:
        """Takes `count` permits for the block, at once; raises OverloadedError where there are not enough."""
        self.take(count)
        try:
            yield
        finally:
            self.release(count)

    async def acquire(self, count: int) -> None:
        """Waits for permits, first come first served; for streams, which are slowed down and not turned away."""
        if not self._waiting and self._fits(count):
            self._taken += count
            return
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((granted, count))
        try:
            await granted
        except asyncio.CancelledError:
            if not granted.cancelled():  # cancelled after the permits were handed over
                self.release(count)
            self._grant()
            raise

    def release(self, count: int) -> None:
        """Gives permits back, and hands them to those that wait."""
        self._taken -= count
        self._finished += count
        if self._waiting:
            self._grant()

    def _fits(self, count: int) -> bool:
        return self._taken == 0 or self._taken + count <= self.limit

    def _grant(self) -> None:
        while self._waiting:
            granted, count = self._waiting[0]
            if granted.cancelled():
                self._waiting.popleft()
            elif self._fits(count):
                self._waiting.popleft()
                self._taken += count
                granted.set_result(None)
            else:
                return

    def _retry_after_s(self) -> float:
        """Time in which about half of what is in flight will be done, at the rate of the last seconds."""
        now = time.monotonic()
        elapsed_s = now - self._rate_since
        if elapsed_s >= 1.0:
            rate = self._finished / elapsed_s
            self._rate_per_s += (rate - self._rate_per_s) * (_RATE_WEIGHT if self._rate_per_s else 1.0)
            self._finished, self._rate_since = 0, now
        if not self._rate_per_s:
            return _UNKNOWN_RETRY_S
        return min(_MAX_RETRY_S, max(_MIN_RETRY_S, 0.5 * self._taken / self._rate_per_s))
