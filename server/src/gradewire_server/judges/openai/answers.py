"""Reads replies of OpenAI-compatible servers; nothing in them is trusted."""

import email.utils
import json
import math
import time
from collections.abc import Mapping
from typing import Any, Final

from gradewire_server.domain.quoting import quoted, shortened
from gradewire_server.judges.openai.client import Reply
from gradewire_server.judges.openai.dialect import ServerKind
from gradewire_server.judges.openai.message import text_of
from gradewire_server.judges.openai.thoughts import behind_thoughts
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
from gradewire_server.judges.remote.labels import Step
from gradewire_server.judges.remote.server import Answer

_LONGEST_WAIT_S: Final = 3600.0
_SHOWN_NAMES: Final = 5
_UNLIKELY_TOKENS: Final = 1 << 31
_OK: Final = 200
_REDIRECTS: Final = range(300, 400)
_UNAUTHORIZED: Final = frozenset({401, 402, 403})
NOT_FOUND: Final = frozenset({404, 405, 501})
_AGAIN: Final = frozenset({408, 409, 425})
_TOO_MANY: Final = 429
_BROKEN: Final = 500


def error_of(reply: Reply, model: str) -> RemoteError | None:
    """What a reply's status means; None for success."""
    status, wait_s = reply.status, retry_after_s(reply.retry_after)
    if status == _OK:
        return None
    words = reply.content[:4000].decode("utf-8", "replace")
    what_to_do = _what_to_do(reply, words, model)
    if what_to_do:
        return refused(what_to_do)
    if status == _TOO_MANY:
        return rate_limited(wait_s)
    if status >= _BROKEN or status in _AGAIN:
        return server_error(wait_s)
    return too_long() if says_too_long(words) else rejected(status)


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


def _what_to_do(reply: Reply, words: str, model: str) -> str:
    status, server = reply.status, server_at(reply.address)
    if status in _UNAUTHORIZED:
        return f"{server} wants a key, or refuses the one it got (status {status}): see {KEY_SETTING}"
    if status in NOT_FOUND:
        return (
            f"{server} knows no model {quoted(model)}, or no chat completions at this address "
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


def answer_of(reply: Reply, *, continued: bool, reasoning: bool = False) -> Answer:
    """Reads a chat completion; raises RemoteError where it is none.

    Args:
        reply: The server's.
        continued: Whether the answer goes on from the opening.
        reasoning: Whether the judge is known to think first: then an answer that was cut short before its thoughts
            were over is none.
    """
    completion = _object(reply.content)
    try:
        choice = completion["choices"][0]
        finish = choice.get("finish_reason")
        message = choice["message"]
        content = text_of(message)
        usage = completion.get("usage") or {}
        counts = (
            _count(usage.get("prompt_tokens")),
            _count((usage.get("prompt_tokens_details") or {}).get("cached_tokens")),
            _count(usage.get("completion_tokens")),
        )
        steps = _steps(choice.get("logprobs"))
    except (KeyError, IndexError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise unreadable("something else than a chat completion") from error
    if finish == "content_filter":
        raise unreadable("nothing: its content filter intervened")
    cut = finish == "length"
    if content is None and cut:
        content = ""  # it came to think only
    if content is None:
        raise unreadable("no text")
    spoken = behind_thoughts(message, content, steps)
    exhausted = cut and not spoken.answering and (reasoning or not (spoken.text.strip() or spoken.steps))
    return Answer(spoken.text, not cut, spoken.steps, continued, *counts, exhausted=exhausted)


def _object(content: bytes) -> dict[str, Any]:
    try:
        read = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise unreadable("something else than JSON") from error
    if not isinstance(read, dict):
        raise unreadable("something else than a JSON object")
    return read


def kind_of(reply: Reply, model: str) -> ServerKind:
    """What a server is, by its list of models.

    Raises:
        RemoteError: It has a list, and the model is not in it; llama.cpp's serves its one model under any name.
    """
    try:
        entries = [each for each in _object(reply.content)["data"] if isinstance(each, dict)]
    except (RemoteError, KeyError, TypeError):
        return ServerKind.OTHER
    owners = {str(each.get("owned_by", "")) for each in entries}
    if ServerKind.LLAMA_CPP.value in owners:
        return ServerKind.LLAMA_CPP
    names = [str(each["id"]) for each in entries if "id" in each]
    if names and model not in names:
        shown = ", ".join(shortened(name) for name in names[:_SHOWN_NAMES])
        raise refused(
            f"{server_at(reply.address)} has no model {quoted(model)}; it has {shown}"
            f"{' and others' if len(names) > _SHOWN_NAMES else ''}: see {MODEL_SETTING}"
        )
    return ServerKind.VLLM if ServerKind.VLLM.value in owners else ServerKind.OTHER


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _UNLIKELY_TOKENS else None


def _steps(logprobs: Mapping[str, Any] | None) -> tuple[Step, ...] | None:
    content = (logprobs or {}).get("content")
    return tuple(_step(each) for each in content) if content else None


def _step(entry: Mapping[str, Any]) -> Step:
    tops = [(_token(each), float(each["logprob"])) for each in entry.get("top_logprobs") or ()]
    token = _token(entry)
    # A token that the server was made to write may be none of the most probable ones; then it speaks for no label.
    return Step(token, tuple(tops or [(token, float(entry["logprob"]))]))


def _token(entry: Mapping[str, Any]) -> str:
    token = entry["token"]
    if not isinstance(token, str):
        raise TypeError("a token without a text")
    return token
