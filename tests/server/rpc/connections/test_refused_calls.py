"""Calls that gRPC refuses by itself are told from bytes; nothing else looks like them."""

import pytest

from gradewire_server.rpc.connections.channelz import StreamCounts
from gradewire_server.rpc.connections.refused_calls import RefusedCalls
from gradewire_server.rpc.receiving.sockets import Received

_NAME, _PEER = "ipv4:10.0.0.1:7", ("10.0.0.1", 7)


class Connection:
    """One connection, its figures set by a test, looked at twice a second."""

    def __init__(self) -> None:
        self.received, self.sent, self.now_s, self.asked = 100_000, 1_000, 0.0, 0
        self.delivered: dict[str, int] = {}
        self.counts = StreamCounts(0, 0, 0)
        self._refused = RefusedCalls(
            lambda least: {_NAME: Received(3, self.received, self.sent)} if self.received >= least else {},
            self.delivered,
            self._streams,
            max_per_s=2000,
        )

    def _streams(self) -> dict[tuple[str, int], StreamCounts]:
        self.asked += 1
        return {_PEER: self.counts}

    def look(self, after_s: float = 0.5) -> dict[tuple[str, int], int]:
        self.now_s += after_s
        return dict(self._refused.since_last_look(self.now_s))

    def add(
        self,
        *,
        received: int = 0,
        sent: int = 0,
        delivered: int = 0,
        started: int = 0,
        failed: int = 0,
        replies: int = 0,
    ) -> None:
        """What half a second brings."""
        self.received += received
        self.sent += sent
        self.delivered[_NAME] = self.delivered.get(_NAME, 0) + delivered
        self.counts = StreamCounts(
            self.counts.started + started, self.counts.failed + failed, self.counts.messages_sent + replies
        )


@pytest.fixture
def connection() -> Connection:
    return Connection()


@pytest.mark.parametrize("call_bytes", [28, 133])
def test_calls_beyond_what_a_connection_may_have_are_told(connection: Connection, call_bytes: int) -> None:
    found = []
    for _ in range(4):
        found.append(connection.look())
        connection.add(received=100_000 * call_bytes, sent=100_000 * 13, started=25, failed=25)
    assert found[:2] == [{}, {}]
    for each in found[2:]:
        assert each[_PEER] == pytest.approx(100_000, rel=0.02)


def test_it_looks_twice_a_second_however_often_it_is_asked(connection: Connection) -> None:
    for _ in range(4):
        connection.look()
        connection.add(received=10**7, sent=10**6, started=25, failed=25)
    assert connection.look(0.1) == {}
    assert connection.look()[_PEER] > 50_000


@pytest.mark.parametrize(
    "half_second",
    [
        pytest.param({"received": 10**7, "delivered": 10**7, "sent": 10**7, "started": 500, "replies": 500}, id="busy"),
        pytest.param({"received": 10**7, "sent": 4_000, "started": 1}, id="a large message on its way"),
        pytest.param({"received": 10**7, "sent": 10**7, "started": 1}, id="and a large reply on its way"),
        pytest.param({"received": 200_000, "sent": 400_000, "started": 1200, "failed": 5}, id="refusals of ours"),
        pytest.param({"received": 10**6, "sent": 5_000, "started": 100, "failed": 100}, id="deadlines that end"),
        pytest.param({"received": 70_000, "sent": 12_000, "started": 10, "failed": 10}, id="few"),
        pytest.param(
            {"received": 10**7, "sent": 10**6, "started": 50, "failed": 20, "replies": 1}, id="replies are sent"
        ),
    ],
)
def test_nothing_else_is_taken_for_them(connection: Connection, half_second: dict[str, int]) -> None:
    for _ in range(5):
        assert connection.look() == {}
        connection.add(**half_second)


def test_grpc_is_not_asked_without_a_suspicion(connection: Connection) -> None:
    for _ in range(5):
        connection.look()
        connection.add(received=10**7, delivered=10**7, sent=10**6, started=500, replies=500)
    assert connection.asked == 0
