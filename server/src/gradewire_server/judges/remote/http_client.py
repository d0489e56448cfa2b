"""The client for a judge's server."""

import asyncio
import json
import logging
import ssl
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from gradewire_proto.tracing.spans import HTTP_METHOD, HTTP_STATUS, SERVER_ADDRESS, current_span
from gradewire_server.judges.connections.exchange import (
    BodyError,
    Connections,
    NoReplyError,
    Proxy,
    ProxyError,
    proxy_of,
)
from gradewire_server.judges.connections.http1 import Http1Connections, offers_http2
from gradewire_server.judges.remote.errors import (
    ADDRESS_SETTING,
    KEY_SETTING,
    RemoteError,
    Reply,
    refused,
    unreachable,
    unreadable,
    with_words,
)
from gradewire_server.settings.judge import RemoteJudgeConfig

_FIRST_ERROR: Final = 400
_ACCEPTED: Final = {"accept": "application/json", "accept-encoding": "identity"}
_JSON: Final = {"content-type": "application/json"}
_NO_HEADERS: Final[Mapping[str, str]] = {}


class HttpClient:
    """A client for one server. Create it on a thread, because reading certificates takes 0.2 s.

    The client follows no redirects, so that only this server gets the key. It uses HTTP/2 if the server offers it in
    TLS, otherwise HTTP/1.1.

    Args:
        headers: Headers with the key, instead of a bearer token.
        query: The query of every request, such as Azure's `api-version=…`.

    Raises:
        ValueError: The address or the token is not valid.
    """

    def __init__(self, config: RemoteJudgeConfig, *, headers: Mapping[str, str] | None = None, query: str = "") -> None:
        checked(config)
        self._token, self._address = config.token, config.url
        self._base, self._query = config.url.rstrip("/") + "/", f"?{query}" if query else ""
        self._headers = {**_ACCEPTED, **(_bearer(config.token) if headers is None else headers)}
        self._most = config.max_in_flight + 1  # the probe's
        self._tls = ssl.create_default_context() if urlsplit(config.url).scheme == "https" else None
        self._connections: Connections | None = None
        self._connecting = asyncio.Lock()

    def note_refusal(self, log: logging.Logger, level: int, what: str, reply: Reply) -> None:
        """Log a refused request. At level debug, also log the server's text, which may quote a user's text."""
        log.log(level, "%s (status %d)", what, reply.status)
        words = reply.words.replace(self._token, "(the key)") if self._token else reply.words
        log.debug("%s: the server's message: %.300r", what, words)

    def with_words(self, error: RemoteError, reply: Reply) -> RemoteError:
        """Return the error with the server's words, without the key; see `errors.with_words` for what may be passed."""
        return with_words(error, reply, self._token)

    async def close(self) -> None:
        """Close the connections."""
        if self._connections is not None:
            await self._connections.close()

    async def send(self, path: str, body: bytes | None = None) -> Reply:
        """Send a POST request with JSON, or a GET request if `body` is None; raise RemoteError on failure."""
        connections = self._connections or await self._connected()
        method, span = "GET" if body is None else "POST", current_span()
        headers = _NO_HEADERS if body is None else _JSON
        url = f"{self._base}{path}{self._query}"
        if span is None:
            return await self._exchanged(connections, method, url, body, headers)
        attributes = {HTTP_METHOD: method, SERVER_ADDRESS: urlsplit(self._address).hostname or ""}
        with span.child(method, attributes, calls_out=True) as part:
            traced = {**headers, **dict(part.metadata())}
            reply = await self._exchanged(connections, method, url, body, traced)
            part.set(HTTP_STATUS, reply.status)
            if reply.status >= _FIRST_ERROR:
                part.fail(str(reply.status))
            return reply

    async def _exchanged(
        self, connections: Connections, method: str, url: str, body: bytes | None, headers: Mapping[str, str]
    ) -> Reply:
        try:
            status, content, retry_after = await connections.exchange(method, url, body, headers)
        except NoReplyError as error:
            raise unreachable(self._address, str(error)) from error
        except BodyError as error:
            raise unreadable(str(error)) from error
        return Reply(status, content, retry_after, self._address)

    async def _connected(self) -> Connections:
        async with self._connecting:
            if self._connections is None:
                self._connections = await self._chosen()
            return self._connections

    async def _chosen(self) -> Connections:
        tls, proxy = self._tls, proxy_of(self._address)
        if proxy is not None:
            return await asyncio.to_thread(self._by_library, proxy)
        if tls is not None:
            try:
                http2 = await offers_http2(self._address, tls)
            except NoReplyError as error:
                # Choose at the next request, because only a server that answers shows what it offers.
                raise unreachable(self._address, str(error)) from error
            if http2:
                return await asyncio.to_thread(self._by_library, None)
            tls.set_alpn_protocols(["http/1.1"])
        return Http1Connections(self._address, self._headers, self._most, tls)

    def _by_library(self, proxy: Proxy | None) -> Connections:
        # Most servers on one's own machines have no HTTP/2, and then need not load this library.
        from gradewire_server.judges.connections.http_library import LibraryConnections  # noqa: PLC0415 - see above

        if proxy is None:
            return LibraryConnections(self._headers, self._most, self._tls)
        try:
            return LibraryConnections(self._headers, self._most, self._tls, proxy.address)
        except ProxyError as error:
            # The address may contain a password.
            raise refused(
                f"the environment variable {proxy.variable} names no proxy that judges can use. Set it to an address "
                "such as http://host:3128, or name the judge's host in NO_PROXY"
            ) from error


def json_bytes(body: Mapping[str, object]) -> bytes:
    """Return a request's body in JSON."""
    return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def checked(config: RemoteJudgeConfig) -> None:
    """Check the address and the token.

    Raises:
        ValueError: The address or the token is not valid.
    """
    try:
        parsed = urlsplit(config.url)
        host = (parsed.hostname or "").encode("idna")
        valid = parsed.port is None or parsed.port > 0
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"{ADDRESS_SETTING} must be a base address such as https://host/v1") from error
    if "://" not in config.url:
        raise ValueError(
            f"{ADDRESS_SETTING} must be a base address such as https://host/v1. Write http:// or https:// in front"
        )
    more = "@" in parsed.netloc or "?" in config.url or "#" in config.url
    written = config.url.isascii() and config.url.isprintable() and " " not in config.url
    if parsed.scheme not in {"http", "https"} or not (host and valid and written) or more:
        raise ValueError(
            f"{ADDRESS_SETTING} must be a base address such as https://host/v1, without user, query and fragment. "
            f"Set a key with {KEY_SETTING}"
        )
    token = config.token
    if not (token.isascii() and token.isprintable()) or token != token.strip():
        raise ValueError(f"{KEY_SETTING} must be a key of printable ASCII characters, without white space at the ends")


def _bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"} if token else {}
