"""Client processes against a real server on a socket."""

import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import grpc
import psutil
import pytest
from tests.cli.bench.load.samples import even_offsets
from tests.client.small_server import Fault, SmallServer, run_small_server

from gradewire.errors import ServerUnreachable
from gradewire.metrics.choice import MetricDefaults, choose_metrics
from gradewire.transport import Endpoint
from gradewire_cli.bench.load.calls import Objective, percentile_s
from gradewire_cli.bench.load.content import Mix, OwnRows
from gradewire_cli.bench.load.processes import ClientProcessError, LoadOptions, LoadProcesses
from gradewire_proto.v1 import types_pb2

TOKEN = "of-a-tenant"  # noqa: S105 - of a server of this test
MIX = Mix(min_words=3, max_words=6, repeat_share=0.5)


def setup(address: str, batch: int = 2, processes: int = 2) -> LoadOptions:
    return LoadOptions(
        endpoint=Endpoint(address, token=TOKEN),
        metrics=choose_metrics("exact_match", MetricDefaults()),
        rows=MIX,
        client_processes=processes,
        batch=batch,
        deadline_s=30.0,
        seed=0,
        wait_s=20.0,
        objective=Objective(p99_s=0.25, max_lag_s=0.025),
    )


@pytest.fixture(scope="module")
def server() -> Iterator[SmallServer]:
    with run_small_server() as server:
        yield server


@pytest.fixture(scope="module")
def processes(server: SmallServer) -> Iterator[LoadProcesses]:
    with LoadProcesses(setup(server.address)) as processes:
        yield processes


def test_what_two_processes_count_is_what_the_server_saw(server: SmallServer, processes: LoadProcesses) -> None:
    server.script.requests.clear()
    counts = processes.open_step(even_offsets(100, 0.6), 30.0)
    assert not counts.stopped
    assert counts.due == 60 == len(counts.latency_s) == counts.in_time == len(server.script.requests)
    assert counts.items == counts.sent_items == 120 == sum(len(one.items) for one in server.script.requests)
    assert counts.codes == {"OK": 60}
    assert counts.statuses == {"OK": 120}
    assert counts.failed == counts.refused == 0
    assert server.script.metadata[-1]["authorization"] == f"Bearer {TOKEN}"
    sent = [item.prediction for one in server.script.requests for item in one.items]
    pool = {item.prediction for item in MIX.pool()}
    assert counts.repeated == sum(prediction in pool for prediction in sent)
    # Processes draw their own answers.
    new = [prediction for prediction in sent if prediction not in pool]
    assert len(set(new)) == len(new)


def test_rows_of_a_file_are_new_once_over_all_processes_and_steps(server: SmallServer) -> None:
    rows = [types_pb2.Item(prediction=f"row {number}", references=["row"]) for number in range(30)]
    server.script.requests.clear()
    with LoadProcesses(replace(setup(server.address, batch=1), rows=OwnRows(rows))) as processes:
        assert not server.script.requests, "a row that was sent before is not new any more"
        first, second = (processes.open_step(even_offsets(100, 0.2), 30.0) for _ in range(2))
    sent = [item.prediction for one in server.script.requests for item in one.items]
    assert len(set(sent[:20])) == 20
    assert sorted(set(sent)) == sorted(row.prediction for row in rows)
    assert first.repeated == 0
    assert second.repeated == 10


def test_refusals_failures_and_hints_are_told_apart(server: SmallServer, processes: LoadProcesses) -> None:
    server.script.faults = [
        Fault(grpc.StatusCode.RESOURCE_EXHAUSTED, pushback_ms=100),
        Fault(grpc.StatusCode.RESOURCE_EXHAUSTED),
        Fault(grpc.StatusCode.INTERNAL, "broken"),
    ]
    counts = processes.open_step(even_offsets(100, 0.2), 30.0)
    assert counts.codes == {"OK": 17, "RESOURCE_EXHAUSTED": 2, "INTERNAL": 1}
    assert (counts.refused, counts.hinted, counts.failed) == (2, 1, 1)


def test_a_closed_loop_gives_a_first_guess(processes: LoadProcesses) -> None:
    counts = processes.probe(0.2)
    assert counts.due == len(counts.latency_s) > 0


def test_a_stall_of_a_real_server_is_seen_by_the_calls_that_it_keeps_waiting(
    server: SmallServer, processes: LoadProcesses
) -> None:
    stall_s, rate = 0.6, 100
    threading.Timer(0.8, server.script.hold.clear).start()
    threading.Timer(0.8 + stall_s, server.script.hold.set).start()
    latency = processes.open_step(even_offsets(rate, 1.6), 30.0).latency_s
    assert len(latency) == 160
    # The calls of the stall's first 0.4 s wait for 0.2 s at least: a quarter of all. Half of that is asked for, since
    # timers are late on a busy machine; a closed loop would have one such call for each that is open.
    assert percentile_s(latency, 100 * (1 - 20 / 160)) > 0.2


def test_ctrl_c_keeps_what_was_counted(processes: LoadProcesses) -> None:
    # To this thread: another one, which the system may choose, would not wake it.
    threading.Timer(1.0, signal.pthread_kill, (threading.get_ident(), signal.SIGINT)).start()
    began_s = time.monotonic()
    counts = processes.open_step(even_offsets(50, 60.0), 90.0)
    assert counts.stopped
    assert time.monotonic() - began_s < 30
    assert 0 < len(counts.latency_s) <= counts.due < 3000
    # The processes are there for the next step.
    assert processes.open_step(even_offsets(50, 0.1), 30.0).due == 5


def test_a_process_that_dies_is_an_error_and_no_hanging_run(server: SmallServer) -> None:
    before = psutil.Process().children()
    with LoadProcesses(setup(server.address, processes=1)) as processes:
        (victim,) = set(psutil.Process().children()) - set(before)
        threading.Timer(0.8, victim.kill).start()
        with pytest.raises(ClientProcessError, match="a client process ended"):
            processes.open_step(even_offsets(20, 30.0), 60.0)


def test_a_server_that_is_not_there_is_told_by_its_address() -> None:
    nowhere = replace(setup("127.0.0.1:1"), wait_s=0.3)
    with (
        pytest.raises(ServerUnreachable, match=r"127\.0\.0\.1:1 did not answer"),
        LoadProcesses(replace(nowhere, client_processes=1)),
    ):
        raise AssertionError("it says that it is connected")
