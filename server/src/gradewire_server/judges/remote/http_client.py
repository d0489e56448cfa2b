"""The HTTP client for a judge's server."""

import asyncio
import json
import logging
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import httpx2

from gradewire_proto.tracing.spans import HTTP_METHOD, HTTP_STATUS, SERVER_ADDRESS, current_span
from gradewire_server.judges.remote.errors import (
    ADDRESS_SETTING,
    KEY_SETTING,
    RemoteError,
    Reply,
    unreachable,
    unreadable,
    with_words,
)
from gradewire_server.settings.judge import RemoteJudgeConfig

_MAX_ANSWER_BYTES: Final = 1 << 20
_CONNECT_TIMEOUT_S: Final = 10.0
_KEEP_ALIVE_S: Final = 30.0
_CLOSE_S: Final = 5.0
"""Seconds to wait for the thread's end, which an endless reply may delay."""
_FIRST_ERROR: Final = 400
_ACCEPTED: Final = {"accept": "application/json", "accept-encoding": "identity"}


class HttpClient:
    """A client for one server. Create it on a thread, because this takes 0.2 s.

    The connections run on a separate thread, because an endless reply would block the event loop. The client follows
    no redirects, so that only this server gets the key.

    Args:
        headers: Headers with the key, instead of a bearer token.
        query: The query of every request, such as Azure's `api-version=…`.

    Raises:
        ValueError: The address or the token is not valid.
    """

    def __init__(self, config: RemoteJudgeConfig, *, headers: Mapping[str, str] | None = None, query: str = "") -> None:
        checked(config)
        # The library logs every request, which would flood the log.
        logging.getLogger("httpx2").setLevel(logging.WARNING)
        self._token, self._address = config.token, config.url
        self._client = httpx2.AsyncClient(
            base_url=config.url.rstrip("/") + "/",
            headers={**_ACCEPTED, **(_bearer(config.token) if headers is None else headers)},
            params=httpx2.QueryParams(query),
            # Set no total timeout, because callers limit each request.
            timeout=httpx2.Timeout(None, connect=_CONNECT_TIMEOUT_S),
            limits=httpx2.Limits(
                max_connections=config.max_in_flight + 1,  # the probe's
                max_keepalive_connections=config.max_in_flight + 1,
                keepalive_expiry=_KEEP_ALIVE_S,
            ),
        )
        self._closed = asyncio.Event()
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._loop = self._runner.get_loop()
        self._thread = threading.Thread(target=self._run, name="gradewire-judge-http", daemon=True)
        self._thread.start()

    def note_refusal(self, log: logging.Logger, level: int, what: str, reply: Reply) -> None:
        """Log a refused request. At level debug, also log the server's text, which may quote a user's text."""
        log.log(level, "%s (status %d)", what, reply.status)
        words = reply.words.replace(self._token, "(the key)") if self._token else reply.words
        log.debug("%s: the server's message: %.300r", what, words)

    def with_words(self, error: RemoteError, reply: Reply) -> RemoteError:
        """Return the error with the server's words, without the key; see `errors.with_words` for what may be passed."""
        return with_words(error, reply, self._token)

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

    async def send(self, path: str, body: bytes | None = None) -> Reply:
        """Send a POST request with JSON, or a GET request if `body` is None; raise RemoteError on failure."""
        method, span = "GET" if body is None else "POST", current_span()
        if span is None:
            return await self._exchange(method, path, body, {})
        attributes = {HTTP_METHOD: method, SERVER_ADDRESS: httpx2.URL(self._address).host}
        with span.child(method, attributes, calls_out=True) as part:
            reply = await self._exchange(method, path, body, dict(part.metadata()))
            part.set(HTTP_STATUS, reply.status)
            if reply.status >= _FIRST_ERROR:
                part.fail(str(reply.status))
            return reply

    async def _exchange(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Reply:
        if body is not None:
            headers = headers | {"content-type": "application/json"}
        receiving = self._received(method, path, body, headers)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(receiving, self._loop))

    async def _received(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Reply:
        try:
            async with self._client.stream(method, path, content=body, headers=headers) as response:
                content = bytearray()
                async for part in response.aiter_bytes(1 << 16):
                    content += part
                    if len(content) > _MAX_ANSWER_BYTES:
                        raise unreadable("more than 1 MiB")
                return Reply(
                    response.status_code, bytes(content), response.headers.get("retry-after", ""), self._address
                )
        except httpx2.DecodingError as error:
            raise unreadable("a body that does not match its encoding") from error
        except httpx2.RequestError as error:
            raise unreachable(self._address) from error


def json_bytes(body: Mapping[str, object]) -> bytes:
    """Return a request's body in JSON."""
    return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def checked(config: RemoteJudgeConfig) -> None:
    """Check the address and the token.

    Raises:
        ValueError: The address or the token is not valid.
    """
    try:
        parsed = httpx2.URL(config.url)
    except (httpx2.InvalidURL, TypeError) as error:
        raise ValueError(f"{ADDRESS_SETTING} must be a base address such as https://host/v1") from error
    if "://" not in config.url:
        raise ValueError(
            f"{ADDRESS_SETTING} must be a base address such as https://host/v1. Write http:// or https:// in front"
        )
    if parsed.scheme not in {"http", "https"} or not parsed.host or parsed.userinfo or parsed.query or parsed.fragment:
        raise ValueError(
            f"{ADDRESS_SETTING} must be a base address such as https://host/v1, without user, query and fragment. "
            f"Set a key with {KEY_SETTING}"
        )
    token = config.token
    if not (token.isascii() and token.isprintable()) or token != token.strip():
        raise ValueError(f"{KEY_SETTING} must be a key of printable ASCII characters, without white space at the ends")


def _bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"} if token else {}
