"""The second level on disk: there after a restart, honest about time, never in the way."""

import asyncio
import multiprocessing
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import numpy as np
import pytest
from tests.server.conftest import OpenBackends
from tests.server.storage.disk_stores import DIMS, MIB, TTL_S, Disk, fill, fill_at_once, key, write

from gradewire_server.domain.needs import AnswerSource, Tier
from gradewire_server.settings.engine import CacheConfig, DiskConfig

OpenDisk = Callable[..., Disk]


@pytest.fixture
async def open_disk(tmp_path: Path) -> AsyncIterator[OpenDisk]:
    opened = []

    def open_(**limits: int) -> Disk:
        opened.append(Disk(tmp_path, **limits))
        return opened[-1]

    yield open_
    for disk in opened:
        if not disk.directory._use.closed:
            await disk.close()


async def test_what_is_written_is_there_after_a_restart(open_disk: OpenDisk) -> None:
    disk = open_disk()
    await fill(disk, range(10))
    await fill(disk, range(10, 20), Tier.REFERENCE)
    await disk.close()
    again = open_disk()
    blobs = await again.store.read([key(number) for number in range(21)], DIMS)
    tiers = [None if stored is None else stored[-1] for stored in blobs]
    assert tiers == [Tier.PREDICTION] * 10 + [Tier.REFERENCE] * 10 + [None]
    assert await again.kept(range(21)) == list(range(20))


async def test_predictions_expire_and_references_do_not(open_disk: OpenDisk) -> None:
    disk = open_disk()
    await fill(disk, range(2))
    await fill(disk, range(2, 4), Tier.REFERENCE)
    disk.clock.now_s += TTL_S - 1
    assert await disk.kept(range(4)) == [0, 1, 2, 3]
    disk.clock.now_s += 1
    assert await disk.kept(range(4)) == [2, 3]


async def test_a_full_map_begins_a_new_generation_and_the_oldest_goes(open_disk: OpenDisk, tmp_path: Path) -> None:
    disk = open_disk(max_bytes=2 * MIB)
    await fill(disk, range(4000))
    names = sorted(path.name for path in (tmp_path / "v1").glob("predictions-*"))
    assert len(names) == 2
    assert names[0] != "predictions-000001"
    kept = await disk.kept(range(4000))
    assert kept == list(range(kept[0], 4000))  # the newest ones, without a gap
    assert 700 < len(kept) < 2600
    used = sum(path.stat().st_size for path in (tmp_path / "v1").glob("predictions-*/data.mdb"))
    assert used <= 2 * MIB


async def test_predictions_never_push_out_references(open_disk: OpenDisk) -> None:
    disk = open_disk(max_bytes=2 * MIB)
    await fill(disk, range(100), Tier.REFERENCE)
    await fill(disk, range(100, 4000))
    assert await disk.kept(range(100)) == list(range(100))


async def test_a_hit_in_the_older_generation_is_copied_forward(open_disk: OpenDisk) -> None:
    disk = open_disk(max_bytes=2 * MIB)
    await fill(disk, range(20))
    filler = 1000
    for _ in range(60):  # several rotations, with a hit on the twenty and a write in between
        assert await disk.kept(range(20)) == list(range(20))
        await fill(disk, range(filler, filler + 64))
        filler += 64
    assert max(disk.store._generations._open) > 3


async def test_when_the_references_map_is_full_they_go_with_the_predictions(open_disk: OpenDisk) -> None:
    disk = open_disk(reference_max_bytes=MIB)
    await fill(disk, range(2000), Tier.REFERENCE)
    assert await disk.kept(range(2000)) == list(range(2000))
    blobs = await disk.store.read([key(1999)], DIMS)
    assert blobs[0] is not None
    assert blobs[0][-1] == Tier.REFERENCE


async def test_a_wrong_value_is_a_counted_miss(open_disk: OpenDisk) -> None:
    disk = open_disk()
    await fill(disk, range(2), Tier.REFERENCE)
    with disk.store._references.on_writer(write=True) as transaction:
        transaction.put(key(0), transaction.get(key(1)) or b"")
    assert await disk.kept(range(2)) == [1]
    rejected = disk.registry.get_sample_value("gradewire_engine_store_rejected_values_total", {"store": "disk"})
    assert rejected == 1


