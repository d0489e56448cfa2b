"""Reads what all HTTP servers of judges answer alike: statuses, waits, JSON; nothing in it is trusted."""

import email.utils
import json
import math
import time
from typing import Any, Final

from gradewire_server.domain.quoting import quoted
from gradewire_server.judges.remote.errors import (
    ADDRESS_SETTING,
    KEY_SETTING,
    MODEL_SETTING,
    RemoteError,
    rate_limited,
    refused,
    rejected,
    says_too_long,
    server_at,
    server_error,
    too_long,
    unreadable,
)
from gradewire_server.judges.remote.http_client import Reply

_LONGEST_WAIT_S: Final = 3600.0
_UNLIKELY_TOKENS: Final = 1 << 31
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
    what_to_do = _what_to_do(reply, words, model, wanted)
    if what_to_do:
        return refused(what_to_do)
    if status == _TOO_MANY:
        return rate_limited(wait_s)
    if status >= _BROKEN or status in _AGAIN:
        return server_error(wait_s)
    return too_long() if status == _TOO_LARGE or says_too_long(words) else rejected(status)


def said(reply: Reply) -> str:
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


def _what_to_do(reply: Reply, words: str, model: str, wanted: str) -> str:
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


def json_object(content: bytes) -> dict[str, Any]:
    """Parses a body; raises RemoteError where it is no JSON object."""
    try:
        read = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise unreadable("something else than JSON") from error
    if not isinstance(read, dict):
        raise unreadable("something else than a JSON object")
    return read


def count(value: object) -> int | None:
    """A number of tokens; None where it is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _UNLIKELY_TOKENS else None
