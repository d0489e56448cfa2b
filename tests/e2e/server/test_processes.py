"""Two server processes on one port, of which one is lost, hangs or is replaced."""

import asyncio
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from benchmarks.load.processes_soak import CountedTransport
from tests.support.servers.server_process import ServerProcess
from tests.support.servers.several_processes import (
    channels_by_process,
    is_there,
    process_ids,
    ready_processes,
    wait_until,
)

from gradewire import AsyncClient, Client
from gradewire_proto.v1 import models_pb2, models_pb2_grpc, scoring_pb2, scoring_pb2_grpc, types_pb2

_ROWS = [{"references": ["a cat"], "prediction": "a small cat"}] * 4
_EXACT = types_pb2.MetricSpec(exact_match=types_pb2.ExactMatchParameters())
pytestmark = pytest.mark.hostile


@pytest.fixture
def server(tmp_path: Path, minilm: Path) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path, model_repository=minilm, processes=2, judge_backend="none", drain_s=0) as running:
        yield running
        running.signal(signal.SIGTERM)
        running.wait()


def _calls(server: ServerProcess) -> float:
    samples = server.samples()
    return samples['gradewire_calls_total{code="OK",method="gradewire.v1.Scoring/Score"}']


def test_one_that_is_killed_is_started_again_and_counts_stay(server: ServerProcess) -> None:
    with Client(server.address) as client:
        client.score(_ROWS, "smile")
    before = _calls(server)
    os.kill(process_ids(server.pid)[0], signal.SIGKILL)
    wait_until(lambda: ready_processes(server) == 1)
    assert server.http("/readyz")[0] == 200
    assert any("ended with signal 9" in each for each in server.http("/healthz")[1]["degraded"])
    with Client(server.address) as client:
        client.score(_ROWS, "smile")
    wait_until(lambda: ready_processes(server) == 2)
    assert _calls(server) >= before
    assert server.samples()["gradewire_process_restarts_total"] == 1


def test_a_restart_of_all_in_turn_refuses_no_call(server: ServerProcess) -> None:
    """Not even an attempt that the client would repeat: calls in a row, calls that overlap, and streams."""
    before = set(process_ids(server.pid))
    done = threading.Event()
    transports = [CountedTransport(server.address) for _ in range(3)]
    rows = [{**row, "id": str(number)} for number, row in enumerate(_ROWS * 8)]

    def one_after_another() -> int:
        calls = 0
        with Client(transport=transports[0]) as client:
            while not done.is_set():
                assert len(client.score(_ROWS, "smile")) == len(_ROWS)
                calls += 1
        return calls

    def streams() -> int:
        calls = 0
        with Client(transport=transports[1]) as client:
            while not done.is_set():
                found = sorted(int(item.id) for item in client.score_stream(rows, "smile"))
                assert found == list(range(len(rows))), "each item is scored once"
                calls += 1
        return calls

    async def overlapping() -> int:
        calls = 0
        async with AsyncClient(transport=transports[2]) as client:

            async def caller() -> None:
                nonlocal calls
                while not done.is_set():
                    assert len(await client.score(_ROWS, "smile")) == len(_ROWS)
                    calls += 1

            await asyncio.gather(*(caller() for _ in range(6)))
        return calls

    least = 2
    with ThreadPoolExecutor() as pool:
        callers = [
            pool.submit(one_after_another),
            pool.submit(streams),
            pool.submit(lambda: asyncio.run(overlapping())),
        ]
        try:
            server.signal(signal.SIGHUP)

            def all_replaced() -> bool:
                nonlocal least
                least = min(least, ready_processes(server))
                return not before & set(process_ids(server.pid)) and ready_processes(server) == 2

            wait_until(all_replaced)
        finally:
            done.set()
        assert all(caller.result(30) > 1 for caller in callers)
    assert [transport.said for transport in transports] == [{}, {}, {}]
    assert least == 1
    assert server.samples()["gradewire_process_restarts_total"] == 0


