"""Client processes against a real server on a socket."""

import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import grpc
import psutil
import pytest
from tests.client.small_server import Fault, SmallServer, run_small_server

from gradewire._transport.endpoint import Endpoint
from gradewire.errors import ServerUnreachable
from gradewire.load_testing.arrivals import constant
from gradewire.load_testing.content.mixes import Mix
from gradewire.load_testing.content.own_rows import OwnRows
from gradewire.load_testing.workers.processes import ClientProcessError, LoadProcesses
from gradewire.load_testing.workers.worker import CallKind, Fill, Probe, WorkerSetup
from gradewire.metric_types.choice import MetricDefaults, choose_metrics
from gradewire_proto.v1 import types_pb2

TOKEN = "of-a-tenant"  # noqa: S105 - of a server of this test
MIX = Mix(min_words=3, max_words=6, repeat_share=0.5)


def setup(address: str, call: CallKind = "unary", batch: int = 2) -> WorkerSetup:
    return WorkerSetup(
        endpoint=Endpoint(address, token=TOKEN),
        connections=2,
        call=call,
        metrics=[spec.SerializeToString() for spec in choose_metrics("exact_match", MetricDefaults()).specs],
        rows=MIX,
        batch=batch,
        deadline_s=30.0,
        seed=0,
        wait_s=20.0,
    )


@pytest.fixture(scope="module")
def server() -> Iterator[SmallServer]:
    with run_small_server() as server:
        yield server


@pytest.fixture(scope="module")
def processes(server: SmallServer) -> Iterator[LoadProcesses]:
    with LoadProcesses(setup(server.address), 2) as processes:
        yield processes


def no_one(passed_s: float) -> None:
    assert passed_s >= 0


def test_what_two_processes_count_is_what_the_server_saw(server: SmallServer, processes: LoadProcesses) -> None:
    server.script.requests.clear()
    run = processes.open_step(constant(100, 0.6), 30.0, no_one)
    counts = run.counts
    assert not run.stopped
    assert counts.due == 60 == len(counts.latency) == counts.in_time == len(server.script.requests)
    assert counts.items == counts.sent_items == 120 == sum(len(one.items) for one in server.script.requests)
    assert counts.codes == {"OK": 60}
    assert counts.statuses == {"OK": 120}
    assert counts.failed == counts.refused == 0
    assert server.script.metadata[-1]["authorization"] == f"Bearer {TOKEN}"
    sent = [item.prediction for one in server.script.requests for item in one.items]
    pool = {item.prediction for item in MIX.pool()}
    assert counts.repeated == sum(prediction in pool for prediction in sent)
    assert counts.words == sum(len(prediction.split()) for prediction in sent)
    # Processes draw their own answers.
    new = [prediction for prediction in sent if prediction not in pool]
    assert len(set(new)) == len(new)


def test_what_is_repeated_is_sent_once_by_one_of_them(server: SmallServer, processes: LoadProcesses) -> None:
    server.script.requests.clear()
    run = processes.run([Fill(part, 2) for part in range(2)], no_one)
    sent = sorted(item.prediction for one in server.script.requests for item in one.items)
    assert sent == sorted(item.prediction for item in MIX.pool())
    assert run.counts.due == 0


def test_rows_of_a_file_are_new_once_over_all_processes_and_steps(server: SmallServer) -> None:
    rows = [types_pb2.Item(prediction=f"row {number}", references=["row"]) for number in range(30)]
    server.script.requests.clear()
    with LoadProcesses(replace(setup(server.address, batch=1), rows=OwnRows.of(rows)), 2) as processes:
        assert processes.run([Fill(part, 2) for part in range(2)], no_one).counts.due == 0
        assert not server.script.requests, "a row that was sent before is not new any more"
        first, second = (processes.open_step(constant(100, 0.2), 30.0, no_one).counts for _ in range(2))
    sent = [item.prediction for one in server.script.requests for item in one.items]
    assert len(set(sent[:20])) == 20
    assert sorted(set(sent)) == sorted(row.prediction for row in rows)
    assert (first.repeated, first.again) == (0, 0)
    assert (second.repeated, second.again) == (10, 10)


