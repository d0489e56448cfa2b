"""Write-back is bounded in entries and in bytes, and goes on after what it had to leave out."""

import asyncio
from collections.abc import Sequence

import pytest
from prometheus_client import CollectorRegistry

from gradewire_server.domain.needs import AnswerSource, Tier
from gradewire_server.storage.keys import EntryKind
from gradewire_server.storage.second_level import Write
from gradewire_server.storage.telemetry import StorageTelemetry
from gradewire_server.storage.write_behind import WriteBehind


class Store:
    """Keeps what it is given, once it may."""

    source = AnswerSource.DISK
    available = True

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.chunks: list[list[Write]] = []

    async def read(
        self, keys: Sequence[bytes], dims: int, *, kind: EntryKind = EntryKind.SENTENCE
    ) -> list[bytes | None]:
        del dims, kind
        return [None] * len(keys)

    async def write(self, writes: Sequence[Write]) -> int:
        await self.gate.wait()
        self.chunks.append(list(writes))
        return len(writes)

    def degraded(self) -> str:
        return ""

    async def close(self) -> None:
        """Holds nothing."""


@pytest.mark.parametrize(("size", "fitting"), [(100, 10), (5 * 2048, 2), (10 * 2048 + 1, 0)])
async def test_entries_and_bytes_are_bounded(
    size: int, fitting: int, telemetry: StorageTelemetry, registry: CollectorRegistry
) -> None:
    store, written = Store(), []
    writer = WriteBehind(store, telemetry, max_pending=10, written=lambda name, tier: written.append((name, tier)))
    names = [b"%d" % number for number in range(12)]
    for name in names:
        writer.add(name, Write(name, bytes(size), Tier.REFERENCE, 1))
    dropped = registry.get_sample_value("gradewire_engine_unwritten_values_total", {"reason": "queue_full"})
    assert dropped == 12 - fitting
    store.gate.set()
    await writer.flush()
    assert written == [(name, Tier.REFERENCE) for name in names[:fitting]]
    if fitting:
        writer.add(b"later", Write(b"later", bytes(size), Tier.REFERENCE, 1))
        await writer.flush()
        assert written[-1][0] == b"later", "what was written made room"


async def test_large_entries_are_written_in_small_chunks(telemetry: StorageTelemetry) -> None:
    store = Store()
    writer = WriteBehind(store, telemetry, max_pending=65_536, written=lambda _name, _tier: None)
    for number in range(20):
        writer.add(b"%d" % number, Write(b"%d" % number, bytes(1 << 20), Tier.REFERENCE, 1, EntryKind.TOKENS))
    store.gate.set()
    await writer.flush()
    assert sum(map(len, store.chunks)) == 20
    assert max(map(len, store.chunks)) <= 5
