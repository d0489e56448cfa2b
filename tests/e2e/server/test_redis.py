"""The server and a real Redis-compatible store: it may die and come back, no row is lost and no score changes."""

import asyncio
import signal
from pathlib import Path

import pytest
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tests.support.servers.server_process import ServerProcess
from tests.support.servers.valkey import ValkeyServer
from tests.support.servers.wire import item, request, until

from gradewire_proto.v1 import scoring_pb2, scoring_pb2_grpc, types_pb2

ANSWERS = [item(f"It was cat number {number} on the sofa.", f"Cats {number}!", "A cat!") for number in range(30)]


def scores(reply: scoring_pb2.ScoreResponse) -> list[float]:
    assert all(result.status == types_pb2.STATUS_OK for part in reply.items for result in part.results)
    return [result.score for part in reply.items for result in part.results]


async def test_redis_dies_and_comes_back(tmp_path: Path, minilm: Path) -> None:
    with (
        ValkeyServer(tmp_path) as valkey,
        ServerProcess(
            tmp_path, model_repository=minilm, redis_url=valkey.url, disk_directory="", redis_timeout_s=0.5
        ) as server,
    ):

        def degraded() -> bool:
            return bool(server.http("/healthz")[1]["degraded"])

        async with aio.insecure_channel(server.address) as channel:
            stub = scoring_pb2_grpc.ScoringStub(channel)
            health = health_pb2_grpc.HealthStub(channel)
            expected = scores(await stub.Score(request(*ANSWERS)))
            assert not degraded()
            valkey.kill()
            for number in range(10):  # new texts, so that the store is asked
                assert len(scores(await stub.Score(request(item(f"dog {number}", f"a dog {number}"))))) == 1
            assert scores(await stub.Score(request(*ANSWERS))) == pytest.approx(expected, abs=2e-4)
            await until(degraded, timeout_s=20)
            check = await health.Check(health_pb2.HealthCheckRequest(service="gradewire.v1.Scoring"))
            assert check.status == health_pb2.HealthCheckResponse.SERVING
            assert (await asyncio.to_thread(server.http, "/readyz"))[0] == 200
            valkey.start()

            async def recovered() -> None:
                number = 0
                async with asyncio.timeout(20):
                    while await asyncio.to_thread(degraded):
                        number += 1
                        await stub.Score(request(item(f"bird {number}", f"a bird {number}")))
                        await asyncio.sleep(0.1)

            await recovered()
            assert scores(await stub.Score(request(*ANSWERS))) == pytest.approx(expected, abs=2e-4)


async def test_a_second_server_finds_references_and_predictions_in_redis(tmp_path: Path, minilm: Path) -> None:
    (tmp_path / "second").mkdir()
    settings = {"model_repository": minilm, "disk_directory": "", "redis_timeout_s": 1.0}
    with ValkeyServer(tmp_path) as valkey:
        with ServerProcess(tmp_path, redis_url=valkey.url, **settings) as first:
            async with aio.insecure_channel(first.address) as channel:
                cold = await scoring_pb2_grpc.ScoringStub(channel).Score(request(*ANSWERS))
            first.signal(signal.SIGTERM)
            await asyncio.to_thread(first.wait)
        with ServerProcess(tmp_path / "second", redis_url=valkey.url, **settings) as second:
            async with aio.insecure_channel(second.address) as channel:
                again = await scoring_pb2_grpc.ScoringStub(channel).Score(request(*ANSWERS))
    assert scores(again) == pytest.approx(scores(cold), abs=2e-4)
    for part in again.items:
        hits = part.results[0].cache_hits
        assert hits.redis == 5, "sentence vectors of the prediction and of two references, raw and normalised"
