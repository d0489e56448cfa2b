"""Health of all processes together shows what each lacks, and that the HTTP gateway is down."""

from types import SimpleNamespace
from typing import Any, cast

from prometheus_client import CollectorRegistry, Gauge
from tests.support.fakes.server_processes import FakeServerProcess

from gradewire_server.concurrency import Phase
from gradewire_server.processes.connection import to_json
from gradewire_server.processes.state import SupervisorState


def _slot(process: FakeServerProcess | None) -> Any:
    return SimpleNamespace(
        process=process,
        serves=process is not None and process.serves,
        ready=process is not None and process.ready,
        trouble="process 0 is starting",
    )


def _whole(*processes: FakeServerProcess | None) -> SupervisorState:
    whole = SupervisorState(CollectorRegistry())
    whole.slots = [_slot(process) for process in processes]
    whole.phase = Phase.SERVING
    return whole


async def test_a_gateway_that_is_down_is_shown() -> None:
    whole = _whole(FakeServerProcess(), FakeServerProcess())
    gateway = SimpleNamespace(trouble="")
    whole.gateway = cast("Any", gateway)
    assert whole.report()["degraded"] == []
    gateway.trouble = "the HTTP gateway ended with signal 9"
    assert whole.report()["degraded"] == ["the HTTP gateway ended with signal 9"]
    assert whole.ready, "gRPC goes on"


async def test_the_number_of_troubles_counts_the_gateway() -> None:
    whole = _whole(FakeServerProcess(), FakeServerProcess())
    whole.gateway = cast("Any", SimpleNamespace(trouble="the HTTP gateway ended with signal 9"))
    registry = CollectorRegistry()
    Gauge("gradewire_degraded", "Troubles.", registry=registry)
    for slot in whole.slots:
        slot.process.figures = to_json(registry.collect())  # type: ignore[union-attr] # both have one
    (family,) = await whole.figures()
    assert family[4] == [["gradewire_degraded", {}, 1.0]]


async def test_a_process_that_serves_says_by_itself_what_it_lacks_and_one_that_does_not_is_named() -> None:
    whole = _whole(FakeServerProcess(lacks="triton is unreachable"), FakeServerProcess())
    assert whole.report()["degraded"] == ["triton is unreachable"]
    assert whole.ready
    whole = _whole(FakeServerProcess(lacks="triton is unreachable"), None)
    assert whole.report()["degraded"] == ["process 0 is starting", "triton is unreachable"]
    assert not whole.ready
