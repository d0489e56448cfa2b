"""The operational HTTP server for /metrics, /healthz and /readyz.

The server has its own port and threads, which answer even if the event loop hangs. If too many connections are open,
the oldest connection without a request is closed.
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
REQUEST_S: Final = 5.0
"""The timeout in seconds for sending a request or reading a reply."""
_POLL_S: Final = 3600.0
_SILENT_S: Final = 30.0
"""An event loop counts as dead after this many seconds of silence."""
_PATHS: Final = ("/metrics", "/healthz", "/readyz")
_JSON: Final = "application/json"


class HttpSide(ThreadingTCPServer):
    """The operational HTTP server, which runs until `close`. Port 0 means any free port.

    If `authentication` is given, /metrics needs a token with the scope `admin`.

    Raises:
        OSError: The port is not available.
    """

    daemon_threads = True

    def __init__(  # noqa: PLR0913 - all arguments except the address are keyword-only
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
        self._asking: dict[socket.socket, None] = {}  # without a request so far, oldest first
        self._open = 0
        super().__init__((host, port), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = bound_socket(host, port, "http-port", backlog=MAX_CONNECTIONS)
        self.port: int = self.socket.getsockname()[1]
        if tls is not None:  # leave the handshake to the connection's thread
            self.socket = tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self._thread = threading.Thread(target=self.serve_forever, args=(_POLL_S,), name="gradewire-http", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop the server and release the port."""
        _cut(self.socket)  # wake the thread that accepts connections
        self.shutdown()
        self._thread.join()
        self.server_close()

    def keep_open(self, connection: socket.socket) -> None:
        """Never close this connection to make room for other connections, because its request has arrived."""
        with self._lock:
            self._asking.pop(connection, None)

    @override
    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._open += 1
            self._asking[request] = None
            if self._open > MAX_CONNECTIONS:
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
        if not isinstance(sys.exception(), OSError):  # OSError: the client has disconnected or is too slow
            _log.exception("an HTTP request failed because of a defect")


def _cut(connection: socket.socket) -> None:
    with suppress(OSError):  # already closed
        socket.socket.shutdown(connection, socket.SHUT_RDWR)


def server_tls(files: Tls) -> ssl.SSLContext:
    """Return a TLS context without client certificates, or raise OSError if a file cannot be used."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(files.cert, files.key)
    return context


def open_http(
    listen: ListenConfig, port: int, registry: Collector, lifecycle: Reporter, authentication: Authentication
) -> HttpSide:
    """Start the operational HTTP server with these settings. For the errors, see `HttpSide`."""
    http = HttpSide(
        listen.host,
        port,
        registry=registry,
        lifecycle=lifecycle,
        tls=server_tls(listen.tls) if listen.tls and listen.http_tls else None,
        authentication=authentication if "metrics" in listen.auth_also else None,
    )
    _log.info("HTTP on port %d", http.port)
    return http


class _HeadTooLargeError(Exception): ...


class _Head:
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
    protocol_version = "HTTP/1.1"
    timeout = REQUEST_S
    command = requestline = ""  # until the request is read
    default_request_version = request_version = "HTTP/1.0"

    @override
    def setup(self) -> None:
        super().setup()
        self.rfile = _Head(self.rfile)  # type: ignore[assignment] # the library only reads lines

    @override
    def handle(self) -> None:
        try:
            super().handle()
        except _HeadTooLargeError:
            self.send_error(
                HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
                f"request line and headers must not exceed {MAX_HEAD_BYTES} bytes",
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
            self.send_error(HTTPStatus.NOT_FOUND, f"unknown path; use one of {', '.join(_PATHS)}")

    do_HEAD = do_GET  # noqa: N815 - the library's name

    @override
    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        headers = {}
        if code == HTTPStatus.NOT_IMPLEMENTED:
            code, message = HTTPStatus.METHOD_NOT_ALLOWED, f"{self.path.partition('?')[0]} accepts GET and HEAD"
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
        if side.authentication is not None:
            caller = side.authentication.caller(self.headers.get("authorization", ""), "")
            if caller is None:
                text = "the header Authorization must be 'Bearer TOKEN' with one of this server's tokens"
                return self.send_error(HTTPStatus.UNAUTHORIZED, text)
            if Scope.ADMIN not in caller.scopes:
                text = f"/metrics needs a token with the scope {Scope.ADMIN}, because the metrics include all tenants"
                return self.send_error(HTTPStatus.FORBIDDEN, text)
        encode, content_type = choose_encoder(self.headers.get("accept", ""))
        return self._reply(HTTPStatus.OK, encode(side.registry), content_type)

    def _state(self, well: bool, body: object) -> None:  # noqa: FBT001 - private
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
