"""Who opens calls and resets them loses the connection and may open no others for a while; others notice nothing."""

import logging
from collections.abc import Collection, Mapping

import pytest
from prometheus_client import CollectorRegistry

from gradewire_server.rpc.connections.address_filter import AddressFilter
from gradewire_server.rpc.connections.channelz import ServerConnections, peer_of
from gradewire_server.rpc.connections.reset_guard import ResetGuard, pause_after
from gradewire_server.rpc.telemetry import RpcTelemetry

_RESETTER, _OTHER = ("10.0.0.1", 1), ("10.0.0.2", 2)


class Connections(ServerConnections):
    """Figures that a test sets."""

    def __init__(self) -> None:
        super().__init__(0)
        self.count = 0
        self.counts: dict[tuple[str, int], int] = {}
        self.closed: list[set[tuple[str, int]]] = []
        self.unread_of: list[str] = []

    def unanswered(self) -> int:
        return self.count

    def resets(self) -> Mapping[tuple[str, int], int]:
        return dict(self.counts)

    def close(self, peers: Collection[tuple[str, int]], *, unread_of: str = "") -> int:
        self.closed.append(set(peers))
        self.unread_of.append(unread_of)
        return len(peers)


class Addresses(AddressFilter):
    """Notes whom it was told to keep out, where that is others than before."""

    def __init__(self) -> None:
        super().__init__(0)
        self.told: list[set[str]] = [set()]

    def keep_out(self, hosts: Collection[str]) -> None:
        if set(hosts) != self.told[-1]:
            self.told.append(set(hosts))


class Guarded:
    """A guard, and what stands around it."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.connections, self.addresses, self.now_s = Connections(), Addresses(), 0.0
        self.guard = ResetGuard(
            RpcTelemetry(self.registry).resets,
            self.connections,
            self.addresses,
            max_per_s=100,
            clock=lambda: self.now_s,
        )

    def look(self, resets: Mapping[tuple[str, int], int], *, after_s: float = 0.1) -> bool:
        """Lets time pass in which calls are reset, and looks."""
        self.now_s += after_s
        for peer, count in resets.items():
            self.connections.counts[peer] = self.connections.counts.get(peer, 0) + count
            self.connections.count += count
        return self.guard.look()

    def counted(self, name: str) -> float | None:
        return self.registry.get_sample_value(f"gradewire_reset_{name}_total")


@pytest.fixture
def guarded() -> Guarded:
    return Guarded()


def test_calls_that_are_answered_are_no_reason_to_look(guarded: Guarded) -> None:
    guarded.connections.counts = {_RESETTER: 10**6}
    assert not guarded.look({})
    assert not guarded.connections.closed


def test_a_client_may_end_with_its_calls_open_and_reset_what_the_setting_allows(guarded: Guarded) -> None:
    for _ in range(100):
        guarded.look({_RESETTER: 10})  # in 0.1 s: the setting's 100 in a second
    guarded.look({_RESETTER: 24})
    assert not guarded.connections.closed
    assert guarded.addresses.told == [set()]


def test_the_connection_that_resets_is_closed_and_no_other(guarded: Guarded, caplog: pytest.LogCaptureFixture) -> None:
    guarded.connections.counts = {_OTHER: 10**6}
    assert guarded.look({_RESETTER: 500})
    assert not guarded.connections.closed  # when these were reset nobody knows
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert guarded.look({_RESETTER: 1000})
    assert guarded.connections.closed == [{_RESETTER}] * 3
    assert guarded.counted("calls") == 3000
    assert guarded.counted("connections_closed") == 3
    assert guarded.counted("hosts_kept_out") == 1
    assert [record.getMessage().partition(" ")[0] for record in caplog.records] == ["10.0.0.1"]


def test_of_one_host_only_those_are_closed_that_take_part(guarded: Guarded) -> None:
    quiet, loud = ("10.0.0.1", 5), [("10.0.0.1", port) for port in range(10, 20)]
    guarded.look({quiet: 1, _OTHER: 100})
    guarded.look({quiet: 1, **dict.fromkeys(loud, 100)})
    assert guarded.connections.closed == [set(loud)]
    guarded.look({quiet: 1, loud[0]: 11, loud[1]: 300})
    assert guarded.connections.closed[1:] == [set(loud[:2])], "it goes on: who resets a little is closed too"
    assert guarded.connections.unread_of == ["", "10.0.0.1"]


def test_a_host_is_kept_out_for_longer_each_time(guarded: Guarded) -> None:
    pauses = []
    for _ in range(7):
        guarded.look({_RESETTER: 500})
        guarded.look({_RESETTER: 500})
        assert guarded.addresses.told[-1] == {"10.0.0.1"}
        began_s = guarded.now_s
        while guarded.addresses.told[-1]:
            guarded.look({}, after_s=0.5)
        pauses.append(round(guarded.now_s - began_s, 3))
    assert pauses == [2, 4, 8, 16, 32, 60, 60]
    guarded.look({}, after_s=61)
    guarded.look({_RESETTER: 500})
    guarded.look({_RESETTER: 500})
    guarded.look({}, after_s=2.5)
    assert guarded.addresses.told[-1] == set(), "what it did long ago is forgotten"


def test_at_the_end_nobody_is_kept_out(guarded: Guarded) -> None:
    guarded.look({_RESETTER: 500})
    guarded.look({_RESETTER: 500})
    guarded.guard.stop()
    assert guarded.addresses.told == [set(), {"10.0.0.1"}, set()]


@pytest.mark.parametrize(("cost_s", "pause_s"), [(0.0, 0.05), (0.0001, 0.05), (0.005, 0.5), (0.05, 1.0)])
def test_looking_takes_a_hundredth_of_a_core_at_most(cost_s: float, pause_s: float) -> None:
    assert pause_after(cost_s) == pytest.approx(pause_s)


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
    assert peer_of(name) == peer
