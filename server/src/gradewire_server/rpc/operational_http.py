"""HTTP beside gRPC, on a port and threads of its own: /metrics, /healthz (alive, and what is degraded), /readyz.

The threads answer while the server's event loop does not. Each connection asks once. There are at most
`MAX_CONNECTIONS`: when one more comes, the oldest that has not asked yet makes room for it.
"""

import json
import logging
import socket
import ssl
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from typing import Any, Final, cast

from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from typing_extensions import override

from gradewire_server.domain.caller import Scope
from gradewire_server.process import Reporter
from gradewire_server.rpc.sockets import bound_socket
from gradewire_server.settings.transport import ListenConfig, Tls
from gradewire_server.tenants.tokens import Authentication

_log = logging.getLogger(__name__)

MAX_CONNECTIONS: Final = 32
MAX_HEAD_BYTES: Final = 16 << 10
"""Request line and headers together."""
REQUEST_S: Final = 5.0
"""Seconds until a connection sends something while it has not asked, and until it has taken the reply."""
_POLL_S: Final = 3600.0
"""Seconds between looks for a request to end, which wakes the server itself."""
_SILENT_S: Final = 30.0
"""Seconds after which an event loop that has not answered counts as dead."""
_PATHS: Final = ("/metrics", "/healthz", "/readyz")
_JSON: Final = "application/json"


