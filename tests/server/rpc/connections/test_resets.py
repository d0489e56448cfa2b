"""Who opens calls and resets them loses the connection; whoever else calls notices nothing."""

import logging

import pytest
from prometheus_client import CollectorRegistry

from gradewire_server.rpc.connections.resets import Arrivals, ResetGuard, ServerConnections, _peer
from gradewire_server.rpc.telemetry import RpcTelemetry

_RESETTER, _OTHER = ("10.0.0.1", 1), ("10.0.0.2", 2)


class Connections(ServerConnections):
    """Figures that a test sets."""

    def __init__(self) -> None:
        super().__init__(0)
        self.counts: dict[tuple[str, int], int] = {}
        self.closed: list[set[tuple[str, int]]] = []

    def resets(self) -> dict[tuple[str, int], int]:
        return dict(self.counts)

    def close(self, peers: set[tuple[str, int]]) -> int:
        self.closed.append(peers)
        return len(peers)


@pytest.fixture
def connections() -> Connections:
    return Connections()


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def arrivals() -> Arrivals:
    return Arrivals()


@pytest.fixture
def guard(arrivals: Arrivals, connections: Connections, registry: CollectorRegistry) -> ResetGuard:
    return ResetGuard(arrivals, RpcTelemetry(registry).resets, connections, max_per_s=1)


def abandon(arrivals: Arrivals, count: int) -> None:
    for _ in range(count):
        arrivals.arrived()


def test_calls_that_are_answered_are_no_reason_to_look(
    guard: ResetGuard, arrivals: Arrivals, connections: Connections
) -> None:
    connections.counts = {_RESETTER: 10**6}
    abandon(arrivals, 1000)
    for _ in range(1000):
        arrivals.taken()
    guard.look()
    assert not connections.closed


def test_the_connection_that_resets_is_closed_and_no_other(
    guard: ResetGuard,
    arrivals: Arrivals,
    connections: Connections,
    registry: CollectorRegistry,
    caplog: pytest.LogCaptureFixture,
) -> None:
    connections.counts = {_RESETTER: 500, _OTHER: 10**6}
    abandon(arrivals, 1000)
    guard.look()
    assert not connections.closed  # when these were reset nobody knows
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            connections.counts[_RESETTER] += 1000
            for _ in range(1000):
                arrivals.arrived()
                arrivals.taken()
                arrivals.cancelled()
            guard.look()
    assert connections.closed == [{_RESETTER}] * 3
    assert registry.get_sample_value("gradewire_reset_calls_total") == 3000
    assert registry.get_sample_value("gradewire_reset_connections_closed_total") == 3
    assert [record.getMessage().partition(" ")[0] for record in caplog.records] == ["10.0.0.1"]


def test_of_one_host_only_those_are_closed_that_take_part(
    guard: ResetGuard, arrivals: Arrivals, connections: Connections
) -> None:
    quiet, loud = ("10.0.0.1", 5), [("10.0.0.1", port) for port in range(10, 20)]
    connections.counts = {quiet: 1}
    abandon(arrivals, 1000)
    guard.look()
    connections.counts = {quiet: 2, **dict.fromkeys(loud, 100)}
    abandon(arrivals, 1000)
    guard.look()
    assert connections.closed == [set(loud)]


@pytest.mark.parametrize(
    ("name", "peer"),
    [
        ("chttp2 ipv4:127.0.0.1:36958", ("127.0.0.1", 36958)),
        ("chttp2 ipv6:%5B::1%5D:57256", ("::1", 57256)),
        ("chttp2 ipv6:%5B::ffff:10.1.2.3%5D:7", ("10.1.2.3", 7)),
        ("chttp2 unix:/tmp/x", None),
        ("", None),
    ],
)
def test_names_of_peers_are_read(name: str, peer: tuple[str, int] | None) -> None:
    assert _peer(name) == peer
