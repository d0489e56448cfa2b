"""What breaks beside the server, or is broken on purpose: it stays up, scores stay right, and the log stays short."""

import os
import threading
import urllib.request
from pathlib import Path

import grpc
import pytest
from tests.support.fakes.http2_peer import Http2Peer
from tests.support.servers.server_process import ServerProcess

from gradewire_proto.v1 import scoring_pb2, scoring_pb2_grpc, types_pb2

_SBERT = types_pb2.MetricSpec(sbert=types_pb2.SbertParameters())


def score(stub: scoring_pb2_grpc.ScoringStub, count: int = 20) -> list[float]:
    items = [
        types_pb2.Item(question="what?", references=["the cat"], prediction=f"It was cat number {number}.")
        for number in range(count)
    ]
    reply = stub.Score(scoring_pb2.ScoreRequest(items=items, metrics=[_SBERT]), timeout=30)
    return [item.results[0].score for item in reply.items]


@pytest.mark.parametrize("left_bytes", [0, 4096, 20_000])
def test_a_store_that_is_cut_short_under_the_server_is_made_anew(tmp_path: Path, left_bytes: int) -> None:
    with (
        ServerProcess(tmp_path, memory_max_bytes="1MiB") as server,
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
        assert max(map(abs, (a - b for a, b in zip(before * 2, after + again, strict=True)))) <= 2e-4
        anew = [line["event"] for line in server.log() if "starts anew" in line["event"]]
        assert len(anew) == 2  # once for each of the maps that were read; what is prepared was not asked for
        assert server.http("/healthz")[1]["degraded"] == []


def test_resets_of_one_connection_cancel_nobody_else(tmp_path: Path) -> None:
    with (
        ServerProcess(tmp_path, max_resets_per_s=200) as server,
        grpc.insecure_channel(server.address, options=[("grpc.enable_retries", 0)]) as channel,
    ):
        stub = scoring_pb2_grpc.ScoringStub(channel)
        before = score(stub)
        closed, stop = threading.Event(), threading.Event()

        def reset() -> None:
            while not stop.is_set():
                with Http2Peer(server.port) as peer:
                    while peer.open and not stop.is_set():
                        peer.open_and_reset("/gradewire.v1.Scoring/Score", 640)
                    if not peer.open:
                        closed.set()

        resetting = threading.Thread(target=reset)
        resetting.start()
        try:
            for _ in range(20):  # any code but OK raises
                assert score(stub) == pytest.approx(before, abs=2e-4)
            assert closed.wait(30)
        finally:
            stop.set()
            resetting.join()
        told = [line for line in server.log() if line["event"].startswith("127.0.0.1 opened calls and reset them")]
        assert len(told) == 1  # at most once in ten seconds
        with urllib.request.urlopen(f"http://127.0.0.1:{server.http_port}/metrics", timeout=5) as reply:
            metrics = reply.read().decode().splitlines()
        counts = {name: float(value) for name, _, value in (line.partition(" ") for line in metrics if line[0] != "#")}
        assert counts["gradewire_reset_connections_closed_total"] >= 1
        assert counts["gradewire_reset_calls_total"] >= 50
