"""Bounds how often one peer may open calls and reset them ("rapid reset").

gRPC takes in every call before our code sees it, and a call that was reset costs nearly as much as one that is
answered: one connection that opens and resets calls keeps everybody else out. `MAX_STREAMS` bounds what one connection
has open, reset calls that nobody has looked at included. A peer that goes on is found by gRPC's own figures of each
connection (channelz), and its connections are closed.

The figures of all connections take time (0.2 ms each), so they are read only while many calls end without having been
answered, which costs a count to know.
"""

import contextlib
import json
import logging
import os
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import grpc
from grpc._cython import cygrpc  # type: ignore[attr-defined] # no types; grpcio-channelz does it too
from prometheus_client import Counter
from typing_extensions import override

_log = logging.getLogger(__name__)

MAX_STREAMS: Final = 128
"""Calls that one connection may have open; a client that has more waits, and nothing fails."""
OPTIONS: Final = (("grpc.max_concurrent_streams", MAX_STREAMS), ("grpc.enable_channelz", 1))
"""What the guard needs of the server."""
_LOOK_EVERY_S: Final = 0.25
_LOG_EVERY_S: Final = 10.0

Resets: TypeAlias = Mapping[tuple[str, int], int]
"""Calls that were reset since the connection began, by host and port of the peer."""


class Arrivals:
    """Counts calls, to see how many end without an answer. Every method adds one to a number."""

    def __init__(self) -> None:
        self._arrived = self._taken = self._cancelled = 0

    def arrived(self) -> None:
        """Headers of a call have come."""
        self._arrived += 1

    def taken(self) -> None:
        """A call has its message, and a handler works on it."""
        self._taken += 1

    def cancelled(self) -> None:
        """A call that was taken has ended before its answer."""
        self._cancelled += 1

    @property
    def abandoned(self) -> int:
        """Calls so far that were given up by their callers, and a few that have just arrived."""
        return self._arrived - self._taken + self._cancelled


class CountedHandlers(grpc.GenericRpcHandler):
    """Handlers whose calls are counted as they arrive."""

    def __init__(self, handlers: Iterable[grpc.GenericRpcHandler], arrivals: Arrivals) -> None:
        self._handlers = tuple(handlers)
        self._arrivals = arrivals

    @override
    def service(self, handler_call_details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[Any, Any] | None":
        self._arrivals.arrived()
        for each in self._handlers:
            found = each.service(handler_call_details)
            if found is not None:
                return found
        return None


def counted(handler: "grpc.RpcMethodHandler[Any, Any]", arrivals: Arrivals) -> "grpc.RpcMethodHandler[Any, Any]":
    """A handler of many requests and one reply whose calls are counted as they arrive."""
    inner: Any = handler.stream_unary

    async def handle(requests: object, context: object) -> object:
        arrivals.arrived()
        return await inner(requests, context)

    return grpc.stream_unary_rpc_method_handler(handle)


@dataclass(frozen=True, slots=True)
class ResetTelemetry:
    """What the guard counts: calls that were reset while it looked, and connections that it closed for it."""

    calls: Counter
    connections: Counter


class ResetGuard:
    """Closes connections of a host that resets more than `max_per_s` calls a second; a thread of its own.

    Args:
        arrivals: Says when to look.
        telemetry: Where it counts.
        connections: Of the server.
        max_per_s: Of all connections of one host together.
    """

    def __init__(
        self, arrivals: Arrivals, telemetry: ResetTelemetry, connections: "ServerConnections", *, max_per_s: int
    ) -> None:
        self._arrivals = arrivals
        self._telemetry = telemetry
        self._connections = connections
        self._max_per_s = max_per_s
        self._known: Resets = {}
        self._looked_s = time.monotonic()
        self._abandoned = arrivals.abandoned
        self._unlogged: dict[str, int] = {}
        self._quiet_before_s: dict[str, float] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="gradewire-resets", daemon=True)

    def start(self) -> None:
        """Watches from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread."""
        self._ended.set()
        self._thread.join()

    def look(self) -> None:
        """Looks once at what has happened since the last time."""
        now_s, abandoned = time.monotonic(), self._arrivals.abandoned
        allowed = self._max_per_s * (now_s - self._looked_s)
        many = abandoned - self._abandoned > allowed
        self._looked_s, self._abandoned = now_s, abandoned
        if not many:
            self._known = {}
            return
        before, self._known = self._known, self._connections.resets()
        # A connection that was not there at the last look has reset all its calls since; at the first look nobody
        # knows when, and the next one tells.
        resets: defaultdict[str, dict[tuple[str, int], int]] = defaultdict(dict)
        for peer, count in self._known.items():
            since = count - before.get(peer, 0 if before else count)
            if since > 0:
                resets[peer[0]][peer] = since
        for host, of_host in resets.items():
            total = sum(of_host.values())
            self._telemetry.calls.inc(total)
            if total > allowed:
                # Others may share the host, behind a proxy: only who has at least half an even share of it is closed.
                share = total / len(of_host) / 2
                closed = self._connections.close({peer for peer, count in of_host.items() if count >= share})
                self._telemetry.connections.inc(closed)
                self._say(host, total, closed, now_s)

    def _say(self, host: str, resets: int, closed: int, now_s: float) -> None:
        self._unlogged[host] = self._unlogged.get(host, 0) + closed
        if now_s < self._quiet_before_s.get(host, 0.0):
            return
        _log.warning(
            "%s opened calls and reset them (%d within %.1f s): %d of its connections were closed",
            host,
            resets,
            _LOOK_EVERY_S,
            self._unlogged.pop(host),
        )
        self._quiet_before_s = {each: until for each, until in self._quiet_before_s.items() if until > now_s}
        self._quiet_before_s[host] = now_s + _LOG_EVERY_S

    def _watch(self) -> None:
        while not self._ended.wait(_LOOK_EVERY_S):
            try:
                self.look()
            except Exception:  # noqa: BLE001 - whatever it is: scoring goes on without this thread
                _log.exception("resets are not watched any more")
                return


