"""What breaks beside the server, or is broken on purpose: it stays up, scores stay right, and the log stays short."""

import contextlib
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest
import redis
from tests.support.figures import TakeFigure
from tests.support.servers.server_process import ServerProcess
from tests.support.servers.valkey import ValkeyServer

from gradewire_proto.v1 import scoring_pb2, scoring_pb2_grpc, types_pb2

_SBERT = types_pb2.MetricSpec(sbert=types_pb2.SbertParameters())


def score(stub: scoring_pb2_grpc.ScoringStub, count: int = 20) -> list[float]:
    items = [
        types_pb2.Item(question="what?", references=["the cat"], prediction=f"It was cat number {number}.")
        for number in range(count)
    ]
    reply = stub.Score(scoring_pb2.ScoreRequest(items=items, metrics=[_SBERT]), timeout=30)
    return [item.results[0].score for item in reply.items]


@pytest.mark.parametrize("left_bytes", [pytest.param(count, marks=pytest.mark.hostile) for count in (4096, 0, 20_000)])
def test_a_store_that_is_cut_short_under_the_server_is_emptied(
    tmp_path: Path, left_bytes: int, figure: TakeFigure
) -> None:
    with (
        ServerProcess(tmp_path, memory_max_bytes="1MiB", remembered_results_max_bytes=0) as server,
        grpc.insecure_channel(server.address) as channel,
    ):
        stub = scoring_pb2_grpc.ScoringStub(channel)
        before = score(stub)
        score(stub, 2000)  # pushes the first ones out of memory
        files = sorted((tmp_path / "store").rglob("data.mdb"))
        assert {file.parent.name for file in files} == {"prepared", "predictions-000001", "references"}
        for file in files:
            os.truncate(file, min(left_bytes, file.stat().st_size - 1))
        after = score(stub)
        score(stub, 2000)
        again = score(stub)
        changed = sum(abs(a - b) > 2e-4 for a, b in zip(before * 2, after + again, strict=True))
        assert figure(f"store cut to {left_bytes} bytes: scores changed, of 40", changed, bound="== 0").holds
        emptied = [line["event"] for line in server.log() if "and is now empty" in line["event"]]
        assert len(emptied) == 2  # once for each of the maps that were read; what is prepared was not asked for
        assert server.http("/healthz")[1]["degraded"] == []


def emptied(valkey: ValkeyServer) -> None:
    valkey.command(b"FLUSHALL\r\n")


def full(valkey: ValkeyServer) -> None:
    valkey.command(b"CONFIG SET maxmemory 1\r\n")


def refusing(valkey: ValkeyServer) -> None:
    valkey.command(b"CONFIG SET requirepass another\r\n")


def garbled(valkey: ValkeyServer) -> None:
    """Every value is bytes of something else."""
    store = redis.Redis.from_url(valkey.url)
    for key in store.scan_iter(count=1000):
        if store.type(key) == b"string":
            store.set(key, b"\0garbage" * 20)
    store.close()


FAULTS: dict[str, Callable[[ValkeyServer], None]] = {
    "killed": ValkeyServer.kill,
    "restarted": ValkeyServer.restart,
    "hung": ValkeyServer.pause,
    "emptied": emptied,
    "full": full,
    "refusing": refusing,
    "garbled": garbled,
}


_QUICK = ("garbled",)


@pytest.mark.parametrize(
    "fault", [each if each in _QUICK else pytest.param(each, marks=pytest.mark.hostile) for each in FAULTS]
)
def test_no_fault_of_redis_changes_a_score(tmp_path: Path, fault: str, figure: TakeFigure) -> None:
    settings = {
        "disk_directory": "",
        "redis_timeout_s": 0.2,
        "memory_max_bytes": "1MiB",
        "remembered_results_max_bytes": 0,
    }
    with (
        ValkeyServer(tmp_path) as valkey,
        ServerProcess(tmp_path, redis_url=valkey.url, **settings) as server,
        grpc.insecure_channel(server.address) as channel,
    ):
        stub = scoring_pb2_grpc.ScoringStub(channel)
        before = score(stub)
        score(stub, 1200)  # pushes the first ones out of memory
        FAULTS[fault](valkey)
        again = 300 if fault in _QUICK else 1200
        after = score(stub) + score(stub, again)[:20] + score(stub)
        if fault == "hung":
            valkey.resume()
        changed = sum(abs(a - b) > 2e-4 for a, b in zip(before * 3, after, strict=True))
        assert figure(f"Redis {fault}: scores changed, of {len(after)}", changed, bound="== 0").holds
        assert server.http("/readyz")[0] == 200
        assert not any("traceback" in line for line in server.log())