def test_a_client_that_knows_nothing_of_processes_is_sent_to_another_one(server: ServerProcess) -> None:
    """It repeats nothing, has one connection, and calls all the time; a call of somebody else is in flight throughout.

    What it may lose are the calls that are on their way as the server says GOAWAY.
    """
    codes: Counter[str] = Counter()
    names: set[str] = set()
    with channels_by_process(server.address) as channels:
        waiting = threading.Event()

        def slow() -> Iterator[scoring_pb2.ScoreStreamRequest]:
            yield scoring_pb2.ScoreStreamRequest(config=scoring_pb2.ScoreStreamConfig(metrics=[_EXACT]))
            waiting.wait(8)

        stream = scoring_pb2_grpc.ScoringStub(channels["0/2"]).ScoreStream(slow(), timeout=60)
        next(iter(stream))
        server.signal(signal.SIGHUP)
        stub = models_pb2_grpc.ModelsStub(channels["0/2"])
        while "1/2" not in names:
            call = stub.List.future(models_pb2.ListModelsRequest(), timeout=20)
            codes[call.code().name] += 1
            names |= {str(value) for key, value in call.trailing_metadata() or () if key == "gradewire-process"}
        assert not stream.done(), "it left while the call of somebody else went on"
        waiting.set()
        assert stream.code() is grpc.StatusCode.OK
    assert codes["OK"] > 10
    assert codes.total() - codes["OK"] <= 2, codes
    server.wait_for_event("restarted 2 processes")


def test_callers_that_come_while_one_is_replaced_reach_the_other(server: ServerProcess) -> None:
    """A process that drains or loads does not listen on the port: no connection is sent to it."""
    server.signal(signal.SIGHUP)
    wait_until(lambda: ready_processes(server) == 1)
    names = set()
    while ready_processes(server) == 1:
        options = (("grpc.use_local_subchannel_pool", 1),)
        with grpc.insecure_channel(server.address, options) as channel:
            _, call = models_pb2_grpc.ModelsStub(channel).List.with_call(models_pb2.ListModelsRequest(), timeout=20)
            names |= {str(value) for key, value in call.trailing_metadata() if key == "gradewire-process"}
    assert names
    server.wait_for_event("restarted 2 processes")
    assert ready_processes(server) == 2


def test_one_that_gets_sigterm_alone_finishes_its_calls_and_another_one_takes_its_place(server: ServerProcess) -> None:
    asked = process_ids(server.pid)[0]
    item = types_pb2.Item(references=["a cat"], prediction="a small cat")
    request = scoring_pb2.ScoreRequest(items=[item], metrics=[_EXACT])
    with channels_by_process(server.address) as channels:
        waiting = threading.Event()

        def slow() -> Iterator[scoring_pb2.ScoreStreamRequest]:
            yield scoring_pb2.ScoreStreamRequest(config=scoring_pb2.ScoreStreamConfig(metrics=[_EXACT]))
            waiting.wait(60)

        streams = [scoring_pb2_grpc.ScoringStub(each).ScoreStream(slow(), timeout=90) for each in channels.values()]
        for stream in streams:
            next(iter(stream))
        os.kill(asked, signal.SIGTERM)
        wait_until(lambda: ready_processes(server) == 1)
        other = scoring_pb2_grpc.ScoringStub(channels["1/2"])
        assert len(other.Score(request, timeout=20).items) == 1
        assert asked in process_ids(server.pid), "it has a call yet"
        waiting.set()
        assert [stream.code() for stream in streams] == [grpc.StatusCode.OK] * 2
        wait_until(lambda: asked not in process_ids(server.pid) and ready_processes(server) == 2)
    assert any("ended with exit code 0" in line["event"] for line in server.log())
    assert server.samples()["gradewire_process_restarts_total"] == 1


def test_one_that_hangs_is_ended_and_started_again_while_the_other_serves(server: ServerProcess) -> None:
    with channels_by_process(server.address) as channels, Client(server.address) as client:
        stopped = process_ids(server.pid)[0]
        os.kill(stopped, signal.SIGSTOP)
        hangs = models_pb2_grpc.ModelsStub(channels["0/2"]).List.future(models_pb2.ListModelsRequest(), timeout=120)
        other = models_pb2_grpc.ModelsStub(channels["1/2"])
        while stopped in process_ids(server.pid):
            assert other.List(models_pb2.ListModelsRequest(), timeout=20).metrics
            time.sleep(0.2)
        assert hangs.code() is grpc.StatusCode.UNAVAILABLE
        wait_until(lambda: ready_processes(server) == 2)
        assert client.score(_ROWS, "smile")[0].scores["smile"].status == "OK"
    assert any("sent no heartbeat for 30 s" in line["event"] for line in server.log())
    assert server.samples()["gradewire_process_restarts_total"] == 1


def test_none_outlives_a_supervisor_that_is_killed(server: ServerProcess) -> None:
    children = process_ids(server.pid)
    assert len(children) == 2
    server.kill()
    wait_until(lambda: not any(is_there(child) for child in children))
