"""HTTP to a judge's server: the one place that knows the HTTP library, and what all replies have in common."""

import email.utils
import json
import logging
import math
import time
from collections.abc import Mapping
from typing import Any, Final, Self

import anyio
import httpx2

from gradewire_proto.tracing.spans import HTTP_METHOD, HTTP_STATUS, SERVER_ADDRESS, current_span
from gradewire_server.domain.items import quoted
from gradewire_server.judges.remote.server import (
    ADDRESS_SETTING,
    KEY_SETTING,
    MODEL_SETTING,
    RemoteError,
    Reply,
    rate_limited,
    refused,
    rejected,
    says_too_long,
    server_at,
    server_error,
    too_long,
    unreachable,
    unreadable,
)
from gradewire_server.settings.judge import RemoteJudgeConfig

_MAX_ANSWER_BYTES: Final = 1 << 20
_CONNECT_TIMEOUT_S: Final = 10.0
_KEEP_ALIVE_S: Final = 30.0
_FIRST_ERROR: Final = 400


class HttpClient:
    """Kept connections to one server. Follows no redirect: a key goes where it was meant to go and nowhere else.

    Args:
        config: Where it is; `token` is sent as a bearer token.

    Raises:
        ValueError: The address or the token is not valid.
    """

    def __init__(self, config: RemoteJudgeConfig) -> None:
        checked(config)
        # Its line about every request would drown the log.
        logging.getLogger("httpx2").setLevel(logging.WARNING)
        self._token, self._address = config.token, config.url
        self._client = httpx2.AsyncClient(
            base_url=config.url.rstrip("/") + "/",
            headers=_headers(config.token),
            # No time for the whole is set here: the caller gives one to each request.
            timeout=httpx2.Timeout(None, connect=_CONNECT_TIMEOUT_S),
            limits=httpx2.Limits(
                max_connections=config.max_in_flight + 1,  # the probe's
                max_keepalive_connections=config.max_in_flight + 1,
                keepalive_expiry=_KEEP_ALIVE_S,
            ),
        )

    @classmethod
    def loaded(cls, config: RemoteJudgeConfig) -> Self:
        """As the constructor, and with what the library imports at its first connection; on a thread.

        Certificates and imports take 0.2 s of computing, which others on the event loop need not wait for.
        """
        anyio.run(anyio.sleep, 0)  # loads what the library runs connections on
        return cls(config)

    async def get(self, path: str) -> Reply:
        """One GET; raises RemoteError."""
        return await self._send("GET", path, None)

    async def post(self, path: str, body: Mapping[str, object] | bytes) -> Reply:
        """One POST of a JSON object, or of its bytes; raises RemoteError."""
        return await self._send("POST", path, body)

    def without_key(self, text: str) -> str:
        """A text without the key, for the log."""
        return text.replace(self._token, "(the key)") if self._token else text

    async def close(self) -> None:
        """Closes connections."""
        await self._client.aclose()

    async def _send(self, method: str, path: str, body: Mapping[str, object] | bytes | None) -> Reply:
        span = current_span()
        if span is None:
            return await self._exchange(method, path, body, {})
        host = httpx2.URL(self._address).host
        attributes = {HTTP_METHOD: method, SERVER_ADDRESS: host}
        with span.child(method, attributes, calls_out=True) as part:
            reply = await self._exchange(method, path, body, dict(part.metadata()))
            part.set(HTTP_STATUS, reply.status)
            if reply.status >= _FIRST_ERROR:
                part.fail(str(reply.status))
            return reply

    async def _exchange(
        self, method: str, path: str, body: Mapping[str, object] | bytes | None, headers: dict[str, str]
    ) -> Reply:
        if isinstance(body, bytes):
            sent: dict[str, Any] = {"content": body, "headers": headers | {"content-type": "application/json"}}
        else:
            sent = {"json": body, "headers": headers}
        try:
            async with self._client.stream(method, path, **sent) as response:
                content = bytearray()
                async for part in response.aiter_bytes(1 << 16):
                    content += part
                    if len(content) > _MAX_ANSWER_BYTES:
                        raise unreadable("more than 1 MiB")
                return Reply(
                    response.status_code, bytes(content), response.headers.get("retry-after", ""), self._address
                )
        except httpx2.DecodingError as error:
            raise unreadable("a body that its own encoding does not fit") from error
        except httpx2.RequestError as error:
            raise unreachable(self._address) from error


