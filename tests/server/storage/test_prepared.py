"""Synthetic answers are durable inputs: exactly what was stored, or honestly not there."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from tests.server.conftest import OpenBackends
from tests.support.servers.valkey import ValkeyServer

from gradewire_server.domain.result import Failure, Status
from gradewire_server.settings.cache import CacheConfig, DiskConfig, RedisConfig
from gradewire_server.storage.lmdb.directory import StoreDirectory
from gradewire_server.storage.lmdb.prepared import DiskPrepared
from gradewire_server.storage.prepared import MemoryPreparedStore, PreparedStore
from gradewire_server.storage.redis.client import RedisClient
from gradewire_server.storage.redis.store import RedisPrepared
from gradewire_server.storage.reference_sets import StoredReferenceSets
from gradewire_server.storage.telemetry import StorageTelemetry

_TEXT = st.text(st.characters(codec="utf-8"), max_size=8)


def in_memory(max_bytes: int = 1 << 20) -> tuple[StoredReferenceSets, MemoryPreparedStore]:
    store = MemoryPreparedStore(max_bytes)
    return StoredReferenceSets(store, namespace="a"), store


@contextlib.asynccontextmanager
async def stores(where: str, tmp_path: Path, url: str) -> AsyncIterator[tuple[PreparedStore, PreparedStore]]:
    """A store twice, on two connections where it has connections."""
    opened: list[PreparedStore] = []
    if where == "memory":
        opened = [MemoryPreparedStore(1 << 20)]
    elif where == "disk":
        opened = [DiskPrepared(StoreDirectory(tmp_path), DiskConfig(tmp_path))]
    else:
        config = RedisConfig(url, timeout_s=5, slow_s=4)
        opened = [RedisPrepared(RedisClient(config, StorageTelemetry(CollectorRegistry()))) for _ in range(2)]
    yield opened[0], opened[-1]
    for store in opened:
        await store.close()


@given(st.dictionaries(st.tuples(_TEXT, _TEXT, _TEXT), _TEXT, max_size=8))
def test_every_answer_is_found_by_its_own_names_only(entries: dict[tuple[str, str, str], str]) -> None:
    async def scenario() -> None:
        sets, _ = in_memory()
        for (reference_set, question, reference), answer in entries.items():
            assert await sets.store_prepared(reference_set, question, {reference: answer}) is None
        for (reference_set, question, reference), answer in entries.items():
            assert await sets.prepared_answers(reference_set, question, [reference]) == (answer,)
            # Names that run together alike are different names.
            moved = (reference_set + question, "", reference)
            assert await sets.prepared_answers(*moved[:2], [reference]) == (entries.get(moved),)

    asyncio.run(scenario())


async def test_another_keys_or_a_changed_answer_is_not_there() -> None:
    sets, store = in_memory()
    await sets.store_prepared("set", "q", {"one": "It is one.", "two": "It is two."})
    one, two = list(store._values)
    store._values[one], changed = store._values[two], bytearray(store._values[two])
    changed[-1] ^= 1
    store._values[two] = bytes(changed)
    assert await sets.prepared_answers("set", "q", ["one", "two", "three"]) == (None, None, None)


async def test_a_full_store_fails_and_keeps_what_it_has() -> None:
    sets, _ = in_memory(300)
    assert await sets.store_prepared("set", "q", {"r": "a"}) is None
    failure = await sets.store_prepared("set", "q", {"s": "b" * 300})
    assert isinstance(failure, Failure)
    assert failure.status is Status.UNAVAILABLE
    assert await sets.prepared_answers("set", "q", ["r", "s"]) == ("a", None)


@pytest.mark.parametrize("where", ["memory", "disk", "redis"])
async def test_what_a_set_holds_is_never_replaced(tmp_path: Path, valkey: ValkeyServer, where: str) -> None:
    async with stores(where, tmp_path, valkey.url) as (store, other):
        # Writers at the same time, on two connections where there are such: one of the answers wins, and stays.
        both = [StoredReferenceSets(each, namespace=tmp_path.name) for each in (store, other)]
        outcomes = await asyncio.gather(
            *(both[n % 2].store_prepared("set", "q", {f"r{m}": f"answer {n}"}) for m in range(5) for n in range(8))
        )
        refused = [outcome for outcome in outcomes if outcome is not None]
        assert len(refused) == 35
        assert {(failure.status, "reference_set" in failure.message) for failure in refused} == {
            (Status.INVALID_INPUT, True)
        }
        winners = [place % 8 for place, outcome in enumerate(outcomes) if outcome is None]
        kept = await both[0].prepared_answers("set", "q", [f"r{m}" for m in range(5)])
        assert kept == tuple(f"answer {winner}" for winner in winners)
        # A refused call changes nothing of what it brought along either, and elsewhere the same names are free.
        assert await both[0].store_prepared("set", "q", {"new": "It is new.", "r0": "another"}) is not None
        assert await both[0].prepared_answers("set", "q", ["new", "r0"]) == (None, f"answer {winners[0]}")
        assert await both[0].store_prepared("set", "q", {"new": "It is new.", "r0": f"answer {winners[0]}"}) is None
        assert await both[0].store_prepared("other set", "q", {"r0": "another"}) is None


@pytest.mark.parametrize("where", ["memory", "disk", "redis"])
async def test_what_is_damaged_can_be_stored_again(tmp_path: Path, valkey: ValkeyServer, where: str) -> None:
    async with stores(where, tmp_path, valkey.url) as (store, _):
        sets = StoredReferenceSets(store, namespace=tmp_path.name)
        await store.write({sets._answer_key("set", "q", "r"): b"torn"})
        assert await sets.prepared_answers("set", "q", ["r"]) == (None,)
        assert await sets.store_prepared("set", "q", {"r": "It is r.", "s": "It is s."}) is None
        assert await sets.prepared_answers("set", "q", ["r", "s"]) == ("It is r.", "It is s.")


async def test_a_full_redis_takes_the_same_content_again(tmp_path: Path) -> None:
    with ValkeyServer(tmp_path) as server:
        async with stores("redis", tmp_path, server.url) as (store, _):
            sets = StoredReferenceSets(store, namespace="a")
            assert await sets.store_prepared("set", "q", {"r": "It is r."}) is None
            server.command(b"CONFIG SET maxmemory 1\r\n")
            assert await sets.store_prepared("set", "q", {"r": "It is r."}) is None
            full, taken = (
                await sets.store_prepared("set", "q", {"s": "new"}),
                await sets.store_prepared("set", "q", {"r": "other"}),
            )
    assert full is not None
    assert taken is not None
    assert (full.status, taken.status) == (Status.UNAVAILABLE, Status.INVALID_INPUT)


async def test_on_disk_it_is_there_after_the_process_died(tmp_path: Path) -> None:
    directory = StoreDirectory(tmp_path)
    first = DiskPrepared(directory, DiskConfig(tmp_path))
    assert await first.write({b"key": b"value"}) is None
    first._environment.drop()  # nothing of `close`: as if killed
    directory._use.close()
    again = DiskPrepared(StoreDirectory(tmp_path), DiskConfig(tmp_path))  # closes the directory with itself
    assert await again.read([b"key", b"other"]) == [b"value", None]
    await again.close()


async def test_on_disk_a_full_map_fails_and_loses_nothing(tmp_path: Path) -> None:
    store = DiskPrepared(StoreDirectory(tmp_path), DiskConfig(tmp_path, prepared_max_bytes=1 << 20))
    assert await store.write({b"key": b"value"}) is None
    failure = await store.write({b"large": bytes(2 << 20)})
    assert isinstance(failure, Failure)
    assert "full" in failure.message
    assert await store.read([b"key", b"large"]) == [b"value", None]
    await store.close()


@pytest.mark.parametrize("where", ["disk", "redis"])
async def test_through_the_engine_and_a_restart(
    open_backends: OpenBackends, tmp_path: Path, valkey: ValkeyServer, where: str
) -> None:
    disk = DiskConfig(tmp_path / "cache") if where == "disk" else None
    redis = RedisConfig(valkey.url) if where == "redis" else None
    cache = CacheConfig(namespace=tmp_path.name[:60], disk=disk, redis=redis)
    engine = await open_backends(cache=cache)

    async def found(references: Sequence[str]) -> object:
        return await engine.ports.reference_sets.prepared_answers("set", "where?", references)

    assert await found(["Paris", "Lyon"]) == (None, None)
    assert await engine.ports.reference_sets.store_prepared("set", "where?", {"Paris": "It is in Paris."}) is None
    assert await engine.ports.reference_sets.store_prepared("set", "where?", {"Paris": "It is in Paris."}) is None
    assert await found(["Lyon", "Paris"]) == (None, "It is in Paris.")
    assert isinstance(await engine.ports.reference_sets.entries("set"), Failure)
    assert await engine.ports.reference_sets.store_entries("set", (("where?", ("Paris",)),)) is None
    await engine.close()
    engine = await open_backends(cache=cache)
    assert await found(["Paris"]) == ("It is in Paris.",)
    assert await engine.ports.reference_sets.entries("set") == (("where?", ("Paris",)),)
    assert await engine.ports.reference_sets.entries_revision("set") == "1"
    if where == "redis":
        keys = valkey.command(b"KEYS *prepared*\r\n")
        assert b":prepared:" in keys
