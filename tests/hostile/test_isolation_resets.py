"""A caller who opens calls and resets them is kept out before many calls of others are lost; the log says so once."""

import contextlib
import threading
from pathlib import Path

import grpc
import pytest
from tests.support.fakes.http2_peer import Http2Peer
from tests.support.figures import TakeFigure
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


class Others:
    """Calls of others beside an attack; what gRPC drops before the guard has acted is CANCELLED."""

    def __init__(self, stub: scoring_pb2_grpc.ScoringStub) -> None:
        self._stub = stub
        self._before = score(stub)
        self.scored = self.cancelled = 0

    def call(self) -> None:
        """One call; any other end than the right scores or CANCELLED raises."""
        try:
            assert score(self._stub) == pytest.approx(self._before, abs=2e-4)
            self.scored += 1
        except grpc.RpcError as error:
            assert error.code() is grpc.StatusCode.CANCELLED  # noqa: PT017 - one of two ends that are allowed
            self.cancelled += 1


@pytest.mark.hostile
def test_resets_of_one_host_hardly_reach_others(tmp_path: Path, figure: TakeFigure) -> None:
    with (
        ServerProcess(tmp_path, max_resets_per_s=200) as server,
        grpc.insecure_channel(server.address, options=[("grpc.enable_retries", 0)]) as channel,
    ):
        others = Others(scoring_pb2_grpc.ScoringStub(channel))
        closed, stop = threading.Event(), threading.Event()

        def reset() -> None:
            while not stop.is_set():
                with contextlib.suppress(OSError), Http2Peer(server.port, timeout_s=1) as peer:  # it is kept out
                    while peer.open and not stop.is_set():
                        peer.open_and_reset("/gradewire.v1.Scoring/Score", 640)
                    if not peer.open:
                        closed.set()

        resetting = threading.Thread(target=reset)
        resetting.start()
        try:
            for _ in range(100):
                others.call()
            assert closed.wait(30)
        finally:
            stop.set()
            resetting.join()
        told = [line for line in server.log() if line["event"].startswith("127.0.0.1 opened calls and reset them")]
        assert len(told) == 1  # at most once in ten seconds
        counts = server.samples()
        assert counts["gradewire_reset_connections_closed_total"] >= 1
        assert figure("calls that one caller reset", counts["gradewire_reset_calls_total"], bound=">= 50").holds
        assert figure(
            "calls of others scored beside one who resets again and again, of 100", others.scored, bound=">= 90"
        ).holds


@pytest.mark.hostile
def test_one_connection_that_resets_at_full_speed_is_closed(tmp_path: Path, figure: TakeFigure) -> None:
    with (
        ServerProcess(tmp_path) as server,
        grpc.insecure_channel(server.address, options=[("grpc.enable_retries", 0)]) as channel,
        Http2Peer(server.port, source="127.0.0.2") as peer,
    ):
        others = Others(scoring_pb2_grpc.ScoringStub(channel))

        def reset() -> None:
            while peer.open:
                peer.open_and_reset("/gradewire.v1.Scoring/Score", 64)

        resetting = threading.Thread(target=reset)
        resetting.start()
        while resetting.is_alive() and others.scored < 2000:
            others.call()
        assert not peer.open
        resetting.join()
        told = [line for line in server.log() if line["event"].startswith("127.0.0.2 opened calls and reset them")]
        assert len(told) == 1
        assert server.samples()["gradewire_reset_calls_total"] >= 50
        assert figure(
            "calls of others cancelled until one connection was closed", others.cancelled, bound="<= 20"
        ).holds


@pytest.mark.hostile
def test_a_host_that_resets_on_many_connections_is_kept_out(tmp_path: Path, figure: TakeFigure) -> None:
    with (
        ServerProcess(tmp_path) as server,
        grpc.insecure_channel(server.address, options=[("grpc.enable_retries", 0)]) as channel,
    ):
        stub = scoring_pb2_grpc.ScoringStub(channel)
        score(stub)
        stop = threading.Event()

        def reset() -> None:
            while not stop.is_set():
                with contextlib.suppress(OSError), Http2Peer(server.port, source="127.0.0.2", timeout_s=1) as peer:
                    while peer.open and not stop.is_set():
                        peer.open_and_reset("/gradewire.v1.Scoring/Score", 640)

        resetting = [threading.Thread(target=reset) for _ in range(20)]
        for each in resetting:
            each.start()
        scored = 0
        try:
            for number in range(200):
                with contextlib.suppress(grpc.RpcError):  # CANCELLED by gRPC until it is kept out
                    score(stub)
                    scored += 1
                if number == 100:
                    assert server.samples()["gradewire_reset_hosts_kept_out_total"] >= 1
        finally:
            stop.set()
            for each in resetting:
                each.join()
        assert figure("calls of others scored beside resets on 20 connections, of 200", scored, bound=">= 100").holds
        assert score(stub)