async def test_processes_share_a_directory_and_survive_each_others_rotation(
    open_disk: OpenDisk, tmp_path: Path
) -> None:
    disk = open_disk(max_bytes=2 * MIB)
    await fill(disk, range(100))
    # spawn: the other process opens the directory by itself, as another server would.
    context = multiprocessing.get_context("spawn")
    others = [
        context.Process(target=fill_at_once, args=(tmp_path, range(start, start + 2000))) for start in (10_000, 20_000)
    ]
    for other in others:
        other.start()
    for other in others:
        await asyncio.to_thread(other.join)
        assert other.exitcode == 0
    # Both have rotated more than once, so the generation this process holds is unlinked: it goes on with it…
    assert list(disk.store._generations._open) == [1]
    assert await disk.kept(range(100)) == list(range(100))
    # …until it is full, and then joins the others.
    await fill(disk, range(100, 2000))
    assert max(disk.store._generations._open) > 3
    assert (await disk.kept(range(2000)))[-1] == 1999
    assert not disk.store.degraded()


async def test_a_forked_child_leaves_its_parents_maps_alone(open_disk: OpenDisk) -> None:
    disk = open_disk()
    await fill(disk, range(3))
    disk.directory._pid = os.getpid() + 1  # what a child sees
    assert await disk.store.read([key(0)], DIMS) == [None]
    assert await disk.store.write([write(5)]) == 0
    assert disk.store.degraded() == "disk: opened before a fork"
    disk.directory._pid = os.getpid()
    assert await disk.kept(range(6)) == [0, 1, 2]


async def test_a_full_disk_fails_no_score(open_disk: OpenDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = open_disk()

    def no_space(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(disk.store._generations, "write", no_space)
    assert await disk.store.write([write(1)]) == 0
    assert disk.store.degraded() == "disk: writing fails"
    assert await disk.kept(range(2)) == []


async def test_the_engine_restarts_warm_with_equal_vectors(open_backends: OpenBackends, tmp_path: Path) -> None:
    texts = [f"text number {number}" for number in range(30)]
    tiers = [Tier.REFERENCE] * 10 + [Tier.PREDICTION] * 10 + [Tier.WINDOW] * 10
    cache = CacheConfig(disk=DiskConfig(tmp_path / "cache"))
    engine = await open_backends(cache=cache)
    cold = await engine.ports.embeddings.embed("", texts, tiers)
    await engine.close()
    again = await open_backends(cache=cache)
    warm = await again.ports.embeddings.embed("", texts, tiers)
    assert warm.sources.tolist() == [AnswerSource.DISK] * 20 + [AnswerSource.COMPUTED] * 10  # windows are not written
    assert np.array_equal(warm.values[:20], cold.values[:20])
    assert np.abs(warm.values[20:] - cold.values[20:]).max() < 1e-3
    assert again.health().degraded == ()


async def test_a_window_asked_for_as_a_reference_is_stored_after_all(
    open_backends: OpenBackends, tmp_path: Path
) -> None:
    cache = CacheConfig(disk=DiskConfig(tmp_path / "cache"))
    engine = await open_backends(cache=cache)
    await engine.ports.embeddings.embed("", ["paris", "rome"], [Tier.WINDOW] * 2)
    await engine.ports.embeddings.embed("", ["paris", "rome"], [Tier.REFERENCE, Tier.PREDICTION])
    await engine.ports.embeddings.embed_tokens("", ["a prediction read by its tokens"], [Tier.PREDICTION])
    await engine.close()
    again = await open_backends(cache=cache)
    texts = ["paris", "rome", "a prediction read by its tokens"]
    reply = await again.ports.embeddings.embed("", texts, [Tier.REFERENCE] * 3)
    assert reply.sources.tolist() == [AnswerSource.DISK] * 3
    await again.close()  # asked for as references, all three are pinned now
    third = Disk(tmp_path / "cache")
    with third.store._references.reading() as transaction:
        assert transaction.stat()["entries"] == 3
    await third.close()


async def test_namespaces_share_nothing(open_backends: OpenBackends, tmp_path: Path) -> None:
    for namespace in ("a", "b"):
        cache = CacheConfig(namespace=namespace, disk=DiskConfig(tmp_path / "cache"))
        engine = await open_backends(cache=cache)
        reply = await engine.ports.embeddings.embed("", ["secret"], [Tier.REFERENCE])
        assert reply.sources.tolist() == [AnswerSource.COMPUTED]
        assert await engine.ports.reference_sets.prepared_answers("set", "q", ["r"]) == (None,)
        assert await engine.ports.reference_sets.store_prepared("set", "q", {"r": "It is r."}) is None
        await engine.close()