class HttpSide(ThreadingTCPServer):
    """A small HTTP server; starts when made, `close` ends it. Port 0 takes a free one.

    With `authentication` only some tokens may read /metrics.

    Raises:
        OSError: The port cannot be had.
    """

    daemon_threads = True

    def __init__(  # noqa: PLR0913 - address, what is shown, to whom; all but the address by name
        self,
        host: str,
        port: int,
        *,
        registry: Collector,
        lifecycle: Reporter,
        tls: ssl.SSLContext | None = None,
        authentication: Authentication | None = None,
    ) -> None:
        self.registry = registry
        self.lifecycle = lifecycle
        self.authentication = authentication
        self._lock = threading.Lock()
        self._asking: dict[socket.socket, None] = {}  # the oldest first
        self._open = 0
        super().__init__((host, port), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = bound_socket(host, port, "http-port", backlog=MAX_CONNECTIONS)
        self.port: int = self.socket.getsockname()[1]
        if tls is not None:  # the handshake is made by the connection's thread, with its first read
            self.socket = tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self._thread = threading.Thread(target=self.serve_forever, args=(_POLL_S,), name="gradewire-http", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End it and give the port back."""
        _cut(self.socket)  # it wakes
        self.shutdown()
        self._thread.join()
        self.server_close()

    def keep_open(self, connection: socket.socket) -> None:
        """Note that a connection makes room for no other one any more."""
        with self._lock:
            self._asking.pop(connection, None)

    @override
    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._open += 1
            self._asking[request] = None
            if self._open > MAX_CONNECTIONS:  # also where all the others have asked: then it is the new one itself
                oldest = next(iter(self._asking))
                del self._asking[oldest]
                _cut(oldest)
        super().process_request(request, client_address)

    @override
    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open -= 1
            self._asking.pop(request, None)
        super().shutdown_request(request)

    @override
    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), OSError):  # else the other side went away or was too slow
            _log.exception("an HTTP request failed by a defect")


def _cut(connection: socket.socket) -> None:
    """Wake the thread that waits for a socket; it finds the connection's end."""
    with suppress(OSError):  # it has ended
        socket.socket.shutdown(connection, socket.SHUT_RDWR)


def server_tls(files: Tls) -> ssl.SSLContext:
    """Return what `HttpSide` needs for TLS; clients show no certificate. Raise OSError where a file cannot be used."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(files.cert, files.key)
    return context


def open_http(
    listen: ListenConfig, port: int, registry: Collector, lifecycle: Reporter, authentication: Authentication
) -> HttpSide:
    """Return the HTTP side of a server with these settings; arguments and errors as `HttpSide`."""
    http = HttpSide(
        listen.host,
        port,
        registry=registry,
        lifecycle=lifecycle,
        tls=server_tls(listen.tls) if listen.tls and listen.http_tls else None,
        authentication=authentication if listen.auth_http else None,
    )
    _log.info("HTTP on port %d", http.port)
    return http


class _HeadTooLargeError(Exception):
    """Request line and headers exceed `MAX_HEAD_BYTES`."""


class _Head:
    """Request line and headers as they are read, bounded in size."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._left = MAX_HEAD_BYTES
        self.close = file.close

    def readline(self, size: int) -> bytes:
        line: bytes = self._file.readline(min(size, self._left + 1))
        self._left -= len(line)
        if self._left < 0:
            raise _HeadTooLargeError
        return line


class _Handler(BaseHTTPRequestHandler):
    """One connection, which asks once."""

    protocol_version = "HTTP/1.1"
    timeout = REQUEST_S
    command = requestline = ""  # until they are read
    default_request_version = request_version = "HTTP/1.0"

    @override
    def setup(self) -> None:
        super().setup()
        self.rfile = _Head(self.rfile)  # type: ignore[assignment] # only lines are read of it

    @override
    def handle(self) -> None:
        try:
            super().handle()
        except _HeadTooLargeError:
            self.send_error(
                HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"request line and headers exceed {MAX_HEAD_BYTES} bytes"
            )

    def do_GET(self) -> None:
        """Answer GET and HEAD."""
        side = cast("HttpSide", self.server)
        side.keep_open(self.connection)
        path = self.path.partition("?")[0]
        if path == "/metrics":
            self._metrics(side)
        elif path == "/healthz":
            report = side.lifecycle.report()
            self._state(report["event_loop_silent_s"] < _SILENT_S, report)
        elif path == "/readyz":
            ready = side.lifecycle.ready
            self._state(ready, {"ready": ready, "phase": side.lifecycle.report()["phase"]})
        else:
            self.send_error(HTTPStatus.NOT_FOUND, f"there are {', '.join(_PATHS)}")

    do_HEAD = do_GET  # noqa: N815 - the library's name

    @override
    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        headers = {}
        if code == HTTPStatus.NOT_IMPLEMENTED:
            code, message = HTTPStatus.METHOD_NOT_ALLOWED, f"{self.path.partition('?')[0]} takes GET and HEAD"
            headers = {"Allow": "GET, HEAD"}
        elif code in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
            headers = {"WWW-Authenticate": "Bearer"}
        self._reply(code, _json({"error": message or HTTPStatus(code).phrase}), headers=headers)

    @override
    def version_string(self) -> str:
        return "gradewire"

    @override
    def log_message(self, format: str, *args: Any) -> None:
        _log.debug(format, *args)

    def _metrics(self, side: HttpSide) -> None:
        """Answer with the metrics of all tenants together, for whoever may see them."""
        if side.authentication is not None:
            caller = side.authentication.caller(self.headers.get("authorization", ""), "")
            if caller is None:
                text = "the header Authorization: Bearer TOKEN with a token of this server is needed"
                return self.send_error(HTTPStatus.UNAUTHORIZED, text)
            if Scope.ADMIN not in caller.scopes:
                text = f"metrics need a token with the scope {Scope.ADMIN}: they tell of all tenants"
                return self.send_error(HTTPStatus.FORBIDDEN, text)
        encode, content_type = choose_encoder(self.headers.get("accept", ""))
        return self._reply(HTTPStatus.OK, encode(side.registry), content_type)

    def _state(self, well: bool, body: object) -> None:  # noqa: FBT001 - of this module alone
        self._reply(HTTPStatus.OK if well else HTTPStatus.SERVICE_UNAVAILABLE, _json(body))

    def _reply(
        self, code: int, body: bytes, content_type: str = _JSON, headers: Mapping[str, str] | None = None
    ) -> None:
        self.send_response(code)
        self.send_header("Connection", "close")
        for name, value in {"Content-Type": content_type, "Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _json(body: object) -> bytes:
    return json.dumps(body).encode() + b"\n"
