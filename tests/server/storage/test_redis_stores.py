"""The second level in Redis, on a real server: shared, bounded in time, and never needed for a score."""

import asyncio
import logging
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from prometheus_client import CollectorRegistry
from tests.server.conftest import OpenBackends
from tests.support.fakes.lying_redis import Lie, LyingRedis
from tests.support.servers.valkey import ValkeyServer

from gradewire_server.backends import Backends
from gradewire_server.domain.items import Failure
from gradewire_server.domain.needs import AnswerSource, Tier
from gradewire_server.settings.engine import CacheConfig, RedisConfig
from gradewire_server.storage import codec
from gradewire_server.storage import redis_client as redis_link
from gradewire_server.storage.cache import StorageTelemetry, Write
from gradewire_server.storage.redis_client import RedisAwayError, RedisClient
from gradewire_server.storage.redis_stores import RedisPrepared, RedisVectors

_TIERS = [Tier.REFERENCE] * 4 + [Tier.PREDICTION] * 4 + [Tier.WINDOW] * 4
_LIES = [lie for lie in Lie if lie is not Lie.NONE]


def foreign_value() -> bytes:
    """A valid value of another model's key, as it is stored."""
    key = b"gradewire:1:default:" + b"f" * 64 + b":s:0123456789abcdef"
    rounded, _ = codec.round_vectors(np.ones((1, 384), np.float32))
    return codec.pack(key, codec.encode_blobs(rounded, np.array([False]))[0], 384, 0)


def texts(about: str) -> list[str]:
    return [f"{about} number {number}" for number in range(12)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ValkeyServer]:
    with ValkeyServer(tmp_path_factory.mktemp("cluster"), cluster=True) as server:
        yield server


@pytest.fixture
def own_valkey(tmp_path: Path) -> Iterator[ValkeyServer]:
    with ValkeyServer(tmp_path, password="s3cret") as server:  # noqa: S106 - of a server that lives for one test
        yield server


def config(url: str, **changes: float) -> RedisConfig:
    # Patient, so that a busy machine does not look like a slow server; tests of slowness say what they need.
    values = {"timeout_s": 2.0, "slow_s": 1.9, "open_s": 0.05} | changes
    return RedisConfig(url, **values)  # type: ignore[arg-type]


async def flushed(engine: Backends) -> None:
    assert engine._blobs._writer is not None
    await engine._blobs._writer.flush()


@pytest.mark.parametrize("kind", ["tcp", "unix", "cluster"])
async def test_a_second_process_computes_nothing_but_windows(
    open_backends: OpenBackends, valkey: ValkeyServer, cluster: ValkeyServer, kind: str
) -> None:
    url = {"tcp": valkey.url, "unix": valkey.unix_url, "cluster": cluster.url}[kind]
    cache = CacheConfig(namespace=kind, redis=RedisConfig(url, cluster=kind == "cluster", timeout_s=2, slow_s=1.9))
    first, second = await open_backends(cache=cache), await open_backends(cache=cache)
    cold = await first.ports.embeddings.embed("", texts("shared"), _TIERS)
    await flushed(first)
    warm = await second.ports.embeddings.embed("", texts("shared"), _TIERS)
    assert cold.sources.tolist() == [AnswerSource.COMPUTED] * 12
    assert warm.sources.tolist() == [AnswerSource.REDIS] * 8 + [AnswerSource.COMPUTED] * 4
    assert np.array_equal(cold.values[:8], warm.values[:8])


async def test_predictions_have_a_time_to_live_and_references_none(
    open_backends: OpenBackends, own_valkey: ValkeyServer, telemetry: StorageTelemetry
) -> None:
    cache = CacheConfig(redis=config(own_valkey.url), prediction_ttl_s=1000)
    engine = await open_backends(cache=cache)
    await engine.ports.embeddings.embed("", ["reference", "prediction"], [Tier.REFERENCE, Tier.PREDICTION])
    await flushed(engine)
    link = RedisClient(config(own_valkey.url), telemetry)
    lives = sorted([await link._client.ttl(key) for key in await link._client.keys("*")])
    assert lives[0] == -1
    assert 990 <= lives[1] <= 1000
    await engine.ports.embeddings.embed(
        "", ["prediction"], [Tier.REFERENCE]
    )  # and a prediction that becomes a reference loses its own
    await flushed(engine)
    assert [await link._client.ttl(key) for key in await link._client.keys("*")] == [-1, -1]
    await link.close()


