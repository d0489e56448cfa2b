"""Write-behind: computed vectors reach the second level in the background, bounded, and never hold up a score."""

import asyncio
import logging
from collections.abc import Callable

from gradewire_server.domain.needs import Tier
from gradewire_server.storage.second_level import SecondLevel, Write
from gradewire_server.storage.telemetry import StorageTelemetry

_log = logging.getLogger(__name__)
_CHUNK = 256
_CHUNK_BYTES = 4 << 20
_PENDING_BYTES_EACH = 2048


class WriteBehind:
    """Queue before a second level.

    Args:
        store: Where vectors go.
        telemetry: Counts what was left out.
        max_pending: Bound of the queue in entries, and times 2 KiB in bytes; what does not fit is dropped and offered
            again at the next hit.
        written: Called with name and tier of each vector that is stored.
    """

    def __init__(
        self,
        store: SecondLevel,
        telemetry: StorageTelemetry,
        *,
        max_pending: int,
        written: Callable[[bytes, Tier], None],
    ) -> None:
        self._store = store
        self._telemetry = telemetry
        self._max_pending = max_pending
        self._written = written
        self._pending: dict[bytes, Write] = {}
        self._pending_bytes = 0
        self._task: asyncio.Task[None] | None = None

    def add(self, name: bytes, write: Write) -> None:
        """Queues one vector; the stronger tier of two for one name stays."""
        if not self._store.available:
            self._telemetry.unwritten.labels("unavailable").inc()
            return
        known = self._pending.get(name)
        if known is not None:
            if known.tier < write.tier:
                self._pending[name] = write
            return
        grown = self._pending_bytes + len(write.blob)
        if len(self._pending) >= self._max_pending or grown > self._max_pending * _PENDING_BYTES_EACH:
            self._telemetry.unwritten.labels("queue_full").inc()
            return
        self._pending[name] = write
        self._pending_bytes = grown
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._drain())

    async def flush(self) -> None:
        """Returns when all that was queued is written or given up."""
        if self._task is not None:
            await asyncio.shield(self._task)

    async def _drain(self) -> None:
        while self._pending:
            names = self._next()
            writes = [self._pending[name] for name in names]
            try:
                kept = await self._store.write(writes)
            except Exception:  # noqa: BLE001 - a defect of a store must not stop what comes after
                _log.exception("writing %d vectors failed", len(writes))
                kept = 0
            for position, (name, write) in enumerate(zip(names, writes, strict=True)):
                if self._pending.get(name) is write:
                    del self._pending[name]
                    self._pending_bytes -= len(write.blob)
                if position < kept:
                    self._written(name, write.tier)
            if kept < len(writes):
                self._telemetry.unwritten.labels("failed").inc(len(writes) - kept)

    def _next(self) -> list[bytes]:
        names, size = [], 0
        for name, write in self._pending.items():
            names.append(name)
            size += len(write.blob)
            if len(names) == _CHUNK or size > _CHUNK_BYTES:
                break
        return names
