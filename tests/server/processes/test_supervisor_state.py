"""Health of all processes together shows what each lacks, and that the HTTP gateway is down."""

from types import SimpleNamespace
from typing import Any, cast

from prometheus_client import CollectorRegistry, Counter, Gauge
from tests.support.fakes.server_processes import FakeServerProcess

from gradewire_server.process import Phase
from gradewire_server.processes.process_connection import to_json
from gradewire_server.processes.supervisor_state import SupervisorState


def _slot(process: FakeServerProcess | None) -> Any:
    return SimpleNamespace(
        process=process,
        serves=process is not None and process.serves,
        ready=process is not None and process.ready,
        trouble="process 0 is starting",
    )


def _finished(*processes: FakeServerProcess | None) -> SupervisorState:
    state = SupervisorState(CollectorRegistry())
    state.workers = [_slot(process) for process in processes]
    state.phase = Phase.SERVING
    return state


def _counts(calls: int, waiting: float) -> list[Any]:
    registry = CollectorRegistry()
    if calls:
        Counter("gradewire_calls", "Calls.", ("code",), registry=registry).labels("OK").inc(calls)
    else:
        Counter("gradewire_calls", "Calls.", ("code",), registry=registry)
    Gauge("gradewire_calls_in_flight", "Calls.", registry=registry).set(waiting)
    return to_json(registry.collect())


async def _shown(state: SupervisorState) -> dict[str, float]:
    return {name: value for family in await state.metrics() for name, _, value in family[4]}


async def test_what_an_ended_process_has_counted_stays() -> None:
    first, second = FakeServerProcess(), FakeServerProcess()
    state = _finished(first, second)
    for ended in (_counts(0, 0), _counts(3, 9)):
        process = FakeServerProcess()
        process.metrics = ended
        state.process_exited(cast("Any", process))
    assert (await _shown(state))["gradewire_calls_total"] == 3
    first.metrics, second.metrics = _counts(1, 2), _counts(4, 0)
    shown = await _shown(state)
    assert (shown["gradewire_calls_total"], shown["gradewire_calls_in_flight"]) == (8, 2)


async def test_a_gateway_that_is_down_is_shown() -> None:
    state = _finished(FakeServerProcess(), FakeServerProcess())
    gateway = SimpleNamespace(trouble="")
    state.gateway = cast("Any", gateway)
    assert state.report()["degraded"] == []
    gateway.trouble = "the HTTP gateway ended with signal 9"
    assert state.report()["degraded"] == ["the HTTP gateway ended with signal 9"]
    assert state.ready, "gRPC goes on"


async def test_the_number_of_troubles_counts_the_gateway() -> None:
    state = _finished(FakeServerProcess(), FakeServerProcess())
    state.gateway = cast("Any", SimpleNamespace(trouble="the HTTP gateway ended with signal 9"))
    registry = CollectorRegistry()
    Gauge("gradewire_degraded", "Troubles.", registry=registry)
    for worker in state.workers:
        worker.process.metrics = to_json(registry.collect())  # type: ignore[union-attr] # both have one
    (family,) = await state.metrics()
    assert family[4] == [["gradewire_degraded", {}, 1.0]]


async def test_a_process_that_serves_says_by_itself_what_it_lacks_and_one_that_does_not_is_named() -> None:
    state = _finished(FakeServerProcess(lacks="triton is unreachable"), FakeServerProcess())
    assert state.report()["degraded"] == ["triton is unreachable"]
    assert state.ready
    state = _finished(FakeServerProcess(lacks="triton is unreachable"), None)
    assert state.report()["degraded"] == ["process 0 is starting", "triton is unreachable"]
    assert not state.ready
