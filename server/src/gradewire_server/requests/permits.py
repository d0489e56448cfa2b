"""Permits for what may be in flight: items, bytes, streams, and messages that wait for a quota."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

from gradewire_server.requests.errors import OverloadedError

_NO_PERMIT_RETRY_S: Final = 0.5
"""Hint where permits are used up: others give theirs back within about this time."""
_PARTS_OF_LIMIT: Final = 4
"""Parts of the bytes of slowed messages; one tenant holds one part at the most, or one message."""


class Permits:
    """Counts one kind of thing in flight; used on one event loop only.

    What is larger than the whole limit is let in when nothing else is in flight: otherwise it could never be served.
    `taken` are the permits in flight now.
    """

    def __init__(self, limit: int, unit: str) -> None:
        self.limit = limit
        self._unit = unit
        self.taken = 0
        self._waiting: deque[tuple[asyncio.Future[None], int]] = deque()

    def take(self, count: int) -> None:
        """Takes `count` permits at once, which `release` gives back; errors as `hold`."""
        taken = self.taken
        if taken and taken + count > self.limit:
            raise OverloadedError(
                f"{taken} {self._unit} are in flight, {count} more exceed the limit of {self.limit}; come back later",
                retry_after_s=_NO_PERMIT_RETRY_S,
            )
        self.taken = taken + count

    @contextmanager
    def hold(self, count: int) -> Iterator[None]:
        """Takes `count` permits for the block, at once; raises OverloadedError where there are not enough."""
        self.take(count)
        try:
            yield
        finally:
            self.release(count)

    @asynccontextmanager
    async def wait_for(self, count: int) -> AsyncIterator[None]:
        """Waits for `count` permits, and holds them for the block."""
        await self.acquire(count)
        try:
            yield
        finally:
            self.release(count)

    async def acquire(self, count: int) -> None:
        """Waits for permits, first come first served; for streams, which are slowed down and not turned away."""
        if not self._waiting and self._fits(count):
            self.taken += count
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
        self.taken -= count
        if self._waiting:
            self._grant()

    def _fits(self, count: int) -> bool:
        return self.taken == 0 or self.taken + count <= self.limit

    def _grant(self) -> None:
        while self._waiting:
            granted, count = self._waiting[0]
            if granted.cancelled():
                self._waiting.popleft()
            elif self._fits(count):
                self._waiting.popleft()
                self.taken += count
                granted.set_result(None)
            else:
                return


class SlowedMessages:
    """Messages that were received and wait for a quota. Lives on one event loop."""

    def __init__(self, limit_bytes: int) -> None:
        self._all = Permits(limit_bytes, "bytes of messages that wait for quotas")
        self._share_bytes = max(1, limit_bytes // _PARTS_OF_LIMIT)
        self._by_tenant: dict[str, Permits] = {}

    @property
    def taken(self) -> int:
        """Bytes that wait now."""
        return self._all.taken

    @contextmanager
    def hold(self, tenant: str, size_bytes: int) -> Iterator[None]:
        """Hold a tenant's message for the block; raise OverloadedError where there is no room for it."""
        own = self._by_tenant.get(tenant)
        if own is None:
            own = self._by_tenant[tenant] = Permits(self._share_bytes, "bytes of messages that wait for the quota")
        try:
            with own.hold(size_bytes), self._all.hold(size_bytes):
                yield
        finally:
            if not own.taken:
                self._by_tenant.pop(tenant, None)
