"""A server process takes part in the shared memory, or serves without it, and is not ready without its GPU."""

import os
from pathlib import Path
from unittest.mock import Mock

import pytest
from prometheus_client import CollectorRegistry

from gradewire_server.app import _shared_table, _show_health
from gradewire_server.backends import Backends
from gradewire_server.encoders.service import EncoderHealth
from gradewire_server.judges.service import JudgeHealth
from gradewire_server.processes.child import Position
from gradewire_server.rpc.health import Lifecycle
from gradewire_server.rpc.telemetry import RpcTelemetry
from gradewire_server.storage.shared_table import MIN_BYTES, create_table


def test_a_process_opens_the_memory_that_its_supervisor_created(tmp_path: Path) -> None:
    descriptor = create_table(MIN_BYTES, 2)
    one, two = (_shared_table(Position(index, 2, 0, tmp_path, shared=descriptor)) for index in range(2))
    assert one is not None
    assert two is not None
    one.put(b"n" * 16, b"value", pinned=False)
    assert two.get(b"n" * 16) == (b"value", False)
    os.close(descriptor)


def test_a_process_serves_without_memory_that_it_cannot_use(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert _shared_table(Position(0, 2, 0, tmp_path)) is None
    assert not caplog.text
    other = os.memfd_create("another")
    os.ftruncate(other, MIN_BYTES)
    for descriptor in (other, 10_000):
        caplog.clear()
        assert _shared_table(Position(0, 2, 0, tmp_path, shared=descriptor)) is None
        assert "shares no memory" in caplog.text
    os.close(other)


@pytest.mark.parametrize(("lost", "ready"), [("", True), ("GPU 0 is lost: it fell off the bus", False)])
async def test_a_process_without_its_gpu_is_not_ready(lost: str, *, ready: bool) -> None:
    lifecycle = Lifecycle(RpcTelemetry(CollectorRegistry()))
    lifecycle.serving(Mock())
    backends = Mock(Backends)
    backends.health.return_value = EncoderHealth({"model": True}, {}, ())
    backends.judge_health.return_value = JudgeHealth(configured=False, ready=False)
    backends.lost.return_value = lost
    _show_health(backends, lifecycle, Mock(overload_s=0.0), None)
    assert lifecycle.ready is ready
    assert lifecycle.is_serving("") is ready
    assert lifecycle.report()["degraded"] == ([lost] if lost else [])