class ServerConnections:
    """The connections of the gRPC server on `port` of this process."""

    def __init__(self, port: int) -> None:
        self._port = port

    def resets(self) -> Resets:
        """Resets by peer, as channelz has them."""
        found: dict[tuple[str, int], int] = {}
        for server in json.loads(cygrpc.channelz_get_servers(0)).get("server", ()):
            for name, data in _sockets(int(server["ref"]["serverId"])):
                local = data.get("local", {}).get("tcpipAddress", {}).get("port")
                peer = _peer(name)
                if peer is not None and local == self._port:
                    found[peer] = int(data.get("data", {}).get("streamsFailed", 0))
        return found

    def close(self, peers: set[tuple[str, int]]) -> int:
        """Closes those with `peers`; returns how many there were.

        gRPC has no call for it; a socket that is shut down looks to it as if the peer had gone. This needs /proc
        (Linux); without it nothing is closed.
        """
        closed = 0
        with contextlib.suppress(FileNotFoundError):
            for link in list(Path("/proc/self/fd").iterdir()):
                with contextlib.suppress(OSError, ValueError):  # closed meanwhile, or no connection of the internet
                    if not str(link.readlink()).startswith("socket:"):
                        continue
                    with socket.socket(fileno=os.dup(int(link.name))) as ours:
                        host, number = ours.getpeername()[:2]
                        if ours.getsockname()[1] == self._port and (_plain(host), number) in peers:
                            ours.shutdown(socket.SHUT_RDWR)
                            closed += 1
        return closed


def _sockets(server: int) -> Iterator[tuple[str, dict[str, Any]]]:
    start = 0
    while True:
        page = json.loads(cygrpc.channelz_get_server_sockets(server, start, 0))
        for reference in page.get("socketRef", ()):
            number = int(reference["socketId"])
            start = number + 1
            with contextlib.suppress(ValueError):  # closed meanwhile
                yield reference.get("name", ""), json.loads(cygrpc.channelz_get_socket(number))["socket"]
        if page.get("end", True):
            return


def _peer(name: str) -> tuple[str, int] | None:
    """Host and port of "chttp2 ipv4:127.0.0.1:36958" or "chttp2 ipv6:%5B::1%5D:36958"."""
    address = name.rpartition(" ")[2]
    kind, _, rest = address.partition(":")
    host, _, port = rest.rpartition(":")
    if kind not in {"ipv4", "ipv6"} or not port.isdigit():
        return None
    return _plain(host.replace("%5B", "").replace("%5D", "")), int(port)


def _plain(host: str) -> str:
    """An address of IPv4 as such, also where a socket of IPv6 has taken it."""
    return host.strip("[]").removeprefix("::ffff:")