@pytest.mark.parametrize("kind", ["server", "cluster"])
async def test_more_keys_than_one_chunk(
    valkey: ValkeyServer, cluster: ValkeyServer, telemetry: StorageTelemetry, registry: CollectorRegistry, kind: str
) -> None:
    url = cluster.url if kind == "cluster" else valkey.url
    link = RedisClient(RedisConfig(url, cluster=kind == "cluster", timeout_s=5, slow_s=4), telemetry)
    store = RedisVectors(link, telemetry, prediction_ttl_s=1000)
    random = np.random.default_rng(0)
    rounded, _ = codec.round_vectors(random.normal(size=(1100, 384)).astype(np.float32))
    blobs = codec.encode_blobs(rounded, np.zeros(1100, np.bool_))
    keys = [b"chunks %d" % number for number in range(1100)]
    writes = [Write(key, blob, Tier.PREDICTION, 384) for key, blob in zip(keys, blobs, strict=True)]
    assert await store.write(writes) == 1100
    found = await store.read([*keys, b"chunks none"], 384)
    assert [blob and blob[:-1] for blob in found] == [*(blob[:-1] for blob in blobs), None]
    reads = {"store": "redis", "operation": "read"}
    assert registry.get_sample_value("gradewire_engine_store_operations_total", reads) == 3
    await link.close()


async def test_killing_it_loses_no_text_and_it_recovers_by_itself(
    open_backends: OpenBackends, own_valkey: ValkeyServer
) -> None:
    registry = CollectorRegistry()
    cache = CacheConfig(redis=config(own_valkey.url, failures_to_open=3))
    engine, alone = await open_backends(cache=cache, registry=registry), await open_backends()
    for round_ in range(6):
        if round_ == 2:
            own_valkey.kill()
        asked = texts(f"round {round_}")
        reply = await engine.ports.embeddings.embed("", asked, _TIERS)
        expected = await alone.ports.embeddings.embed("", asked, _TIERS)
        assert not reply.failures
        assert np.einsum("ij,ij->i", reply.values, expected.values).min() > 1 - 1e-5
        await flushed(engine)
    assert engine.health().degraded == ("redis: breaker open",)
    assert registry.get_sample_value("gradewire_engine_breaker_state", {"state": "closed"}) == 0
    assert isinstance(await engine.ports.reference_sets.prepared_answers("set", "q", ["r"]), Failure)
    own_valkey.start()
    async with asyncio.timeout(20):
        while engine.health().degraded:  # noqa: ASYNC110 - health is what is tested
            await asyncio.sleep(0.02)
    assert registry.get_sample_value("gradewire_engine_breaker_state", {"state": "closed"}) == 1
    # What could not be written while it was away is offered again when it is hit.
    again = await engine.ports.embeddings.embed("", texts("round 5"), _TIERS)
    assert set(again.sources) == {AnswerSource.MEMORY}
    await flushed(engine)
    fresh = await open_backends(cache=cache)
    assert (await fresh.ports.embeddings.embed("", texts("round 5"), _TIERS)).sources.tolist()[:8] == [
        AnswerSource.REDIS
    ] * 8


async def test_a_hanging_server_costs_its_timeout_and_no_late_reply_is_mixed_up(
    open_backends: OpenBackends, own_valkey: ValkeyServer
) -> None:
    cache = CacheConfig(redis=config(own_valkey.url, timeout_s=0.1, failures_to_open=100))
    engine, other = await open_backends(cache=cache), await open_backends(cache=cache)
    cold = await engine.ports.embeddings.embed("", texts("hang"), _TIERS)
    await flushed(engine)
    own_valkey.pause()
    started_s = time.monotonic()
    missed = await other.ports.embeddings.embed("", texts("hang")[:8], _TIERS[:8])
    assert set(missed.sources) == {AnswerSource.COMPUTED}
    assert time.monotonic() - started_s < 10
    own_valkey.resume()
    third = await open_backends(cache=CacheConfig(redis=config(own_valkey.url)))
    for _ in range(3):  # the connection that was cut off must not answer with what it still owed
        reply = await third.ports.embeddings.embed("", texts("hang")[:8], _TIERS[:8])
        assert np.array_equal(reply.values, cold.values[:8])


