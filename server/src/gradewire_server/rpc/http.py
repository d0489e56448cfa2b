"""HTTP beside gRPC, on a port and a thread of its own: /metrics, /healthz (alive, and what is degraded), /readyz.

One event loop in one thread serves all connections, so a slow one costs no thread; and a thread of its own, so that
/healthz answers while the server's event loop does not. Each connection asks once and has a few seconds for it. There
are at most `MAX_CONNECTIONS`: when one more comes, the oldest that has not asked yet makes room for it.
"""

import asyncio
import json
import logging
import ssl
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from http import HTTPStatus
from typing import Any, Final, NamedTuple, Protocol

from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from gradewire_server.concurrency import Phase
from gradewire_server.domain.caller import Scope
from gradewire_server.rpc.sockets import bind_error
from gradewire_server.settings.transport import Tls
from gradewire_server.tenants.tokens import Authentication

_log = logging.getLogger(__name__)

MAX_CONNECTIONS: Final = 64
MAX_HEAD_BYTES: Final = 16 << 10
"""Request line and headers together."""
REQUEST_S: Final = 5.0
"""Seconds from a connection's beginning until it has asked, and again until it has taken the reply."""
_SILENT_S: Final = 30.0
"""Seconds after which an event loop that has not answered counts as dead."""
_PATHS: Final = ("/metrics", "/healthz", "/readyz")


class Health(Protocol):
    """What is served, as /healthz and /readyz show it; asked from the thread of HTTP."""

    def report(self) -> dict[str, Any]:
        """For /healthz, with `event_loop_silent_s`."""

    @property
    def ready(self) -> bool:
        """Whether new callers are welcome."""

    @property
    def phase(self) -> Phase:
        """The phase now."""


