"""Two server processes on one port: calls reach both, one may be lost or replaced, and all is shown as one server."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest
from tests.support.servers.server_process import ServerProcess

from gradewire import Client
from gradewire_proto.v1 import monitoring_pb2, monitoring_pb2_grpc

_ROWS = [{"references": ["a cat"], "prediction": "a small cat"}] * 4
_WAIT_S = 60.0


@pytest.fixture
def server(tmp_path: Path, minilm: Path) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path, model_repository=minilm, processes=2, judge_backend="none", drain_s=0) as running:
        yield running
        running.signal(signal.SIGTERM)
        running.wait()


def _children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _until(holds: Callable[[], bool]) -> None:
    give_up_s = time.monotonic() + _WAIT_S
    while not holds():
        assert time.monotonic() < give_up_s
        time.sleep(0.05)


def _calls(server: ServerProcess) -> float:
    samples = server.samples()
    return samples['gradewire_calls_total{code="OK",method="gradewire.v1.Scoring/Score"}']


def _ready(server: ServerProcess) -> int:
    return int(server.http("/healthz")[1]["processes"]["ready"])


def _processes_that_answer(server: ServerProcess, calls: int = 40) -> set[str]:
    """Over connections of their own."""
    found = set()
    for number in range(calls):
        options = (("grpc.use_local_subchannel_pool", 1), ("test.number", number))
        with grpc.insecure_channel(server.address, options) as channel:
            _, call = monitoring_pb2_grpc.MonitoringStub(channel).Snapshot.with_call(
                monitoring_pb2.SnapshotRequest(), timeout=20
            )
            found |= {str(value) for key, value in call.trailing_metadata() if key == "gradewire-process"}
        if len(found) == 2:
            break
    return found


def test_both_answer_and_are_shown_as_one(server: ServerProcess) -> None:
    assert _processes_that_answer(server) == {"0/2", "1/2"}
    with Client(server.address, connections=8) as client:
        for _ in range(5):
            assert client.score(_ROWS, "exact_match,smile").items[0].scores["smile"].status == "OK"
        stub_calls = _calls(server)
    assert stub_calls >= 5
    with grpc.insecure_channel(server.address) as channel:
        snapshot = monitoring_pb2_grpc.MonitoringStub(channel).Snapshot(monitoring_pb2.SnapshotRequest(), timeout=20)
    assert snapshot.calls >= stub_calls
    assert server.http("/readyz")[0] == 200


@pytest.mark.hostile
def test_one_that_is_killed_is_started_again_and_counts_stay(server: ServerProcess) -> None:
    with Client(server.address) as client:
        client.score(_ROWS, "smile")
    before = _calls(server)
    os.kill(_children(server.pid)[0], signal.SIGKILL)
    _until(lambda: _ready(server) == 1)
    assert server.http("/readyz")[0] == 200
    assert any("ended with signal 9" in each for each in server.http("/healthz")[1]["degraded"])
    with Client(server.address) as client:
        client.score(_ROWS, "smile")
    _until(lambda: _ready(server) == 2)
    assert _calls(server) >= before
    assert server.samples()["gradewire_process_restarts_total"] == 1


@pytest.mark.hostile
def test_a_restart_of_all_in_turn_fails_no_call(server: ServerProcess) -> None:
    before = set(_children(server.pid))
    failed: list[Exception] = []
    done = threading.Event()

    def score() -> None:
        with Client(server.address) as client:
            while not done.is_set():
                try:
                    client.score(_ROWS, "smile")
                except Exception as error:  # noqa: BLE001 - all of them are counted
                    failed.append(error)

    callers = [threading.Thread(target=score) for _ in range(3)]
    for caller in callers:
        caller.start()
    try:
        server.signal(signal.SIGHUP)
        least = 2

        def all_replaced() -> bool:
            nonlocal least
            least = min(least, _ready(server))
            return not before & set(_children(server.pid)) and _ready(server) == 2

        _until(all_replaced)
    finally:
        done.set()
        for caller in callers:
            caller.join()
    assert not failed
    assert least >= 1


@pytest.mark.hostile
def test_none_outlives_a_supervisor_that_is_killed(server: ServerProcess) -> None:
    children = _children(server.pid)
    assert len(children) == 2
    server.kill()
    _until(lambda: not any(Path(f"/proc/{child}").exists() for child in children))
    assert not any(Path(f"/proc/{child}").exists() for child in children)
