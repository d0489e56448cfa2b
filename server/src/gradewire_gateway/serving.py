"""Serve a gateway with uvicorn until a signal arrives, in a separate program or in a child process of the server."""

import asyncio
import gc
import json
import os
import selectors
import signal
import socket
import ssl
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from operator import attrgetter
from typing import Any, ClassVar, Final

import h11
import uvicorn
from typing_extensions import override
from uvicorn.protocols.http.h11_impl import H11Protocol

from gradewire_gateway.app import create_app
from gradewire_gateway.body import Budget, Share
from gradewire_gateway.observing import configure_log
from gradewire_gateway.problems import ProblemError
from gradewire_gateway.requests import record_of
from gradewire_gateway.settings import Bounds, GatewaySettings, ListenSettings

_READ_BYTES: Final = 8 << 10


class BoundedConnection(H11Protocol, asyncio.BufferedProtocol):
    """An HTTP/1.1 connection of uvicorn with limits that uvicorn lacks.

    Each turn of the event loop reads few bytes, because h11 needs as much time for a body chunk of one byte as for a
    large chunk.

    Attributes:
        bounds: The time limits for a head and for a write.
        places: The budget for open connections, which hosts share.
        idle: Each host's connections without a request, longest idle first.
    """

    bounds: ClassVar[Bounds]
    places: ClassVar[Budget]
    idle: ClassVar[dict[str, dict["BoundedConnection", None]]]
    _host: str
    _place: Share
    _has_token: bool = False
    _head_timer: asyncio.TimerHandle | None = None
    _write_timer: asyncio.TimerHandle | None = None

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # uvicorn's signature
        super().connection_made(transport)
        self._received = memoryview(bytearray(_READ_BYTES))  # TLS writes into slices of the buffer
        self._host = self.client[0] if self.client else ""
        self._place = Share(self.places, self._host)
        try:
            self._take_place()
        except ProblemError:
            transport.abort()
            return
        # Pause writing while even a single byte waits, so that the time limit for writes applies to all bytes.
        transport.set_write_buffer_limits(high=1, low=0)
        self._set_idle()
        self._watch_head()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._head_timer, self._write_timer):
            if timer is not None:
                timer.cancel()
        self.leave()
        super().connection_lost(exc)

    @override
    def get_buffer(self, sizehint: int) -> memoryview:
        return self._received

    @override
    def buffer_updated(self, nbytes: int) -> None:
        self.data_received(bytes(self._received[:nbytes]))

    @override
    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch_head()

    @override
    def on_response_complete(self) -> None:
        super().on_response_complete()
        scope: Any = self.cycle.scope
        self._has_token = isinstance(record_of(scope).caller, str)
        self._set_idle()
        # uvicorn's keep-alive timeout runs from now on, unless the caller still sends a body or has sent the next head.
        if self.conn.our_state is h11.DONE or self.conn.trailing_data[0]:
            self._watch_head()

    @override
    def pause_writing(self) -> None:
        super().pause_writing()
        self._write_timer = self.loop.call_later(self.bounds.write_s, self.transport.abort)

    @override
    def resume_writing(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
        super().resume_writing()

    def _take_place(self) -> None:
        """Count the connection toward the host's share. If the share is used up, close the longest idle connection.

        Connections whose last request had no accepted token are closed first, so that callers without a token cannot
        disconnect callers with a token on the same host.
        """
        try:
            self._place.hold(1)
        except ProblemError:
            oldest = min(self.idle.get(self._host, ()), key=attrgetter("_has_token"), default=None)
            if oldest is None:
                raise
            oldest.leave()
            oldest.transport.abort()
            self._place.hold(1)

    def leave(self) -> None:
        """Stop counting the connection, which will be closed."""
        self._place.hold(0)
        self._set_busy()

    def _set_idle(self) -> None:
        if self._is_between_requests():
            self.idle.setdefault(self._host, {})[self] = None

    def _set_busy(self) -> None:
        of_host = self.idle.get(self._host, {})
        of_host.pop(self, None)
        if not of_host:
            self.idle.pop(self._host, None)

    def _is_between_requests(self) -> bool:
        return self.conn.our_state in {h11.IDLE, h11.DONE}

    def _watch_head(self) -> None:
        """Limit the time between requests. In this time, the rest of the last body and the next head must arrive."""
        if self._is_between_requests():
            self._head_timer = self._head_timer or self.loop.call_later(self.bounds.head_s, self.transport.abort)
            return
        self._set_busy()
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


_MAX_HEAD_BYTES: Final = 16 << 10
_KEEP_ALIVE_S: Final = 75
_STOPPING_S: Final = 10
"""Maximum number of seconds to finish the requests in flight after a signal to stop."""
_SWITCH_S: Final = 0.0005
_EVENTS_AT_ONCE: Final = 32
_BACKLOG: Final = 512
_ACCEPTED_AT_ONCE: Final = 4
"""Maximum number of connections to accept in one turn of the event loop. Accepting them takes a few milliseconds."""


class _Server(uvicorn.Server):
    """A server that queues more new connections than it accepts at once. asyncio has one setting for both numbers."""

    @override
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for each in sockets or ():
            each.listen(_BACKLOG)


class ListenError(OSError):
    """Raised when the gateway cannot listen on an address."""


def bind(listen: ListenSettings) -> socket.socket:
    """Return a listening socket; raise ListenError if the address cannot be used."""
    try:
        found = socket.getaddrinfo(listen.host, listen.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, place = found[0]
        both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
        return socket.create_server(place, family=family, backlog=_BACKLOG, dualstack_ipv6=both)
    except OSError as error:
        raise ListenError(
            f"cannot listen on {listen.host}:{listen.port}: {error.strerror or error}; choose another address with "
            "--host and --port"
        ) from error


class _FewAtOnce(selectors.DefaultSelector):
    """A selector that reports only a few events in each turn of the loop, in rotation. Each event takes 0.3 ms."""

    _begin = 0

    @override
    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        events = super().select(timeout)
        if len(events) <= _EVENTS_AT_ONCE:
            return events
        self._begin = (self._begin + _EVENTS_AT_ONCE) % len(events)
        return (events + events)[self._begin : self._begin + _EVENTS_AT_ONCE]


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return an event loop for a gateway."""
    return asyncio.SelectorEventLoop(_FewAtOnce())


def run(
    settings: GatewaySettings, listening: socket.socket, *, until: Callable[[], Awaitable[None]] | None = None
) -> None:
    """Run `serve` on a new event loop."""
    # uvicorn handles the signals that stop it, and raises them again when it ends. Ignore the repeated signals.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: None)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(serve(settings, listening, until=until))


async def serve(
    settings: GatewaySettings, listening: socket.socket, *, until: Callable[[], Awaitable[None]] | None = None
) -> None:
    """Serve on a socket that `bind` returned. When `until` returns, or on SIGTERM or SIGINT, stop and close the socket.

    Raises:
        OSError: A PEM file cannot be read.
    """
    gc.freeze()  # a collection of all imported objects takes 20 ms
    # A thread parses large bodies. With Python's default interval, the event loop would wait 5 ms for every turn.
    sys.setswitchinterval(_SWITCH_S)
    # Connections inherit TCP_NODELAY. asyncio sets it only for sockets with an explicit protocol number. Without
    # the option, each reply on a kept connection would wait 40 ms until the caller's machine acknowledges the head.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    server = _Server(_config(settings))
    if until is None:
        await server.serve(sockets=[listening])
        return
    running = asyncio.ensure_future(until())
    running.add_done_callback(lambda _done: setattr(server, "should_exit", True))
    try:
        await server.serve(sockets=[listening])
    finally:
        running.cancel()


def _config(settings: GatewaySettings) -> uvicorn.Config:
    listen = settings.listen
    given: dict[str, Any] = {}
    if listen.cert:
        given = {"ssl_certfile": listen.cert, "ssl_keyfile": listen.key}
    if listen.client_ca:
        given |= {"ssl_ca_certs": listen.client_ca, "ssl_cert_reqs": ssl.CERT_REQUIRED}

    class Connection(BoundedConnection):
        bounds = settings.bounds
        idle: ClassVar[dict[str, dict[BoundedConnection, None]]] = {}
        places = Budget(settings.bounds.max_connections, "too many connections are open")

    return uvicorn.Config(
        create_app(settings),
        http=Connection,
        ws="none",
        loop="asyncio",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # ignore proxies' headers: the caller is the host that connects
        h11_max_incomplete_event_size=_MAX_HEAD_BYTES,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=_STOPPING_S,
        backlog=_ACCEPTED_AT_ONCE,
        **given,
    )


_BEAT_EVERY_S: Final = 1.0


async def _beat() -> None:
    """Write an empty line to standard output every second, until standard input ends because the server died."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    closed = asyncio.ensure_future(reader.read(1))
    while not closed.done():
        with suppress(OSError):  # the server has died, so `closed` will be done soon
            os.write(1, b"\n")
        await asyncio.wait((closed,), timeout=_BEAT_EVERY_S)


def main() -> None:
    """Serve in a child process of the server, until a signal arrives or the server ends.

    The server runs `python -m gradewire_gateway.serving FD`, where FD is the listening socket's descriptor. Standard
    input begins with a line that contains the settings in JSON.
    """
    settings = GatewaySettings.from_message(json.loads(_first_line()))
    configure_log(settings.log_level)
    listening = socket.socket(fileno=int(sys.argv[1]))
    run(settings, listening, until=_beat)


def _first_line() -> bytes:
    """Read one line of standard input byte by byte, because the event loop reads the rest."""
    line = bytearray()
    while not line.endswith(b"\n") and (byte := os.read(0, 1)):
        line += byte
    return bytes(line)


if __name__ == "__main__":
    main()