class Request(NamedTuple):
    """What was asked; names of headers are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]


class Reply(NamedTuple):
    """What is answered."""

    status: HTTPStatus
    body: bytes
    content_type: str = "application/json"
    headers: tuple[str, ...] = ()


class _ProblemError(Exception):
    """The request is answered with a problem."""

    def __init__(self, status: HTTPStatus, text: str, *headers: str) -> None:
        super().__init__(text)
        self.reply = Reply(status, _json({"error": text}), headers=headers)


class HttpSide:
    """A small HTTP server; starts when made, `close` ends it.

    Args:
        host: Address to listen on.
        port: 0 takes a free one.
        registry: What /metrics shows.
        lifecycle: What /healthz and /readyz show.
        tls: Where given, connections are encrypted.
        authentication: Knows whose token may read /metrics; None: everybody may.

    Raises:
        OSError: The port cannot be had.
    """

    def __init__(  # noqa: PLR0913 - address, what is shown, to whom; all but the address by name
        self,
        host: str,
        port: int,
        *,
        registry: Collector,
        lifecycle: Health,
        tls: ssl.SSLContext | None = None,
        authentication: Authentication | None = None,
    ) -> None:
        self._registry = registry
        self._lifecycle = lifecycle
        self._authentication = authentication
        self._asking: dict[asyncio.StreamWriter, None] = {}  # the oldest first
        self._open = 0
        listening: Future[int] = Future()
        self._loop = asyncio.new_event_loop()
        self._ended = asyncio.Event()
        self._thread = threading.Thread(
            target=lambda: self._loop.run_until_complete(self._run(host, port, tls, listening)),
            name="gradewire-http",
            daemon=True,
        )
        self._thread.start()
        try:
            self._port = listening.result()
        except OSError:
            self._thread.join()
            self._loop.close()
            raise

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self._port

    def close(self) -> None:
        """Ends it and gives the port back."""
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()
        self._loop.close()

    async def _run(self, host: str, port: int, tls: ssl.SSLContext | None, listening: "Future[int]") -> None:
        try:
            server = await asyncio.start_server(
                self._connected,
                host,
                port,
                limit=MAX_HEAD_BYTES,
                ssl=tls,
                ssl_handshake_timeout=REQUEST_S if tls else None,
            )
        except OSError as error:
            listening.set_exception(bind_error(f"{host}:{port}", "http-port"))
            _log.debug("binding failed: %s", error)
            return
        listening.set_result(int(server.sockets[0].getsockname()[1]))
        await self._ended.wait()
        server.close()
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            if self._open > MAX_CONNECTIONS and not self._make_room():
                await _send(writer, _problem(HTTPStatus.SERVICE_UNAVAILABLE, "too many connections; try again"))
            else:
                await self._serve(reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            pass  # the other side went away or was too slow: nobody is there to be told
        except Exception:  # noqa: BLE001 - one connection's defect ends no other
            _log.exception("an HTTP request failed by a defect")
        finally:
            self._open -= 1
            writer.transport.abort() if writer.transport.get_write_buffer_size() else writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._asking[writer] = None
        with_body = True
        try:
            async with asyncio.timeout(REQUEST_S):
                request = parse_head(await reader.readuntil(b"\r\n\r\n"))
            with_body = request.method != "HEAD"
            reply = self._answer(request)
        except asyncio.LimitOverrunError:
            reply = _problem(
                HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"request line and headers exceed {MAX_HEAD_BYTES} bytes"
            )
        except TimeoutError:
            reply = _problem(HTTPStatus.REQUEST_TIMEOUT, f"the request did not come within {REQUEST_S:g} s")
        except _ProblemError as problem:
            reply = problem.reply
        finally:
            del self._asking[writer]
        await _send(writer, reply, body=with_body)

    def _make_room(self) -> bool:
        """Ends the oldest connection that has not asked yet; False where all have."""
        for writer in self._asking:
            if not writer.transport.is_closing():
                writer.transport.abort()
                return True
        return False

    def _answer(self, request: Request) -> Reply:
        path = request.path.partition("?")[0]
        if path not in _PATHS:
            raise _ProblemError(HTTPStatus.NOT_FOUND, f"there are {', '.join(_PATHS)}")
        if request.method not in {"GET", "HEAD"}:
            raise _ProblemError(HTTPStatus.METHOD_NOT_ALLOWED, f"{path} takes GET and HEAD", "Allow: GET, HEAD")
        if path == "/metrics":
            self._check_reader_of_metrics(request.headers.get("authorization", ""))
            encode, content_type = choose_encoder(request.headers.get("accept", ""))
            return Reply(HTTPStatus.OK, encode(self._registry), content_type)
        if path == "/healthz":
            report = self._lifecycle.report()
            return _shown(report["event_loop_silent_s"] < _SILENT_S, report)
        ready = self._lifecycle.ready
        return _shown(ready, {"ready": ready, "phase": self._lifecycle.phase.value})

    def _check_reader_of_metrics(self, authorization: str) -> None:
        """Refuse a caller who may not see the metrics of all tenants together."""
        if self._authentication is None:
            return
        caller = self._authentication.caller(authorization, "")
        if caller is None:
            text = "the header Authorization: Bearer TOKEN with a token of this server is needed"
            raise _ProblemError(HTTPStatus.UNAUTHORIZED, text, "WWW-Authenticate: Bearer")
        if Scope.ADMIN not in caller.scopes:
            text = f"metrics need a token with the scope {Scope.ADMIN}: they tell of all tenants"
            raise _ProblemError(HTTPStatus.FORBIDDEN, text, "WWW-Authenticate: Bearer")


def server_tls(files: Tls) -> ssl.SSLContext:
    """What `HttpSide` needs for TLS; clients show no certificate. Raises OSError where a file cannot be used."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(files.cert, files.key)
    return context


def parse_head(head: bytes) -> Request:
    """Request line and headers, up to and with the empty line; raises a problem where they are none."""
    first, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    parts = first.split(" ")
    if len(parts) != 3 or not parts[0].isalpha() or not parts[2].startswith("HTTP/1."):
        raise _ProblemError(HTTPStatus.BAD_REQUEST, "this is no request of HTTP/1")
    headers = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise _ProblemError(HTTPStatus.BAD_REQUEST, "a header has no ':'")
        headers[name.lower()] = value.strip()
    return Request(parts[0], parts[1], headers)


def _shown(well: bool, body: object) -> Reply:  # noqa: FBT001 - of this module alone
    return Reply(HTTPStatus.OK if well else HTTPStatus.SERVICE_UNAVAILABLE, _json(body))


def _problem(status: HTTPStatus, text: str) -> Reply:
    return _ProblemError(status, text).reply


def _json(body: object) -> bytes:
    return json.dumps(body).encode() + b"\n"


async def _send(writer: asyncio.StreamWriter, reply: Reply, *, body: bool = True) -> None:
    head = [
        f"HTTP/1.1 {reply.status.value} {reply.status.phrase}",
        "Server: gradewire",
        f"Content-Type: {reply.content_type}",
        f"Content-Length: {len(reply.body)}",
        "Connection: close",
        *reply.headers,
    ]
    # So `drain` waits until the system has taken all of it, and nothing is left that closing would throw away.
    writer.transport.set_write_buffer_limits(high=0)
    writer.write("\r\n".join([*head, "", ""]).encode("latin-1") + (reply.body if body else b""))
    async with asyncio.timeout(REQUEST_S):
        await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