def checked(config: RemoteJudgeConfig) -> None:
    """Checks address and token.

    Raises:
        ValueError: One of them is not valid.
    """
    try:
        parsed = httpx2.URL(config.url)
    except (httpx2.InvalidURL, TypeError) as error:
        raise ValueError(f"{ADDRESS_SETTING} must be a base address such as https://host/v1") from error
    if parsed.scheme not in {"http", "https"} or not parsed.host or parsed.userinfo or parsed.query or parsed.fragment:
        raise ValueError(
            f"{ADDRESS_SETTING} must be a base address such as https://host/v1, without user, query and fragment: "
            f"a key goes in {KEY_SETTING}"
        )
    token = config.token
    if not (token.isascii() and token.isprintable()) or token != token.strip():
        raise ValueError(
            f"{KEY_SETTING} has characters that a key cannot have: white space, an end of line, or no ASCII"
        )


def _headers(token: str) -> dict[str, str]:
    accepted = {"accept": "application/json", "accept-encoding": "identity"}
    return accepted | ({"authorization": f"Bearer {token}"} if token else {})


_LONGEST_WAIT_S: Final = 3600.0
_OK: Final = 200
_REDIRECTS: Final = range(300, 400)
_UNAUTHORIZED: Final = frozenset({401, 402, 403})
NOT_FOUND: Final = frozenset({404, 405, 501})
BAD_REQUEST: Final = frozenset({400, 422})
_AGAIN: Final = frozenset({408, 409, 425})
_TOO_LARGE: Final = 413
_TOO_MANY: Final = 429
_BROKEN: Final = 500


def error_of(reply: Reply, model: str, wanted: str = "chat completions") -> RemoteError | None:
    """What a reply's status means; None for success.

    Args:
        reply: The server's.
        model: The model's name there, for messages.
        wanted: What was asked for, for messages.
    """
    status, wait_s = reply.status, retry_after_s(reply.retry_after)
    if status == _OK:
        return None
    words = reply.content[:4000].decode("utf-8", "replace")
    what_to_do = _remedy(reply, words, model, wanted)
    if what_to_do:
        return refused(what_to_do)
    if status == _TOO_MANY:
        return rate_limited(wait_s)
    if status >= _BROKEN or status in _AGAIN:
        return server_error(wait_s)
    return too_long() if status == _TOO_LARGE or says_too_long(words) else rejected(status)


def server_message(reply: Reply) -> str:
    """The server's own words about a request: not the rest of the body, where some repeat the request itself."""
    try:
        body = json.loads(reply.content)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(body, dict):
        return ""
    error = body.get("error", body)
    if isinstance(error, str):
        return error
    words = [error.get(name) for name in ("param", "code", "message")] if isinstance(error, dict) else []
    detail = body.get("detail")
    for each in detail[:20] if isinstance(detail, list) else [detail]:
        if isinstance(each, dict):  # of pydantic's: where, and what is wrong there
            where = each.get("loc")
            words += [each.get("msg"), *(where if isinstance(where, list) else ())]
        else:
            words.append(each)
    return " ".join(word for word in words if isinstance(word, str))


def _remedy(reply: Reply, words: str, model: str, wanted: str) -> str:
    status, server = reply.status, server_at(reply.address)
    if status in _UNAUTHORIZED:
        return f"{server} wants a key, or refuses the one it got (status {status}): see {KEY_SETTING}"
    if status in NOT_FOUND:
        return (
            f"{server} knows no model {quoted(model)}, or no {wanted} at this address "
            f"(status {status}): see {MODEL_SETTING} and {ADDRESS_SETTING}, which ends in /v1 as a rule"
        )
    if status in _REDIRECTS:
        return f"{server} redirects (status {status}): {ADDRESS_SETTING} must say where it really is"
    if status == _TOO_MANY and "insufficient_quota" in words:
        return f"the quota of {server} is used up: its operator has to raise it"
    return ""


def retry_after_s(header: str) -> float | None:
    """Seconds that a Retry-After header asks for, 0 to 3 600; None where it says nothing that can be read."""
    text = header.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:8]), _LONGEST_WAIT_S)
    try:
        moment = email.utils.parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    left_s = moment.timestamp() - time.time()
    return min(max(0.0, left_s), _LONGEST_WAIT_S) if math.isfinite(left_s) else None
