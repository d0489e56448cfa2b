"""HTTP/1.1 to a judge's server, with a limit for everything that a server may send."""

import asyncio
import ssl
import time
import zlib
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

import httptools
from typing_extensions import override

from gradewire_server.judges.connections.exchange import (
    CONNECT_TIMEOUT_S,
    KEEP_ALIVE_S,
    MAX_ANSWER_BYTES,
    TOO_LARGE,
    WRONG_ENCODING,
    BodyError,
    Connections,
    NoReplyError,
    Received,
    tls_reason,
)

_MAX_HEAD_BYTES: Final = 64 << 10
_MAX_RECEIVED_BYTES: Final = 2 * MAX_ANSWER_BYTES
"""Maximum size of a reply with its head and its chunks' lines. A chunk of 1 byte takes 6 bytes."""
_MAX_INTERIM: Final = 16
"""Maximum number of interim replies, such as 103 Early Hints, before a reply."""
_READ_BYTES: Final = 16 << 10
"""Bytes to read from a connection in one turn of the event loop. More would let a flood of chunks hold up the loop."""
_WINDOW_BITS: Final = {b"gzip": 31, b"x-gzip": 31, b"deflate": 15}
_NOT_MODIFIED: Final = 304
_SWITCHED: Final = 101


class _StopError(Exception):
    """Raised to stop the parser."""


