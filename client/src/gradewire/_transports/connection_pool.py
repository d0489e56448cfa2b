"""Spread calls over the connections to one server, so that the least loaded process gets the next call.

If a server has several processes (SO_REUSEPORT), the kernel chooses a process for each connection. While calls overlap,
the pool therefore opens connections until it reaches every process.
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
_TRIES_PER_PROCESS: Final = 4
"""Default maximum number of connections per server process. Several connections may lead to the same process."""
_AVOIDED_S: Final = 1.0
"""Seconds to avoid a connection after a call failed to reach the server."""
_REFUSED_S: Final = 1.0
"""Maximum number of seconds to avoid a process after it refused a call."""
_BUSIER: Final = 2
_BUSIER_CALLS: Final = 2
"""Limits on the load of a preferred process. The process that may have cached a call's content gets the call, unless
too many calls are in flight there: more than `_BUSIER` times the least loaded process's calls, plus `_BUSIER_CALLS`.
"""
LOOK_AGAIN_S: Final = 2.0
"""Seconds between attempts to reach a missing process while the pool is full."""


@dataclass(slots=True, eq=False)
class ServerConnection:
    """A connection to a server process. All times are monotonic seconds.

    Attributes:
        calls: Number of calls in flight.
        process: INDEX/COUNT of the server process; "" for an unknown process or the only process.
        process_known: True if the server has reported `process`, or reported that it has only one process.
        retired: True if the connection gets no more calls and is closed after its last call.
        avoided_until_s: Time until which the connection is avoided because a call failed.
        refused_until_s: Time until which the process counts as overloaded.
        turn: The pool's call count when this connection last got a call.
        callables: Functions that start calls, by method path and request type.
    """

    channel: "grpc.aio.Channel"
    calls: int = 0
    process: str = ""
    process_known: bool = False
    retired: bool = False
    avoided_until_s: float = 0.0
    refused_until_s: float = 0.0
    turn: int = 0
    callables: dict[tuple[str, type], Any] = field(default_factory=dict)

    def start(
        self,
        method: RpcMethod[Q, R],
        sent: Q | AsyncIterator[Q] | None,
        *,
        timeout_s: float | None,
        metadata: Metadata | None,
    ) -> Any:
        """Start a call. `sent` is a request or an iterator of requests; None means that requests are written later."""
        key = method.path, method.request_type
        begin = self.callables.get(key)
        if begin is None:
            kinds = [
                "stream" if is_stream else "unary" for is_stream in (method.client_streaming, method.server_streaming)
            ]
            begin = self.callables[key] = getattr(self.channel, "_".join(kinds))(
                method.path,
                request_serializer=getattr(method.request_type, "SerializeToString", None),
                response_deserializer=getattr(method.reply_type, "FromString", None),
            )
        return begin(sent, timeout=timeout_s, metadata=metadata)

    @property
    def may_move(self) -> bool:
        """True if the server's metadata must be read, because the process is still unknown or may be stopping."""
        return not self.process_known or bool(self.process)

    @property
    def is_over(self) -> bool:
        return self.retired and not self.calls


class ConnectionPool:
    """A client's connections on one event loop, at most `most` at a time.

    If `most` is 0, the number of server processes determines the limit.
    """

    def __init__(self, most: int = 0) -> None:
        self._most = most
        self._turns = 0
        self._look_again_s = 0.0
        self.connections: list[ServerConnection] = []

    @property
    def wants_another(self) -> bool:
        if not self.connections:
            return True
        if len(self.connections) >= self._limit or any(not each.calls for each in self.connections):
            return False
        return bool(self._most) or self._misses_a_process

    def refused(self, connection: ServerConnection, retry_after_s: float | None) -> bool:
        """Record that a process refused a call; return True if a different process may accept the call now.

        `retry_after_s` is None if gRPC dropped the call before the process saw it.
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
        """Return the connection for the next call, to the process with the fewest calls from this client.

        Args:
            content: A hash of the call's content. Equal content goes to the same process, which may have cached the
                content, unless that process is much busier than the least loaded process.
            tried: Connections to avoid if possible.
        """
        self._turns += 1
        chosen = self.connections[0] if len(self.connections) == 1 else self._least_loaded(content, tried)
        chosen.turn = self._turns
        return chosen

    def retire(self, connection: ServerConnection) -> None:
        if not connection.retired:
            connection.retired = True
            self.connections.remove(connection)

    def failed(self, connection: ServerConnection) -> None:
        """Avoid a connection after a failed call. If the server has several processes, retire the connection."""
        if connection.process:
            self.retire(connection)
        else:
            connection.avoided_until_s, connection.process_known = time.monotonic() + _AVOIDED_S, False

    def surplus(self) -> ServerConnection | None:
        """Return a connection that should be replaced, or None if there is no such connection.

        A new connection may reach a process that was down when the current connections opened.
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
    """Return INDEX/COUNT from the server's metadata, or "" if the value has a different format."""
    text = str(value)
    index, slash, count = text.partition("/")
    return text if slash and index.isdecimal() and count.isdecimal() else ""
