"""A real process under load and its end: every accepted request is answered."""

import asyncio
import signal
import socket
import time
from collections import Counter
from pathlib import Path

import grpc
import pytest
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tests.support.servers.server_process import ServerProcess, lasting_port
from tests.support.servers.wire import SMILE, item, request, until

from gradewire_proto.v1 import scoring_pb2, scoring_pb2_grpc, types_pb2


async def ask_until_refused(stub: "scoring_pb2_grpc.ScoringAsyncStub", worker: int, codes: Counter[str]) -> None:
    """Sends distinct answers until the server refuses; counts what came of each call."""
    for number in range(100_000):
        asked = request(*[item(f"answer {worker} of {number} part {part}") for part in range(3)])
        try:
            reply = await stub.Score(asked, timeout=20)
        except aio.AioRpcError as error:
            codes[error.code().name] += 1
            if error.code() is grpc.StatusCode.UNAVAILABLE:
                return
        else:
            assert [result.status for part in reply.items for result in part.results] == [types_pb2.STATUS_OK] * 3
            codes["OK"] += 1


async def test_a_term_under_load_answers_every_accepted_call(tmp_path: Path, minilm: Path) -> None:
    # On a busy machine twelve workers are overload; that a server refuses some of it is another test's affair.
    with ServerProcess(tmp_path, model_repository=minilm, max_wait_s=60) as server:
        codes: Counter[str] = Counter()
        async with aio.insecure_channel(server.address, options=[("grpc.enable_retries", 0)]) as channel:
            stub = scoring_pb2_grpc.ScoringStub(channel)
            load = [asyncio.create_task(ask_until_refused(stub, worker, codes)) for worker in range(12)]
            await until(lambda: codes["OK"] >= 60, timeout_s=30)
            server.signal(signal.SIGTERM)
            await asyncio.gather(*load)
        assert await asyncio.to_thread(server.wait) == 0
        assert set(codes) - {"RESOURCE_EXHAUSTED"} == {"OK", "UNAVAILABLE"}
        assert codes["UNAVAILABLE"] == 12, "once for each worker, when it was over"
        logged = Counter(line["code"] for line in server.log() if line["event"] == "call")
        assert logged["OK"] == codes["OK"]
        assert set(logged) <= {"OK", "UNAVAILABLE", "RESOURCE_EXHAUSTED"}


