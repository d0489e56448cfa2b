"""Monitoring.Snapshot: the figures of the registry, in short, for those who may see them."""

from pathlib import Path

import grpc
import pytest
from tests.support.servers.wire import EXACT, SBERT, Wire, error_of, item, request, wire_server

from gradewire_proto.v1 import monitoring_pb2, monitoring_pb2_grpc
from gradewire_server.domain.caller import Caller, Scope
from gradewire_server.rpc.telemetry import SNAPSHOT_SAMPLES
from gradewire_server.tenants.tokens import Authentication


async def snapshot(wire: Wire, **metadata: str) -> monitoring_pb2.SnapshotResponse:
    stub = monitoring_pb2_grpc.MonitoringStub(wire.channel)
    return await stub.Snapshot(monitoring_pb2.SnapshotRequest(), metadata=tuple(metadata.items()))


def test_it_reads_figures_that_there_are() -> None:
    """The page of figures is held against a real server by a test of its own."""
    page = (Path(__file__).parents[3] / "docs/operate/observe.md").read_text(encoding="utf-8")
    assert [name for name in SNAPSHOT_SAMPLES if f"`{name.removesuffix('_bucket')}`" not in page] == []


async def test_it_counts_what_was_called_but_not_itself() -> None:
    async with wire_server() as wire:
        before = await snapshot(wire)
        await wire.scoring.Score(request(item(), item(""), metrics=(EXACT, SBERT)))
        with pytest.raises(grpc.aio.AioRpcError):
            await wire.scoring.Score(request(item(), metrics=()))
        await wire.calls.idle()
        after = await snapshot(wire)
    assert (before.calls, before.items, sum(before.latency_counts)) == (0, 0, 0)
    assert (after.calls, after.failed_calls, after.items) == (2, 1, 3)
    assert sum(after.latency_counts) == 2
    assert len(after.latency_counts) == len(after.latency_bounds_s) + 1
    assert list(after.latency_bounds_s) == sorted(after.latency_bounds_s)
    assert (after.calls_in_flight, after.items_in_flight) == (0, 0)
    assert after.at_s > before.at_s
    assert (after.phase, list(after.degraded)) == ("serving", [])
    assert after.resident_bytes > 1 << 20


async def test_it_says_what_is_degraded() -> None:
    async with wire_server() as wire:
        wire.lifecycle.observe(degraded=["Redis is away"], broken=[])
        found = await snapshot(wire)
    assert list(found.degraded) == ["Redis is away"]


async def test_it_needs_the_scope_admin() -> None:
    class Known(Authentication):
        def caller(self, authorization: str, peer: str) -> Caller:
            del peer
            return Caller("tenant", scopes=frozenset({Scope(authorization.removeprefix("Bearer "))}))

    async with wire_server(authentication=Known(())) as wire:
        assert (await snapshot(wire, authorization="Bearer admin")).phase == "serving"
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await snapshot(wire, authorization="Bearer score")
    code, details, _ = error_of(caught)
    assert code is grpc.StatusCode.PERMISSION_DENIED
    assert "scope admin" in details