class _Connection(asyncio.BufferedProtocol):
    """A connection with one request at a time."""

    def __init__(self) -> None:
        self._buffer = bytearray(_READ_BYTES)
        self._view = memoryview(self._buffer)
        self._reply: asyncio.Future[Received] | None = None
        self.idle_since_s = 0.0
        self.received_bytes = 0
        self.reusable = False

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: asyncio.Transport = transport  # type: ignore[assignment] # a stream's transport

    def request(self, data: bytes, reply: asyncio.Future[Received]) -> None:
        """Send a request, and set the reply or NoReplyError or BodyError."""
        self._reply = reply
        self._parser = httptools.HttpResponseParser(self)
        self._content = bytearray()
        self.received_bytes = self._interim = 0
        self._whole = self.reusable = False
        self._begin_message()
        self.transport.write(data)

    def _begin_message(self) -> None:
        self._headers: dict[bytes, bytes] = {}
        self._head_bytes = 0
        self._head_done = False

    @override
    def get_buffer(self, sizehint: int) -> memoryview:
        return self._view

    @override
    def buffer_updated(self, nbytes: int) -> None:
        if self._reply is None or self._whole:  # no request waits for this
            self.reusable = False
            self.transport.abort()
            return
        self.received_bytes += nbytes
        try:
            self._parser.feed_data(self._view[:nbytes])
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(self._stopped if isinstance(error, httptools.HttpParserCallbackError) else NoReplyError())
            return
        if not self._is_over() and self.received_bytes > (_MAX_RECEIVED_BYTES if self._head_done else MAX_ANSWER_BYTES):
            self._fail(BodyError(TOO_LARGE) if self._head_done else NoReplyError())

    @override
    def eof_received(self) -> None:
        return

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self.reusable = False
        if self._reply is None or self._whole:
            return
        measured = {b"content-length", b"transfer-encoding"} & self._headers.keys()
        if exc is None and self._head_done and not measured:
            self._finish()  # the end of the connection is the end of the body
        else:
            self._fail(NoReplyError())

    def _is_over(self) -> bool:
        return self._whole

    def on_message_begin(self) -> None:
        """Give up the connection if a second reply follows a whole one (called by the parser)."""
        if self._whole:
            self.reusable = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header (called by the parser)."""
        self._head_bytes += len(name) + len(value)
        if self._head_bytes > _MAX_HEAD_BYTES:
            self._stop(NoReplyError())
        self._headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        """Note the end of the head (called by the parser)."""
        self._head_done = True

    def on_body(self, part: bytes) -> None:
        """Keep a part of the body (called by the parser)."""
        self._content += part
        if len(self._content) > MAX_ANSWER_BYTES:
            self._stop(BodyError(TOO_LARGE))

    def on_message_complete(self) -> None:
        """Finish the reply, unless it is an interim reply (called by the parser)."""
        if self._whole:
            return
        status = self._parser.get_status_code()
        if 100 <= status < 200 and status != _SWITCHED:
            self._interim += 1
            if self._interim > _MAX_INTERIM:
                self._stop(NoReplyError())
            self._begin_message()
            return
        self.reusable = bool(self._parser.should_keep_alive())
        self._finish()

    def _finish(self) -> None:
        self._whole = True
        if self._reply is None or self._reply.done():
            return
        retry_after = self._headers.get(b"retry-after", b"").decode("latin-1")
        try:
            content = _decoded(bytes(self._content), self._headers.get(b"content-encoding", b"").strip().lower())
        except BodyError as error:
            self._reply.set_exception(error)
        else:
            self._reply.set_result(Received(self._parser.get_status_code(), content, retry_after))

    def _stop(self, error: Exception) -> None:
        self._stopped = error
        raise _StopError

    def _fail(self, error: Exception) -> None:
        self._whole, self.reusable = True, False
        if self._reply is not None and not self._reply.done():
            self._reply.set_exception(error)
        self.transport.abort()


class Http1Connections(Connections):
    """Connections with one request at a time each. For one event loop only.

    Each turn of the event loop reads a small part of a reply, and no reply is read beyond its limits, so an endless
    reply holds up nobody. Redirects are not followed, and cookies are not kept.

    Args:
        address: The server's address. Only its scheme, host and port count.
        headers: Headers of every request.
        most: The maximum number of connections.
    """

    def __init__(self, address: str, headers: Mapping[str, str], most: int, tls: ssl.SSLContext | None) -> None:
        parts = urlsplit(address)
        self._host, self._tls = parts.hostname or "", tls
        self._port = parts.port or (80 if tls is None else 443)
        host = parts.netloc.rpartition("@")[2]
        self._head = _lines({"host": host, **headers})
        self._begins: dict[str, bytes] = {}
        """The first lines by URL. A judge has few URLs."""
        self._places = asyncio.Semaphore(most)
        self._idle: list[_Connection] = []
        self._open: set[_Connection] = set()
        self._closed = False

    @override
    async def exchange(self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> Received:
        begin = self._begins.get(url)
        if begin is None:
            begin = self._begins[url] = self._begin(url)
        length = b"" if body is None else b"content-length: %d\r\n" % len(body)
        head = b"%b%b%b%b\r\n" % (method.encode(), begin, _lines(headers), length)
        data = head + (body or b"")
        async with self._places:
            kept = self._kept()
            if kept is not None:
                try:
                    return await self._exchanged(kept, data)
                except NoReplyError:
                    # The server may have closed an idle connection before it could see the request.
                    if kept.received_bytes or self._closed:
                        raise
            return await self._exchanged(await self._connected(), data)

    @override
    async def close(self) -> None:
        self._closed = True
        for connection in self._open:
            connection.transport.abort()
        self._open.clear()
        self._idle.clear()
        await asyncio.sleep(0)  # sockets are closed in the loop's next turn

    async def _exchanged(self, connection: _Connection, data: bytes) -> Received:
        reply: asyncio.Future[Received] = asyncio.get_running_loop().create_future()
        try:
            connection.request(data, reply)
            return await reply
        finally:
            if connection.reusable:
                connection.idle_since_s = time.monotonic()
                self._idle.append(connection)
            else:
                self._open.discard(connection)
                connection.transport.abort()

    def _begin(self, url: str) -> bytes:
        parts = urlsplit(url)
        target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
        return f" {target} HTTP/1.1\r\n".encode() + self._head

    def _kept(self) -> _Connection | None:
        """Return the connection that was used last, and close those that were idle for too long."""
        now_s = time.monotonic()
        while self._idle:
            connection = self._idle.pop()
            usable = connection.reusable and not connection.transport.is_closing()
            if usable and now_s - connection.idle_since_s < KEEP_ALIVE_S:
                return connection
            self._open.discard(connection)
            connection.transport.abort()
        return None

    async def _connected(self) -> _Connection:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                _, connection = await loop.create_connection(_Connection, self._host, self._port, ssl=self._tls)
        except (OSError, TimeoutError) as error:
            raise NoReplyError(tls_reason(error)) from error
        self._open.add(connection)
        return connection


def _lines(headers: Mapping[str, str]) -> bytes:
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode("latin-1")


def _decoded(content: bytes, encoding: bytes) -> bytes:
    """Return a body whose encoding the request did not accept; raise BodyError if that is impossible."""
    if encoding in {b"", b"identity"}:
        return content
    if encoding not in _WINDOW_BITS:
        raise BodyError(WRONG_ENCODING)
    decoder = zlib.decompressobj(_WINDOW_BITS[encoding])
    try:
        decoded = decoder.decompress(content, MAX_ANSWER_BYTES + 1)
    except zlib.error as error:
        raise BodyError(WRONG_ENCODING) from error
    if len(decoded) > MAX_ANSWER_BYTES:
        raise BodyError(TOO_LARGE)
    if not decoder.eof:
        raise BodyError(WRONG_ENCODING)
    return decoded


async def offers_http2(address: str, tls: ssl.SSLContext) -> bool:
    """Connect to a server with TLS, and return True if the server chooses HTTP/2; raise NoReplyError on failure."""
    parts = urlsplit(address)
    tls.set_alpn_protocols(["h2", "http/1.1"])
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            _, writer = await asyncio.open_connection(parts.hostname, parts.port or 443, ssl=tls)
    except (OSError, TimeoutError) as error:
        raise NoReplyError(tls_reason(error)) from error
    chosen = writer.get_extra_info("ssl_object").selected_alpn_protocol()
    writer.close()
    return bool(chosen == "h2")
