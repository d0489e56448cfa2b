"""A set's corpus is exactly what was stored, in every store, or a failure: never less in silence."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from tests.support.fakes.lying_redis import Lie, LyingRedis
from tests.support.servers.valkey import ValkeyServer

from gradewire_server.domain.needs import ReferenceEntries
from gradewire_server.domain.result import Failure, Status
from gradewire_server.settings.cache import DiskConfig, RedisConfig
from gradewire_server.storage import reference_sets
from gradewire_server.storage.lmdb.directory import StoreDirectory
from gradewire_server.storage.lmdb.prepared import DiskPrepared
from gradewire_server.storage.prepared import MemoryPreparedStore, PreparedStore
from gradewire_server.storage.redis import store as redis_store
from gradewire_server.storage.redis.client import RedisClient
from gradewire_server.storage.redis.store import RedisPrepared
from gradewire_server.storage.reference_sets import StoredReferenceSets
from gradewire_server.storage.telemetry import StorageTelemetry

_TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
_ENTRIES = st.lists(st.tuples(_TEXT, st.lists(_TEXT, min_size=1, max_size=3).map(tuple)), max_size=6)
WHERE = ("memory", "disk", "redis", "cluster")
A, B, C = ("q", ("a",)), ("q", ("b", "c")), ("", ("a",))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ValkeyServer]:
    with ValkeyServer(tmp_path_factory.mktemp("cluster"), cluster=True) as server:
        yield server


@contextlib.asynccontextmanager
async def opened(where: str, tmp_path: Path, *servers: ValkeyServer) -> AsyncIterator[PreparedStore]:
    store: PreparedStore = MemoryPreparedStore(1 << 20)
    if where == "disk":
        store = DiskPrepared(StoreDirectory(tmp_path), DiskConfig(tmp_path))
    elif where in {"redis", "cluster"}:
        url = servers[where == "cluster"].url
        config = RedisConfig(url, cluster=where == "cluster", timeout_s=5, slow_s=4)
        store = RedisPrepared(RedisClient(config, StorageTelemetry(CollectorRegistry())))
    yield store
    await store.close()


def failed(answer: object) -> Status | None:
    return answer.status if isinstance(answer, Failure) else None


async def found(sets: StoredReferenceSets, reference_set: str = "set") -> set[tuple[str, tuple[str, ...]]]:
    entries = await sets.entries(reference_set)
    assert not isinstance(entries, Failure)
    assert len(set(entries)) == len(entries)
    return set(entries)


@given(st.dictionaries(_TEXT, st.lists(_ENTRIES, max_size=3), max_size=3))
def test_every_set_has_what_was_stored_into_it_and_nothing_else(stored: dict[str, list[ReferenceEntries]]) -> None:
    async def scenario() -> None:
        sets = StoredReferenceSets(MemoryPreparedStore(1 << 20), namespace="a")
        for calls in zip(*stored.values(), strict=False):
            for reference_set, entries in zip(stored, calls, strict=True):
                assert await sets.store_entries(reference_set, tuple(entries)) is None
        rounds = min(map(len, stored.values()), default=0)
        for reference_set, calls in stored.items():
            expected = {entry for entries in calls[:rounds] for entry in entries}
            if expected:
                assert await found(sets, reference_set) == expected
                assert await sets.entries_revision(reference_set) == str(len(expected))
            else:
                assert failed(await sets.entries(reference_set)) is Status.NOT_PREPARED

    asyncio.run(scenario())


@pytest.mark.parametrize("where", WHERE)
async def test_a_set_grows_and_the_same_again_changes_nothing(
    tmp_path: Path, valkey: ValkeyServer, cluster: ValkeyServer, where: str
) -> None:
    async with opened(where, tmp_path, valkey, cluster) as store:
        sets = StoredReferenceSets(store, namespace=tmp_path.name[:60])
        for answer in (await sets.entries("set"), await sets.entries_revision("set")):
            assert failed(answer) is Status.NOT_PREPARED
            assert isinstance(answer, Failure)
            assert "References.Prepare" in answer.message
            assert "`gradewire prepare FILE` with this metric" in answer.message
        assert await sets.store_entries("set", (A, B)) is None
        first = await sets.entries_revision("set")
        assert await sets.store_entries("set", (B, A)) is None
        assert await sets.entries_revision("set") == first
        assert await sets.store_entries("set", (B, C)) is None
        assert await sets.entries_revision("set") != first
        assert await found(sets) == {A, B, C}
        # Sets do not see each other, nor do tenants, nor synthetic answers of the same set.
        assert await sets.store_entries("set 2", (A,)) is None
        answers = StoredReferenceSets(store, namespace=tmp_path.name[:60])
        assert await answers.store_prepared("set", "q", {"a": "It is a."}) is None
        assert await found(sets) == {A, B, C}
        assert await found(sets, "set 2") == {A}
        assert failed(await StoredReferenceSets(store, namespace="other").entries("set")) is Status.NOT_PREPARED


@pytest.mark.parametrize("where", WHERE)
async def test_many_entries_and_writers_at_once(
    tmp_path: Path, valkey: ValkeyServer, cluster: ValkeyServer, where: str
) -> None:
    everything = tuple((f"question {number}", (f"answer {number}", "so")) for number in range(1500))
    async with opened(where, tmp_path, valkey, cluster) as store:
        sets = StoredReferenceSets(store, namespace=tmp_path.name[:60])
        starts = (0, 300, 600, 900)
        outcomes = await asyncio.gather(
            *(sets.store_entries("set", everything[start : start + 600]) for start in starts)
        )
        assert outcomes == [None] * len(starts)
        assert await found(sets) == set(everything)
        assert await sets.entries_revision("set") == "1500"


@pytest.mark.parametrize("where", WHERE)
async def test_a_damaged_entry_is_a_failure_and_can_be_mended(
    tmp_path: Path, valkey: ValkeyServer, cluster: ValkeyServer, where: str
) -> None:
    async with opened(where, tmp_path, valkey, cluster) as store:
        sets = StoredReferenceSets(store, namespace=tmp_path.name[:60])
        await sets.store_entries("set", (A, B, C))
        group = sets._corpus_group("set")
        members = await store.members(group)
        assert not isinstance(members, Failure)
        names = list(members)
        for damage in (b"", members[names[0]][:-1] + b"?", members[names[1]]):  # torn, changed, another's
            await store.add_members(group, {names[0]: damage})
            answer = await sets.entries("set")
            assert failed(answer) is Status.UNAVAILABLE
            assert isinstance(answer, Failure)
            assert "damaged" in answer.message
            assert await sets.store_entries("set", (A, B, C)) is None
            assert await found(sets) == {A, B, C}


async def test_a_lost_entry_is_noticed_on_disk(tmp_path: Path) -> None:
    async with opened("disk", tmp_path) as store:
        assert isinstance(store, DiskPrepared)
        sets = StoredReferenceSets(store, namespace="a")
        await sets.store_entries("set", (A, B, C))
        group = sets._corpus_group("set")
        members = await store.members(group)
        assert not isinstance(members, Failure)
        with store._environment.on_writer(write=True) as transaction:
            transaction.delete(group + next(iter(members)))
        assert failed(await sets.entries("set")) is Status.UNAVAILABLE
        with store._environment.on_writer(write=True) as transaction:
            transaction.put(group, b"torn")
        assert failed(await sets.entries_revision("set")) is Status.UNAVAILABLE
        assert failed(await sets.store_entries("set", (A,))) is Status.UNAVAILABLE
        assert failed(await sets.entries("set")) is Status.UNAVAILABLE


async def test_full_stores_and_full_sets_refuse_and_keep_what_they_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = StoredReferenceSets(MemoryPreparedStore(200), namespace="a")
    assert await small.store_entries("set", (A,)) is None
    assert failed(await small.store_entries("set", (("q", ("b" * 300,)),))) is Status.UNAVAILABLE
    assert await found(small) == {A}
    monkeypatch.setattr(reference_sets, "MAX_ENTRIES_PER_SET", 2)
    assert await small.store_entries("other", (A, C)) is None
    assert failed(await small.store_entries("other", (B,))) is Status.INVALID_INPUT
    store = DiskPrepared(StoreDirectory(tmp_path), DiskConfig(tmp_path, prepared_max_bytes=1 << 20))
    sets = StoredReferenceSets(store, namespace="a")
    assert await sets.store_entries("set", (A,)) is None
    assert failed(await sets.store_entries("set", (("q", ("x" * (2 << 20),)),))) is Status.UNAVAILABLE
    assert await found(sets) == {A}
    await store.close()


async def test_a_full_redis_takes_the_same_again_and_a_dead_one_fails(tmp_path: Path) -> None:
    with ValkeyServer(tmp_path) as server:
        async with opened("redis", tmp_path, server) as store:
            sets = StoredReferenceSets(store, namespace="a")
            assert await sets.store_entries("set", (A, B)) is None
            server.command(b"CONFIG SET maxmemory 1\r\n")
            assert await sets.store_entries("set", (A, B)) is None
            refused = await sets.store_entries("set", (C,))
            assert isinstance(refused, Failure)
            assert "refuses" in refused.message
            assert await found(sets) == {A, B}
            server.command(b"ACL SETUSER default -hlen\r\n")
            assert failed(await sets.entries_revision("set")) is Status.UNAVAILABLE
            server.command(b"ACL SETUSER default +hlen -hscan -hmget\r\n")
            assert failed(await sets.entries("set")) is Status.UNAVAILABLE
            assert failed(await sets.store_entries("set", (A,))) is Status.UNAVAILABLE
            server.kill()
            for answer in (
                await sets.entries_revision("set"),
                await sets.entries("set"),
                await sets.store_entries("set", (A,)),
            ):
                assert failed(answer) is Status.UNAVAILABLE


async def test_a_set_too_large_to_be_read_fails(
    tmp_path: Path, valkey: ValkeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened("redis", tmp_path, valkey) as store:
        sets = StoredReferenceSets(store, namespace=tmp_path.name[:60])
        assert await sets.store_entries("set", (A, B, C)) is None
        monkeypatch.setattr(redis_store, "_MAX_GROUP_BYTES", 10)
        answer = await sets.entries("set")
        assert isinstance(answer, Failure)
        assert "larger than" in answer.message


@pytest.mark.parametrize("lie", [lie for lie in Lie if lie is not Lie.NONE], ids=lambda lie: lie.name.lower())
async def test_no_lie_of_a_server_changes_a_corpus(tmp_path: Path, valkey: ValkeyServer, lie: Lie) -> None:
    entries = tuple((f"question {number}", ("a long answer " * 9 + str(number),)) for number in range(5))
    namespace = tmp_path.name[-60:]
    async with opened("redis", tmp_path, valkey) as store:
        assert await StoredReferenceSets(store, namespace=namespace).store_entries("set", entries) is None
    with LyingRedis(valkey.port) as proxy:
        config = RedisConfig(proxy.url, timeout_s=0.3, write_timeout_s=0.3, slow_s=0.25, failures_to_open=100)
        link = RedisClient(config, StorageTelemetry(CollectorRegistry()))
        await link.connect()
        sets = StoredReferenceSets(RedisPrepared(link), namespace=namespace)
        assert await found(sets) == set(entries)
        proxy.foreign = b"of another key" * 20
        proxy.lie = lie
        for _ in range(2):
            answer = await sets.entries("set")
            assert isinstance(answer, Failure) or set(answer) == set(entries)
            assert lie is Lie.PREVIOUS_REPLY or failed(answer) is Status.UNAVAILABLE
        assert proxy.lies_told
        proxy.lie = Lie.NONE
        await link.close()


@pytest.mark.parametrize("where", WHERE)
async def test_a_seal_is_said_once_and_closes_the_set(
    tmp_path: Path, valkey: ValkeyServer, cluster: ValkeyServer, where: str
) -> None:
    async with opened(where, tmp_path, valkey, cluster) as store:
        # The namespaces of tests that share a Redis server differ.
        sets = StoredReferenceSets(store, namespace=f"seal-{tmp_path.name}"[:60])
        assert await sets.seal_of("set") == ""
        seals = await asyncio.gather(*(sets.seal("set", digest * 32) for digest in "abc"))
        assert sorted(failed(answer) or 0 for answer in seals) == [0, Status.INVALID_INPUT, Status.INVALID_INPUT]
        seal = await sets.seal_of("set")
        assert isinstance(seal, str)
        assert await sets.seal("set", seal) is None, "the same again changes nothing"
        assert failed(await sets.store_entries("set", (A,))) is Status.INVALID_INPUT
        assert failed(await sets.store_entries("set", (A,), seal="d" * 32)) is Status.INVALID_INPUT
        assert await sets.store_entries("set", (A,), seal=seal) is None
        assert failed(await sets.store_entries("open", (A,), seal=seal)) is Status.INVALID_INPUT
        other = StoredReferenceSets(store, namespace="other")
        assert await other.seal_of("set") == "", "another tenant's set of that name is open"


async def test_a_damaged_seal_does_not_open_a_set() -> None:
    store = MemoryPreparedStore(1 << 20)
    sets = StoredReferenceSets(store, namespace="a")
    assert await sets.seal("set", "a" * 32) is None
    (key,) = store._values
    store._values[key] = b"x" + store._values[key][1:]
    assert failed(await sets.seal_of("set")) is Status.UNAVAILABLE
    assert failed(await sets.store_entries("set", (A,))) is Status.UNAVAILABLE