def test_refusals_failures_and_hints_are_told_apart(server: SmallServer, processes: LoadProcesses) -> None:
    server.script.faults = [
        Fault(grpc.StatusCode.RESOURCE_EXHAUSTED, pushback_ms=100),
        Fault(grpc.StatusCode.RESOURCE_EXHAUSTED),
        Fault(grpc.StatusCode.INTERNAL, "broken"),
    ]
    counts = processes.open_step(constant(100, 0.2), 30.0, no_one).counts
    assert counts.codes == {"OK": 17, "RESOURCE_EXHAUSTED": 2, "INTERNAL": 1}
    assert (counts.refused, counts.hinted, counts.failed) == (2, 1, 1)
    assert len(counts.refusal) == 2


def test_a_closed_loop_gives_a_first_guess(processes: LoadProcesses) -> None:
    counts = processes.run([Probe(0.2, 2)] * 2, no_one).counts
    assert counts.due == len(counts.latency) > 0


def test_a_stall_of_a_real_server_is_seen_by_the_calls_that_it_keeps_waiting(
    server: SmallServer, processes: LoadProcesses
) -> None:
    stall_s, rate = 0.6, 100
    threading.Timer(0.6, server.script.hold.clear).start()
    threading.Timer(0.6 + stall_s, server.script.hold.set).start()
    latency = processes.open_step(constant(rate, 1.6), 30.0, no_one).counts.latency
    assert len(latency) == 160
    # The calls of the stall's first 0.4 s wait for 0.2 s at least: a quarter of all. Half of that is asked for, since
    # timers are late on a busy machine; a closed loop would have one such call for each that is open.
    assert latency.percentile_s(100 * (1 - 20 / 160)) > 0.2


def test_ctrl_c_keeps_what_was_counted(processes: LoadProcesses) -> None:
    interrupts = iter([KeyboardInterrupt()])

    def press(passed_s: float) -> None:
        if passed_s > 0.8 and (error := next(interrupts, None)) is not None:
            raise error

    began_s = time.monotonic()
    run = processes.open_step(constant(50, 60.0), 90.0, press)
    assert run.stopped
    assert time.monotonic() - began_s < 30
    assert 0 < len(run.counts.latency) <= run.counts.due < 3000
    # The processes are there for the next step.
    assert processes.open_step(constant(50, 0.1), 30.0, no_one).counts.due == 5


def test_streams_count_as_calls_do(server: SmallServer) -> None:
    server.script.streams = 0
    with LoadProcesses(setup(server.address, "stream", batch=3), 1) as processes:
        counts = processes.open_step(constant(100, 0.4), 30.0, no_one).counts
        assert counts.codes == {"OK": 40}
        assert counts.statuses == {"OK": 120}
        assert server.script.streams == 2


def test_messages_of_a_stream_that_is_refused_are_refused_and_another_stream_is_opened(server: SmallServer) -> None:
    server.script.streams = 0
    server.script.faults = [Fault(grpc.StatusCode.RESOURCE_EXHAUSTED, pushback_ms=5, after_messages=1)]
    with LoadProcesses(setup(server.address, "stream"), 1) as processes:
        counts = processes.open_step(constant(50, 0.4), 30.0, no_one).counts
    assert counts.refused == counts.hinted > 0
    assert counts.codes["OK"] == 20 - counts.refused > 0
    assert server.script.streams == 3


def test_a_process_that_dies_is_an_error_and_no_hanging_run(server: SmallServer) -> None:
    with LoadProcesses(setup(server.address), 1) as processes:
        victim = processes._processes[0]
        assert victim.pid is not None
        threading.Timer(0.3, psutil.Process(victim.pid).kill).start()
        with pytest.raises(ClientProcessError, match="ended with exit code -9"):
            processes.open_step(constant(20, 30.0), 60.0, no_one)
    assert not victim.is_alive()


def test_a_server_that_is_not_there_is_told_by_its_address() -> None:
    nowhere = replace(setup("127.0.0.1:1"), wait_s=0.3)
    with pytest.raises(ServerUnreachable, match=r"127\.0\.0\.1:1 does not answer"), LoadProcesses(nowhere, 1):
        raise AssertionError("it says that it is connected")
