"""Spreads calls over the connections to one server, least loaded first.

A connection stays with one process of a server that has several (SO_REUSEPORT), and which one is the system's choice.
So further connections are made while calls overlap, until each process has one. Where a process is stopping or was
lost, its connections are retired: they get no further calls, and new ones lead to the others.
"""

import sys
import time
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from gradewire.transport import Metadata, Q, R, RpcMethod

if TYPE_CHECKING:
    import grpc.aio

MAX_CONNECTIONS: Final = 16
"""Most connections where the number is left to the client."""
_TRIES_PER_PROCESS: Final = 4
"""Connections for each process of the server: the system may give several to one of them."""
_AVOIDED_S: Final = 1.0
"""Seconds for which a connection is left alone after a call on it found nobody."""
_REFUSED_S: Final = 1.0
"""Longest time for which calls rather go to other processes than to one that refused a call."""
_BUSIER: Final = 2
_BUSIER_CALLS: Final = 2
"""Factor by which a process may be busier than the least busy one, plus calls, to get what it has seen before."""
LOOK_AGAIN_S: Final = 2.0
"""Seconds between looks for a process that none of the connections leads to, once there are as many as may be."""


@dataclass(slots=True, eq=False)
class ServerConnection:
    """One connection; its times are monotonic seconds.

    Attributes:
        process: INDEX/COUNT of the process at its other end; empty while that is not known, or is the only one.
        process_known: True if the server has said of this connection which process that is, or that it has one only.
        retired: True if it gets no further calls, and is closed once it has none in flight.
        refused_until_s: Time until which the process at its other end has too much to do.
        callables: Functions that begin calls of a method, by its path.
    """

    channel: "grpc.aio.Channel"
    calls: int = 0
    process: str = ""
    process_known: bool = False
    retired: bool = False
    avoided_until_s: float = 0.0
    refused_until_s: float = 0.0
    turn: int = 0
    callables: dict[str, Any] = field(default_factory=dict)

    def start(
        self,
        method: RpcMethod[Q, R],
        sent: Q | AsyncIterator[Q] | None,
        *,
        timeout_s: float | None,
        metadata: Metadata | None,
    ) -> Any:
        """Begin a call with one request, with a stream of them, or (None) with requests that are written to it."""
        begin = self.callables.get(method.path)
        if begin is None:
            kinds = [
                "stream" if is_stream else "unary" for is_stream in (method.client_streaming, method.server_streaming)
            ]
            begin = self.callables[method.path] = getattr(self.channel, "_".join(kinds))(
                method.path,
                request_serializer=method.request_type.SerializeToString,
                response_deserializer=method.reply_type.FromString,
            )
        return begin(sent, timeout=timeout_s, metadata=metadata)

    @property
    def may_move(self) -> bool:
        """True if what its server says has to be read: what is not known yet, and that its process is stopping."""
        return not self.process_known or bool(self.process)

    @property
    def is_over(self) -> bool:
        """True if it can be closed."""
        return self.retired and not self.calls


class ConnectionPool:
    """The connections of one client on one event loop, at most `most`; 0: as many as the server's processes need."""

    def __init__(self, most: int = 0) -> None:
        self._most = most
        self._turns = 0
        self._look_again_s = 0.0
        self.connections: list[ServerConnection] = []

    @property
    def wants_another(self) -> bool:
        """True if the next call is to have a new connection."""
        if not self.connections:
            return True
        if len(self.connections) >= self._limit or any(not each.calls for each in self.connections):
            return False
        return bool(self._most) or self._misses_a_process

    def refused(self, connection: ServerConnection, retry_after_s: float | None) -> bool:
        """Note that a connection's process had no room for a call; return True if another one may take it at once.

        `retry_after_s` is None where gRPC dropped the call before the process saw it.
        """
        now_s = time.monotonic()
        for each in self.connections:
            if each is connection or (each.process and each.process == connection.process):
                each.refused_until_s = now_s + min(_REFUSED_S, retry_after_s or _REFUSED_S)
        return bool(connection.process) and any(
            each.process and each.refused_until_s <= now_s and each.avoided_until_s <= now_s
            for each in self.connections
        )

    def least_loaded(self, content: int | None = None, *, tried: Collection[ServerConnection] = ()) -> ServerConnection:
        """Return the connection for the next call: of the process with the fewest calls of this client, in turn.

        Args:
            content: Number made of what the call is about. The process that it leads to is taken while that has hardly
                more calls than the others: it has seen the content before, and remembers.
            tried: Connections that are taken only where there are no others.
        """
        self._turns += 1
        chosen = self.connections[0] if len(self.connections) == 1 else self._least_loaded(content, tried)
        chosen.turn = self._turns
        return chosen

    def retire(self, connection: ServerConnection) -> None:
        """Give a connection no further calls: its process is stopping or lost, and a new one leads elsewhere."""
        if not connection.retired:
            connection.retired = True
            self.connections.remove(connection)

    def failed(self, connection: ServerConnection) -> None:
        """A call found nobody: the next ones go elsewhere, over a new connection where the server has processes."""
        if connection.process:
            self.retire(connection)
        else:
            connection.avoided_until_s, connection.process_known = time.monotonic() + _AVOIDED_S, False

    def surplus(self) -> ServerConnection | None:
        """One to be retired for a new one, which may lead to a process that none does now; None: there is no need.

        While a process was away, all connections were made to the others.
        """
        now_s = time.monotonic()
        if len(self.connections) < self._limit or now_s < self._look_again_s or not self._misses_a_process:
            return None
        self._look_again_s = now_s + LOOK_AGAIN_S
        processes = [each.process for each in self.connections]
        spare = [each for each in self.connections if processes.count(each.process) > 1]
        return min(spare, key=lambda each: each.calls, default=None)

    def _least_loaded(self, content: int | None, tried: Collection[ServerConnection]) -> ServerConnection:
        now_s = time.monotonic()
        here = [each for each in self.connections if each not in tried] or self.connections
        here = [each for each in here if each.avoided_until_s <= now_s] or here
        here = [each for each in here if each.refused_until_s <= now_s] or here
        by_process: dict[object, int] = {}
        for each in here:
            key = each.process or each
            by_process[key] = by_process.get(key, 0) + each.calls
        if content is not None and (processes := self._processes) > 1:
            home = f"{content % processes}/{processes}"
            if by_process.get(home, sys.maxsize) <= min(by_process.values()) * _BUSIER + _BUSIER_CALLS:
                here = [each for each in here if each.process == home]
        return min(here, key=lambda each: (by_process[each.process or each], each.calls, each.turn))

    @property
    def _misses_a_process(self) -> bool:
        return 1 < self._processes > len({each.process for each in self.connections if each.process})

    @property
    def _processes(self) -> int:
        counts = [int(each.process.partition("/")[2]) for each in self.connections if each.process]
        return max(counts, default=1)

    @property
    def _limit(self) -> int:
        return self._most or min(MAX_CONNECTIONS, _TRIES_PER_PROCESS * self._processes)


def process_of(value: object) -> str:
    """Return what a server says of its process; empty where it is no INDEX/COUNT."""
    text = str(value)
    index, slash, count = text.partition("/")
    return text if slash and index.isdecimal() and count.isdecimal() else ""
