"""A store of vectors on disk, as the engine opens one: what its tests share with the processes that they start.

Without pytest and the engine, which take seconds of processor time to import.
"""

import asyncio
from pathlib import Path

import numpy as np
from prometheus_client import CollectorRegistry

from gradewire_server.domain.needs import Tier
from gradewire_server.settings.engine import DiskConfig
from gradewire_server.storage import codec
from gradewire_server.storage.cache import StorageTelemetry, Write
from gradewire_server.storage.lmdb_environment import StoreDirectory
from gradewire_server.storage.lmdb_vectors import DiskVectors

DIMS = 384
MIB = 1 << 20
TTL_S = 100


def blob(seed: int) -> bytes:
    rows = np.random.default_rng(seed).normal(size=(1, DIMS)).astype(np.float32)
    return codec.encode_blobs(codec.round_vectors(rows)[0], np.array([False]))[0]


def write(number: int, tier: Tier = Tier.PREDICTION) -> Write:
    return Write(b"key %d" % number, blob(number), tier, DIMS)


def key(number: int) -> bytes:
    return b"key %d" % number


class Clock:
    def __init__(self) -> None:
        self.now_s = 1_000_000.0

    def __call__(self) -> float:
        return self.now_s


class Disk:
    """A store with its directory, as the engine opens them."""

    def __init__(self, root: Path, *, max_bytes: int = 8 * MIB, reference_max_bytes: int = 8 * MIB) -> None:
        self.clock = Clock()
        self.registry = CollectorRegistry()
        self.directory = StoreDirectory(root)
        config = DiskConfig(root, max_bytes=max_bytes, reference_max_bytes=reference_max_bytes)
        self.store = DiskVectors(
            self.directory, config, StorageTelemetry(self.registry), prediction_ttl_s=TTL_S, clock=self.clock
        )
        self.directory.share()

    async def close(self) -> None:
        await self.store.close()
        self.directory.close()

    async def kept(self, numbers: range) -> list[int]:
        """Which of the vectors are there; each that is must be right."""
        found = await self.store.read([key(number) for number in numbers], DIMS)
        for number, stored in zip(numbers, found, strict=True):
            assert stored is None or stored[:-1] == blob(number)[:-1]
        return [number for number, stored in zip(numbers, found, strict=True) if stored is not None]


async def fill(disk: Disk, numbers: range, tier: Tier = Tier.PREDICTION) -> None:
    for start in range(numbers.start, numbers.stop, 64):
        chunk = [write(number, tier) for number in range(start, min(start + 64, numbers.stop))]
        assert await disk.store.write(chunk) == len(chunk)


def fill_at_once(root: Path, numbers: range) -> None:
    """Fill a store of 2 MiB, as the work of a process of its own."""

    async def work() -> None:
        disk = Disk(root, max_bytes=2 * MIB)
        await fill(disk, numbers)
        await disk.close()

    asyncio.run(work())