async def test_a_full_server_refuses_writes_and_goes_on_being_read(
    open_backends: OpenBackends, own_valkey: ValkeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = CollectorRegistry()
    cache = CacheConfig(redis=config(own_valkey.url, failures_to_open=2))
    engine = await open_backends(cache=cache)
    await engine.ports.embeddings.embed("", texts("before"), _TIERS)
    await flushed(engine)
    assert await engine.ports.reference_sets.store_prepared("set", "q", {"r": "It is r."}) is None
    own_valkey.command(b"AUTH s3cret\r\nCONFIG SET maxmemory 1\r\n")
    reader = await open_backends(cache=cache, registry=registry)
    for round_ in range(6):  # every one of them would have been a failure to the breaker
        monkeypatch.setattr(redis_link, "_PAUSE_AFTER_REFUSAL_S", 0.0 if round_ < 5 else 60.0)
        assert not (await reader.ports.embeddings.embed("", texts(f"round {round_}"), _TIERS)).failures
        await flushed(reader)
        refused = await reader.ports.reference_sets.store_prepared("set", "q", {"s": "It is s."})
        assert isinstance(refused, Failure)
        assert "refuses" in refused.message
    assert reader.health().degraded == ("redis: writing fails",)
    assert registry.get_sample_value("gradewire_engine_breaker_state", {"state": "closed"}) == 1
    errors = {"store": "redis", "operation": "write"}
    assert (registry.get_sample_value("gradewire_engine_store_errors_total", errors) or 0) >= 6
    assert (await reader.ports.embeddings.embed("", texts("before"), _TIERS)).sources.tolist()[:8] == [
        AnswerSource.REDIS
    ] * 8
    assert await reader.ports.reference_sets.prepared_answers("set", "q", ["r", "s"]) == ("It is r.", None)
    # While writing is paused, nothing is even tried.
    writes = registry.get_sample_value("gradewire_engine_store_operations_total", errors)
    await reader.ports.embeddings.embed("", texts("paused"), _TIERS)
    await flushed(reader)
    assert registry.get_sample_value("gradewire_engine_store_operations_total", errors) == writes
    # With room again, an answer is stored, which ends the pause.
    own_valkey.command(b"AUTH s3cret\r\nCONFIG SET maxmemory 0\r\n")
    assert await reader.ports.reference_sets.store_prepared("set", "q", {"s": "It is s."}) is None
    assert reader.health().degraded == ()


async def test_a_refused_read_is_a_miss_that_is_told(own_valkey: ValkeyServer, telemetry: StorageTelemetry) -> None:
    own_valkey.command(b"AUTH s3cret\r\nACL SETUSER default -mget\r\n")
    link = RedisClient(config(own_valkey.url, failures_to_open=1), telemetry)
    assert await RedisVectors(link, telemetry, prediction_ttl_s=1000).read([b"key"], 384) == [None]
    assert link.degraded() == "redis: reading fails"
    assert link.available, "what can be written is written"
    failure = await RedisPrepared(link).read([b"key"])
    assert isinstance(failure, Failure)
    assert "refuses" in failure.message
    await link.close()


async def test_a_server_that_is_away_at_the_start_is_taken_for_away(
    telemetry: StorageTelemetry, caplog: pytest.LogCaptureFixture
) -> None:
    link = RedisClient(config("redis://127.0.0.1:1", failures_to_open=3, open_s=60), telemetry)
    await link.connect()
    assert link.degraded() == "redis: breaker open"
    assert "redis at 127.0.0.1:1 does not answer yet" in caplog.text
    await link.close()


async def test_slowness_opens_the_breaker(valkey: ValkeyServer, telemetry: StorageTelemetry) -> None:
    with LyingRedis(valkey.port) as proxy:
        link = RedisClient(config(proxy.url, slow_s=0.2, failures_to_open=2, open_s=60), telemetry)
        await link.connect()
        proxy.lie = Lie.DELAY
        for _ in range(2):
            assert await link.get([b"no such key"]) == [None]  # slow answers are used all the same
        assert link.degraded() == "redis: breaker open"
        with pytest.raises(RedisAwayError):
            await link.get([b"no such key"])
        await link.close()


@pytest.mark.parametrize("lie", _LIES, ids=[lie.name.lower() for lie in _LIES])
async def test_no_lie_changes_a_vector(open_backends: OpenBackends, valkey: ValkeyServer, lie: Lie) -> None:
    honest = await open_backends(cache=CacheConfig(namespace=lie.name, redis=config(valkey.url)))
    truth = await honest.ports.embeddings.embed("", texts("lie"), _TIERS)
    await flushed(honest)
    with LyingRedis(valkey.port) as proxy:
        redis = config(proxy.url, timeout_s=0.3, slow_s=0.25, failures_to_open=100)
        engine = await open_backends(cache=CacheConfig(namespace=lie.name, redis=redis))
        proxy.foreign = foreign_value()
        proxy.lie = lie
        reply = await engine.ports.embeddings.embed("", texts("lie"), _TIERS)
        assert proxy.lies_told
        assert not reply.failures
        assert np.einsum("ij,ij->i", reply.values, truth.values).min() > 1 - 1e-5
        if lie in {Lie.FLIPPED_BIT, Lie.FOREIGN_VALUE, Lie.REORDERED, Lie.SHORT_VALUES}:
            assert set(reply.sources) == {AnswerSource.COMPUTED}
        proxy.lie = Lie.NONE
        await engine.close()


async def test_the_password_is_never_shown(
    open_backends: OpenBackends, own_valkey: ValkeyServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    redis = config(own_valkey.url, failures_to_open=1)
    engine = await open_backends(cache=CacheConfig(redis=redis))
    own_valkey.kill()
    await engine.ports.embeddings.embed("", texts("secret"), _TIERS)
    await flushed(engine)
    assert "fails or is slow" in caplog.text
    assert "s3cret" not in caplog.text
    assert "s3cret" not in repr(redis)
    assert "s3cret" not in str(engine.health())
