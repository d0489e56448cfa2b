"""Synthetic answers are durable inputs: exactly what was stored, or honestly not there."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from tests.server.conftest import OpenBackends
from tests.support.fakes.lying_redis import Lie, LyingRedis
from tests.support.servers.valkey import ValkeyServer

from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.needs import ReferenceEntries
from gradewire_server.settings.engine import CacheConfig, DiskConfig, RedisConfig
from gradewire_server.storage import redis_stores as redis_store
from gradewire_server.storage import reference_sets
from gradewire_server.storage.cache import StorageTelemetry
from gradewire_server.storage.lmdb_environment import StoreDirectory
from gradewire_server.storage.lmdb_prepared import DiskPrepared
from gradewire_server.storage.redis_client import RedisClient
from gradewire_server.storage.redis_stores import RedisPrepared
from gradewire_server.storage.reference_sets import MemoryPreparedStore, PreparedStore, StoredReferenceSets

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


_TEXT_REFERENCE_SETS = st.text(st.characters(codec="utf-8"), max_size=8)
_ENTRIES = st.lists(
    st.tuples(_TEXT_REFERENCE_SETS, st.lists(_TEXT_REFERENCE_SETS, min_size=1, max_size=3).map(tuple)), max_size=6
)
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


@given(st.dictionaries(_TEXT_REFERENCE_SETS, st.lists(_ENTRIES, max_size=3), max_size=3))
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
