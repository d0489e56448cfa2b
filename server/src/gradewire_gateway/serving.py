"""Serve a gateway with uvicorn until a signal stops it, alone or as a child of the server."""

import asyncio
import json
import os
import signal
import socket
import ssl
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, ClassVar, Final

import uvicorn
from typing_extensions import override
from uvicorn.protocols.http.h11_impl import H11Protocol

from gradewire_gateway.app import create_app
from gradewire_gateway.observing import configure_log
from gradewire_gateway.settings import GatewaySettings, ListenSettings


class BoundedConnection(H11Protocol):
    """A connection of uvicorn's HTTP/1.1 with bounds that it does not have by itself.

    Attributes:
        head_s: Seconds in which a new connection must have sent its first head.
        max_connections: That are open at a time; one more is closed.
    """

    head_s: ClassVar[float]
    max_connections: ClassVar[int]
    _waiting: asyncio.TimerHandle | None = None

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as the base class has it
        super().connection_made(transport)
        if len(self.connections) > self.max_connections:
            transport.abort()
            return
        self._waiting = asyncio.get_running_loop().call_later(self.head_s, self._end_silent)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
        super().connection_lost(exc)

    def _end_silent(self) -> None:
        # The base class declares it without None, which it is before the first request.
        cycle: object | None = self.cycle
        if cycle is None:
            self.transport.abort()


_MAX_HEAD_BYTES: Final = 16 << 10
_KEEP_ALIVE_S: Final = 75
_STOPPING_S: Final = 10
"""Seconds that requests in flight get once it is told to stop."""
_BACKLOG: Final = 512


class ListenError(OSError):
    """The address cannot be listened on."""


def bind(listen: ListenSettings) -> socket.socket:
    """Return a socket that listens; raise ListenError if it cannot."""
    try:
        found = socket.getaddrinfo(listen.host, listen.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, place = found[0]
        both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
        return socket.create_server(place, family=family, backlog=_BACKLOG, dualstack_ipv6=both)
    except OSError as error:
        raise ListenError(
            f"cannot listen on {listen.host}:{listen.port}: {error.strerror or error}; choose another with --host and "
            "--port"
        ) from error


def run(
    settings: GatewaySettings, listening: socket.socket, *, until: Callable[[], Awaitable[None]] | None = None
) -> None:
    """Serve on an event loop of its own until SIGTERM or SIGINT; arguments and errors as of `serve`."""
    # uvicorn raises the signals that it was stopped by once more when it is done: they have had their effect.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: None)
    asyncio.run(serve(settings, listening, until=until))


async def serve(
    settings: GatewaySettings, listening: socket.socket, *, until: Callable[[], Awaitable[None]] | None = None
) -> None:
    """Serve on a socket of `bind`, which is closed at the end, until `until` returns, or until SIGTERM or SIGINT.

    Raises:
        OSError: A PEM file cannot be read.
    """
    server = uvicorn.Server(_config(settings))
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
    bounds = settings.bounds

    class Connection(BoundedConnection):
        head_s = bounds.head_s
        max_connections = bounds.max_connections

    return uvicorn.Config(
        create_app(settings),
        http=Connection,
        ws="none",
        loop="asyncio",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # whom a proxy names is not believed: the host that asks is the one that connects
        h11_max_incomplete_event_size=_MAX_HEAD_BYTES,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=_STOPPING_S,
        backlog=_BACKLOG,
        **given,
    )


_BEAT_EVERY_S: Final = 1.0


async def _beat() -> None:
    """Write a line a second to standard output until standard input ends, as it does when the server dies."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    closed = asyncio.ensure_future(reader.read(1))
    while not closed.done():
        with suppress(OSError):  # the server is gone, so `closed` is done in a moment
            os.write(1, b"\n")
        await asyncio.wait((closed,), timeout=_BEAT_EVERY_S)


def main() -> None:
    """Serve as a child of the server, `python -m gradewire_gateway.serving FD`, until a signal or the server's end.

    FD is the listening socket. The first line of standard input has the settings in JSON.
    """
    message = json.loads(_first_line())
    configure_log(message["log_level"])
    listening = socket.socket(fileno=int(sys.argv[1]))
    run(GatewaySettings.from_message(message["settings"]), listening, until=_beat)


def _first_line() -> bytes:
    """Read a line of standard input byte by byte: the event loop reads the rest."""
    line = bytearray()
    while not line.endswith(b"\n") and (byte := os.read(0, 1)):
        line += byte
    return bytes(line)


if __name__ == "__main__":
    main()