@pytest.mark.hostile
@pytest.mark.parametrize(
    "method",
    ["grpc.health.v1.Health/Check", "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"],
)
def test_a_flood_of_broken_messages_is_a_few_lines(tmp_path: Path, method: str, figure: TakeFigure) -> None:
    with ServerProcess(tmp_path) as server, grpc.insecure_channel(server.address) as channel:
        before = (tmp_path / "server.log").stat().st_size
        for _ in range(2000):
            with pytest.raises(grpc.RpcError) as caught:
                # Of a stream with one message the server cannot tell that the caller thinks of it as unary.
                channel.unary_unary(f"/{method}")(b"\xff\xff\xff", timeout=10)
            assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        written = (tmp_path / "server.log").stat().st_size - before
        # 1.5 MB before there was a bound
        assert figure(f"log after 2000 broken messages to {method}", written, "bytes", bound="< 20000").holds
        assert not any("traceback" in line for line in server.log())


def test_failed_calls_and_callers_who_leave_fill_no_log(tmp_path: Path, figure: TakeFigure) -> None:
    with ServerProcess(tmp_path) as server, grpc.insecure_channel(server.address) as channel:
        begun_s = time.perf_counter()
        for _ in range(1000):
            with pytest.raises(grpc.RpcError):
                channel.unary_unary("/gradewire.v1.Scoring/Score")(b"\xff\xff", timeout=10)
        metric = types_pb2.MetricSpec(exact_match=types_pb2.ExactMatchParameters())
        items = [types_pb2.Item(id=str(n), question="q", references=["a"], prediction="p") for n in range(500)]
        requests = [
            scoring_pb2.ScoreStreamRequest(config=scoring_pb2.ScoreStreamConfig(metrics=[metric])),
            scoring_pb2.ScoreStreamRequest(items=scoring_pb2.ScoreStreamItems(items=items)),
        ]
        for number in range(100):
            call = scoring_pb2_grpc.ScoringStub(channel).ScoreStream(iter(requests))
            if number % 2:
                next(call)
            call.cancel()
        assert server.http("/healthz")[0] == 200
        assert score(scoring_pb2_grpc.ScoringStub(channel))
        taken_s = time.perf_counter() - begun_s
        calls = [line for line in server.log() if line["event"] == "call"]
        assert {line["code"] for line in calls} <= {"OK", "CANCELLED", "INVALID_ARGUMENT"}
        assert not any("traceback" in line for line in server.log())
        # 200 lines a second of each code, whatever the machine's pace; the first and the last second are not whole.
        rate = len(calls) / (taken_s + 2)
        assert figure("log of 1000 failed calls and 100 callers who left", rate, "lines a second", bound="<= 400").holds


def test_slow_http_connections_keep_no_probe_out(tmp_path: Path, figure: TakeFigure) -> None:
    with ServerProcess(tmp_path) as server:
        slow = [socket.create_connection(("127.0.0.1", server.http_port), timeout=10) for _ in range(200)]
        try:
            for connection in slow:
                with contextlib.suppress(OSError):  # it had to make room already
                    connection.sendall(b"GET /metrics HTTP/1.1\r\nX-Slow: ")
            for _ in range(20):
                assert server.http("/readyz")[0] == 200
            status = Path(f"/proc/{server.pid}/status").read_text()
            threads = int(status.partition("Threads:")[2].split()[0])
            # The 200 share a few: the oldest make room.
            assert figure("threads beside 200 slow HTTP connections", threads, bound="< 100").holds
        finally:
            for connection in slow:
                connection.close()