async def test_health_flips_at_once_while_calls_are_still_taken_and_streams_may_finish(
    tmp_path: Path, minilm: Path
) -> None:
    with ServerProcess(tmp_path, model_repository=minilm, drain_s=1.0) as server:
        async with aio.insecure_channel(server.address) as channel:
            health = health_pb2_grpc.HealthStub(channel)
            watch = health.Watch(health_pb2.HealthCheckRequest(service="gradewire.v1.Scoring"))
            assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING
            stub = scoring_pb2_grpc.ScoringStub(channel)
            stream = stub.ScoreStream()
            await stream.write(scoring_pb2.ScoreStreamRequest(config=scoring_pb2.ScoreStreamConfig(metrics=[SMILE])))
            assert (await stream.read()).provenance
            server.signal(signal.SIGTERM)
            assert (await watch.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
            ready, _ = await asyncio.to_thread(server.http, "/readyz")
            alive, report = await asyncio.to_thread(server.http, "/healthz")
            assert (ready, alive, report["phase"]) == (503, 200, "draining")
            reply = await stub.Score(request(item()))
            assert reply.items[0].results[0].status == types_pb2.STATUS_OK
            await asyncio.sleep(1.2)  # the drain window is over: the stream is in its grace
            await stream.write(scoring_pb2.ScoreStreamRequest(items=scoring_pb2.ScoreStreamItems(items=[item()])))
            await stream.done_writing()
            assert [part.complete for part in (await stream.read()).items] == [True]
            assert await stream.read() == aio.EOF
        assert await asyncio.to_thread(server.wait) == 0, "the health watcher did not hold it up"


async def test_a_hangup_ends_nothing_and_a_second_signal_to_stop_all_at_once(tmp_path: Path, minilm: Path) -> None:
    with ServerProcess(tmp_path, model_repository=minilm, drain_s=60, grace_s=60) as server:
        server.signal(signal.SIGHUP)
        await asyncio.to_thread(server.wait_for_event, "SIGHUP has no effect on a server with one process")
        async with aio.insecure_channel(server.address) as channel:
            stream = scoring_pb2_grpc.ScoringStub(channel).ScoreStream()
            await stream.write(scoring_pb2.ScoreStreamRequest(config=scoring_pb2.ScoreStreamConfig(metrics=[SMILE])))
            assert (await stream.read()).provenance
            server.signal(signal.SIGINT)
            await asyncio.to_thread(server.wait_for_event, "draining")
            began = time.monotonic()
            server.signal(signal.SIGINT)
            assert await asyncio.to_thread(server.wait) == 0
            assert time.monotonic() - began < 30, "far less than drain and grace"
            with pytest.raises(aio.AioRpcError):
                await stream.read()


def test_a_signal_while_loading_ends_it(tmp_path: Path, minilm: Path) -> None:
    server = ServerProcess(tmp_path, model_repository=minilm)
    server.start()
    try:
        server.wait_for_event("HTTP on port")
        server.signal(signal.SIGTERM)
        assert server.wait() == 0
    finally:
        server.kill()


def test_a_taken_port_is_one_line_and_exit_code_1(tmp_path: Path, minilm: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        server = ServerProcess(tmp_path, model_repository=minilm, port=taken.getsockname()[1])
        server.start()
        assert server.wait() == 1
    (line,) = [line for line in server.log() if line["level"] == "error"]
    assert line["event"].startswith("cannot serve: cannot listen on 127.0.0.1:")
    assert "traceback" not in line


@pytest.mark.parametrize("processes", [1, 2])
async def test_a_start_waits_for_the_earlier_server_on_its_port(tmp_path: Path, minilm: Path, processes: int) -> None:
    (tmp_path / "next").mkdir()
    settings = {"model_repository": minilm, "processes": processes, "judge_backend": "none", "drain_s": ""}
    free = [lasting_port() for _ in range(3)]
    settings |= dict(zip(("port", "http_port", "http_api_port"), free, strict=True))
    with ServerProcess(tmp_path, **settings) as server:
        following = ServerProcess(tmp_path / "next", **settings)
        try:
            async with aio.insecure_channel(server.address) as channel:
                stream = scoring_pb2_grpc.ScoringStub(channel).ScoreStream()
                config = scoring_pb2.ScoreStreamConfig(metrics=[SMILE])
                await stream.write(scoring_pb2.ScoreStreamRequest(config=config))
                assert (await stream.read()).provenance
                server.signal(signal.SIGTERM)
                await asyncio.to_thread(server.wait_for_event, "draining")
                following.start()
                await asyncio.to_thread(following.wait_for_event, "waiting up to ")
                await stream.done_writing()
                assert await stream.read() == aio.EOF
            assert await asyncio.to_thread(server.wait) == 0
            await asyncio.to_thread(following.wait_until_serving)
            assert [following.port, following.http_port, following.api_port] == free
        finally:
            following.kill()


@pytest.mark.parametrize("processes", [1, 2])
def test_a_start_does_not_wait_for_a_server_that_serves_nor_share_its_port(
    tmp_path: Path, minilm: Path, processes: int
) -> None:
    (tmp_path / "next").mkdir()
    settings = {"model_repository": minilm, "judge_backend": "none"}
    with ServerProcess(tmp_path, **settings, processes=processes) as server:
        for others in (1, 2):
            following = ServerProcess(tmp_path / "next", **settings, processes=others, port=server.port)
            following.start()
            assert following.wait() == 1
            (line,) = [line for line in following.log() if line["level"] == "error"]
            said = (
                f"another program listens on port {server.port}; stop that program, or choose another port with --port"
            )
            assert line["event"].endswith(said)
            assert not [line for line in following.log() if line["event"].startswith("waiting")]
