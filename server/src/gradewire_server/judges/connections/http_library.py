"""Connections by a library: HTTP/2, and proxies."""

import asyncio
import logging
import ssl
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import httpx2
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
    ProxyError,
    Received,
    tls_reason,
)

_CLOSE_S: Final = 5.0
"""Seconds to wait for the thread's end, which an endless reply may delay."""


class LibraryConnections(Connections):
    """Connections that speak HTTP/2 if the server offers it in TLS, otherwise HTTP/1.1.

    They run on a separate thread, because an endless reply would block the event loop.

    Args:
        most: The maximum number of connections.
        tls: The certificates, or None without TLS.
        proxy: The address of a proxy, or None.

    Raises:
        ProxyError: The proxy's address cannot be used.
    """

    def __init__(
        self, headers: Mapping[str, str], most: int, tls: ssl.SSLContext | None, proxy: str | None = None
    ) -> None:
        # The library logs every request, which would flood the log.
        logging.getLogger("httpx2").setLevel(logging.WARNING)
        try:
            self._client = httpx2.AsyncClient(
                headers=dict(headers),
                http2=True,
                verify=True if tls is None else tls,
                proxy=proxy,
                trust_env=False,  # passwords in ~/.netrc are not for this server
                # Set no total timeout, because callers limit each request.
                timeout=httpx2.Timeout(None, connect=CONNECT_TIMEOUT_S),
                limits=httpx2.Limits(
                    max_connections=most, max_keepalive_connections=most, keepalive_expiry=KEEP_ALIVE_S
                ),
            )
        except (ValueError, ImportError, httpx2.InvalidURL) as error:
            if proxy is None:
                raise
            raise ProxyError from error
        self._closed = asyncio.Event()
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._loop = self._runner.get_loop()
        self._thread = threading.Thread(target=self._run, name="gradewire-judge-http", daemon=True)
        self._thread.start()

    @override
    async def exchange(self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> Received:
        receiving = self._received(method, url, body, headers)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(receiving, self._loop))

    @override
    async def close(self) -> None:
        """Close the connections. During an endless reply, the connections close only when the process ends."""
        with suppress(RuntimeError):  # already closed
            self._loop.call_soon_threadsafe(self._closed.set)
        await asyncio.to_thread(self._thread.join, _CLOSE_S)

    def _run(self) -> None:
        async def until_closed() -> None:
            async with self._client:
                await self._closed.wait()

        with self._runner:
            self._runner.run(until_closed())

    async def _received(self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> Received:
        content = bytearray()
        try:
            async with self._client.stream(method, url, content=body, headers=dict(headers)) as response:
                async for part in response.aiter_bytes(1 << 16):
                    content += part
                    if len(content) > MAX_ANSWER_BYTES:
                        raise BodyError(TOO_LARGE)
                return Received(response.status_code, bytes(content), response.headers.get("retry-after", ""))
        except httpx2.DecodingError as error:
            raise BodyError(WRONG_ENCODING) from error
        except httpx2.RequestError as error:
            raise NoReplyError(tls_reason(error)) from error
