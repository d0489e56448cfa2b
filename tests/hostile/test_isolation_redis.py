"""Nothing that somebody else writes into Redis becomes a score, where a key is set."""

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
import redis
from tests.support.figures import TakeFigure
from tests.support.servers.server_process import ServerProcess
from tests.support.servers.valkey import ValkeyServer

from gradewire_proto.v1 import references_pb2, references_pb2_grpc, scoring_pb2, scoring_pb2_grpc, types_pb2

_KEY = "the key of these servers, 32 bytes"
_ENTRIES = 250
"""Predictions; with four ways of forging each: 1 000 forged values."""
_HEADER_BYTES = 3 + 16
_SBERT = types_pb2.MetricSpec(sbert=types_pb2.SbertParameters())
_CIDER = types_pb2.MetricSpec(cider=types_pb2.CiderParameters(corpus=types_pb2.CORPUS_PREPARED))
_WAYS: dict[str, Callable[[bytes, bytes], bytes]] = {
    "no MAC": lambda value, _: value[_HEADER_BYTES:],
    "wrong MAC": lambda value, _: value[:3] + bytes(16) + value[_HEADER_BYTES:],
    "another entry's": lambda _, other: other,
    "truncated": lambda value, _: value[: len(value) - random.Random(0).randrange(1, 400)],  # noqa: S311 - a draw
}


@pytest.fixture
def valkey(tmp_path: Path) -> Iterator[ValkeyServer]:
    (tmp_path / "valkey").mkdir()
    with ValkeyServer(tmp_path / "valkey") as server:
        yield server


def counted(server: ServerProcess, start: str) -> float:
    return sum(value for name, value in server.samples().items() if name.startswith(start))


def items() -> list[types_pb2.Item]:
    return [
        types_pb2.Item(question="what?", references=["the cat"], prediction=f"Prediction {number}.")
        for number in range(_ENTRIES)
    ]


def score(server: ServerProcess) -> list[float]:
    with grpc.insecure_channel(server.address) as channel:
        reply = scoring_pb2_grpc.ScoringStub(channel).Score(
            scoring_pb2.ScoreRequest(items=items(), metrics=[_SBERT]), timeout=60
        )
    return [item.results[0].score for item in reply.items]


def written(store: "redis.Redis[bytes]", count: int) -> list[bytes]:
    """Keys of sentences, once so many are written behind the reply."""
    give_up_s = time.monotonic() + 20
    while time.monotonic() < give_up_s:
        keys = sorted(key for key in store.scan_iter(count=1000) if b":s:" in key)
        if len(keys) >= count:
            return keys
        time.sleep(0.02)
    raise TimeoutError(f"{len(keys)} of {count} entries were written")


def settings(valkey: ValkeyServer) -> dict[str, Any]:
    return {"redis_url": valkey.url, "redis_mac_key": _KEY, "redis_timeout_s": 5}


def folder(tmp_path: Path, name: str) -> Path:
    (tmp_path / name).mkdir()
    return tmp_path / name


@pytest.mark.hostile  # takes twenty seconds; what is prepared is forged in make test too
def test_of_a_thousand_forged_values_none_is_used(tmp_path: Path, valkey: ValkeyServer, figure: TakeFigure) -> None:
    store = redis.Redis.from_url(valkey.url)
    with ServerProcess(folder(tmp_path, "honest"), **settings(valkey)) as server:
        honest = score(server)
        keys = written(store, _ENTRIES + 1)
    with ServerProcess(folder(tmp_path, "second"), **settings(valkey)) as server:
        assert score(server) == pytest.approx(honest, abs=2e-4)
        assert counted(server, 'gradewire_engine_texts_total{source="redis"}') == len(keys)
        assert counted(server, "gradewire_engine_store_refused_macs_total{") == 0
    values = dict(zip(keys, store.mget(keys), strict=True))
    others = dict(zip(keys, [values[key] for key in keys[1:] + keys[:1]], strict=True))
    forged = used = 0
    for name, forge in _WAYS.items():
        for key, value in values.items():
            store.set(key, forge(value, others[key]))
        with ServerProcess(folder(tmp_path, name.split()[0]), **settings(valkey)) as server:
            found = score(server)
            refused = counted(server, "gradewire_engine_store_refused_macs_total{")
            from_redis = counted(server, 'gradewire_engine_texts_total{source="redis"}')
            told = [line for line in server.log() if "without this server's MAC" in line["event"]]
        assert found == pytest.approx(honest, abs=2e-4)
        assert refused == len(keys), name
        assert len(told) == 1  # at most once a minute
        forged += int(refused)
        used += int(from_redis)
    assert figure("forged values in Redis", forged, bound=">= 1000").holds
    assert figure("forged values that were used", used, bound="== 0").holds
    store.close()


@pytest.mark.hostile
def test_what_is_prepared_cannot_be_forged(tmp_path: Path, valkey: ValkeyServer) -> None:
    store = redis.Redis.from_url(valkey.url)
    entries = [
        references_pb2.ReferenceEntry(question="what?", references=[f"cat {number}", "a cat"]) for number in range(20)
    ]
    prepare = references_pb2.PrepareRequest(reference_set="set", entries=entries, metrics=[_CIDER])
    asked = scoring_pb2.ScoreRequest(items=items()[:1], metrics=[_CIDER], reference_set="set")
    with (
        ServerProcess(folder(tmp_path, "honest"), **settings(valkey)) as server,
        grpc.insecure_channel(server.address) as channel,
    ):
        list(references_pb2_grpc.ReferencesStub(channel).Prepare(prepare, timeout=30))
        before = scoring_pb2_grpc.ScoringStub(channel).Score(asked, timeout=30).items[0].results[0]
    (group,) = [key for key in store.scan_iter(count=1000) if b":corpus:" in key]
    members = store.hgetall(group)
    name, value = next(iter(members.items()))
    for forged in (value[_HEADER_BYTES:], value[:-1], dict(members)[list(members)[1]]):
        store.hset(group, name, forged)
        with ServerProcess(folder(tmp_path, str(len(list(tmp_path.iterdir())))), **settings(valkey)) as server:
            with grpc.insecure_channel(server.address) as channel:
                result = scoring_pb2_grpc.ScoringStub(channel).Score(asked, timeout=30).items[0].results[0]
                assert result.status == types_pb2.STATUS_UNAVAILABLE
                list(references_pb2_grpc.ReferencesStub(channel).Prepare(prepare, timeout=30))  # mends it
                result = scoring_pb2_grpc.ScoringStub(channel).Score(asked, timeout=30).items[0].results[0]
                assert (result.status, result.score) == (before.status, before.score)
            assert counted(server, "gradewire_engine_store_refused_macs_total{") > 0
    store.close()
