"""Figures of several processes are added up, and counters never go back."""

import asyncio
import json
import logging
import socket
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, PlatformCollector
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from typing_extensions import override

from gradewire_server.encoders.prometheus import EncoderTelemetry, TritonTelemetry
from gradewire_server.process import Stop
from gradewire_server.processes.child import Child, Position
from gradewire_server.processes.process_connection import MetricsJson, ProcessConnection, add_up, to_json
from gradewire_server.resilience import BreakerState
from gradewire_server.storage.cache import StorageTelemetry


def _process(calls: int, waiting: float, overload_s: float) -> MetricsJson:
    registry = CollectorRegistry()
    counter = Counter("gradewire_calls", "Calls.", ("code",), registry=registry)
    counter.labels("OK").inc(calls)
    Gauge("gradewire_calls_in_flight", "Calls.", registry=registry).set(waiting)
    Gauge("gradewire_overload_seconds", "Overload.", registry=registry).set(overload_s)
    histogram = Histogram("gradewire_call_duration_seconds", "Time.", registry=registry, buckets=(1, 2))
    for _ in range(calls):
        histogram.observe(1.5)
    metrics_json: MetricsJson = json.loads(json.dumps(to_json(registry.collect())))
    return metrics_json


def _values(metrics: Iterable[Metric]) -> dict[str, float]:
    found = {}
    for metric in metrics:
        for sample in metric.samples:
            if not sample.name.endswith("_created"):
                found[sample.name + "".join(sorted(sample.labels.values()))] = sample.value
    return found


def test_counts_are_added_and_states_are_not() -> None:
    values = _values(add_up([_process(3, 1, 7), _process(4, 2, 5)]))
    assert values["gradewire_calls_totalOK"] == 7
    assert values["gradewire_calls_in_flight"] == 3
    assert values["gradewire_overload_seconds"] == 7
    assert values["gradewire_call_duration_seconds_bucket1.0"] == 0
    assert values["gradewire_call_duration_seconds_bucket2.0"] == 7
    assert values["gradewire_call_duration_seconds_count"] == 7


def test_what_describes_the_program_is_not_added_up() -> None:
    registry = CollectorRegistry()
    PlatformCollector(registry=registry)
    metrics_json = to_json(registry.collect())
    assert [sample.value for metric in add_up([metrics_json, metrics_json]) for sample in metric.samples] == [1]


def test_the_states_of_breakers_are_not_added_up_and_work_in_progress_is() -> None:
    registry = CollectorRegistry()
    triton, encoders, storage = TritonTelemetry(registry), EncoderTelemetry(registry), StorageTelemetry(registry)
    triton.set_breaker("m", BreakerState.OPEN)
    storage.set_breaker(BreakerState.OPEN)
    triton.in_flight.labels("m").set(3)
    encoders.expose(in_flight=lambda: 4)
    encoders.expose_gpu(busy_s=lambda: 1.5)
    metrics_json = to_json(registry.collect())
    values = _values(add_up([metrics_json, metrics_json]))
    assert values["gradewire_engine_triton_breaker_statemopen"] == 1
    assert values["gradewire_engine_breaker_stateopen"] == 1
    assert values["gradewire_engine_triton_in_flightm"] == 6
    assert values["gradewire_engine_in_flight_texts"] == 8
    assert values["gradewire_engine_gpu_busy_seconds_total"] == 3


_LARGE = 8_000_000
"""Characters: more than the system keeps for a reader that is away."""


class _Figures(Collector):
    @override
    def collect(self) -> Iterable[Metric]:
        return [Metric("large", "x" * _LARGE, "gauge")]


async def _none() -> MetricsJson:
    return []


async def _joined_once(position: Position, end: socket.socket) -> None:
    registry = CollectorRegistry()
    registry.register(_Figures())
    lifecycle = SimpleNamespace(ready=True, report=dict)
    async with Child(position, end, Stop()).joined(registry, cast("Any", lifecycle)):
        await asyncio.sleep(0.1)


async def test_the_last_figures_arrive_whole_from_a_process_that_ends_at_once(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)  # noqa: FBT003 - socket takes it by position
    said: list[dict[str, Any]] = []
    reading = asyncio.create_task(ProcessConnection(ours, _none, said.append).run())
    # As in a process of its own, its event loop is gone at once when it has left.
    await asyncio.to_thread(asyncio.run, _joined_once(Position(0, 2, 0, tmp_path), theirs))
    theirs.close()
    async with asyncio.timeout(30):
        await reading
    assert "metrics" in said[-1]
    ((name, documentation, *_),) = said[-1]["metrics"]
    assert (name, len(documentation)) == ("large", _LARGE)


async def test_a_supervisor_that_reads_nothing_holds_no_process_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("gradewire_server.processes.child._LAST_METRICS_S", 0.2)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        await asyncio.to_thread(asyncio.run, _joined_once(Position(0, 2, 0, tmp_path), theirs))
    assert "final metrics" in caplog.text


@pytest.mark.parametrize(
    ("last", "logged"),
    [
        (b'["metrics", -1, [["gradewire_ca', 0),
        (b"", 0),
        (b"Segmentation fault\n", 1),
        (b"\xff\xfe\n", 1),
        (b"7\n", 1),
        (b"[]\n", 1),
    ],
)
async def test_what_is_no_message_ends_the_link_in_order(
    last: bytes, logged: int, caplog: pytest.LogCaptureFixture
) -> None:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)  # noqa: FBT003 - socket takes it by position
    said: list[dict[str, Any]] = []
    link = ProcessConnection(ours, _none, said.append)
    reading = asyncio.create_task(link.run())
    with theirs:
        await asyncio.to_thread(theirs.sendall, b'["beat", {"phase": "serving"}]\n' + last)
        theirs.shutdown(socket.SHUT_WR)
        await reading
    assert said == [{"phase": "serving"}]
    errors = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(errors) == logged
    assert all("report this defect" in each for each in errors)


async def test_a_line_that_is_too_long_ends_the_link_in_order(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("gradewire_server.processes.process_connection._MAX_LINE_BYTES", 1 << 10)
    ours, theirs = socket.socketpair()
    ours.setblocking(False)  # noqa: FBT003 - socket takes it by position
    reading = asyncio.create_task(ProcessConnection(ours, _none, lambda _: None).run())
    with theirs:
        await asyncio.to_thread(theirs.sendall, b"[" * (4 << 10) + b"\n")
        await reading
    assert caplog.text.count("report this defect") == 1
