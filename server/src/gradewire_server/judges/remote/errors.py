"""Errors from judges' servers, and the meaning of a reply's status and text."""

import email.utils
import json
import math
import re
import time
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from gradewire_server.domain.items import Failure, Status, quoted

ADDRESS_SETTING: Final = "judge_url (--judge-url)"
MODEL_SETTING: Final = "judge_remote_model (--judge-remote-model)"
KEY_SETTING: Final = "judge_token (gradewire score: --judge-key-env)"

NOT_FOUND: Final = frozenset({404, 405, 501})
BAD_REQUEST: Final = frozenset({400, 422})
_OK: Final = 200
_REDIRECTS: Final = range(300, 400)
_UNAUTHORIZED: Final = frozenset({401, 403})
_UNPAID: Final = 402
_NO_SUCH_ADDRESS: Final = 404
_WORTH_REPEATING: Final = frozenset({408, 409, 425})
_TOO_LARGE: Final = 413
_TOO_MANY: Final = 429
_SERVER_FAILED: Final = 500
_LONGEST_WAIT_S: Final = 3600.0

_READ_CHARACTERS: Final = 4000
_SHOWN_CHARACTERS: Final = 200
_TAGS: Final = re.compile(r"<(script|style)\b.*?</\1\s*>|<!--.*?-->|<[^>]*>", re.DOTALL | re.IGNORECASE)
_SPENT: Final = re.compile(r"\binsufficient[_ ](?:quota|credits?|balance|funds)\b", re.IGNORECASE)
"""Words for a spent account. Words such as "quota exceeded" may also be about the current minute."""
_TOO_LONG_WORDS: Final = (
    "context_length_exceeded",
    "maximum context length",
    "exceed_context_size",
    "exceeds the available context",
    "maximum model length",
    "max_model_len",
)
"""Phrases with which servers say that a prompt is too long."""
_ABOUT_PICTURES: Final = re.compile(
    r"\b(?:images?|image_\w+|pictures?|vision|visual|multi-?modal\w*|modalit(?:y|ies)|mmproj)\b"
)
_ABOUT_THE_MODEL: Final = re.compile(
    r"not? support|n't support|unsupported|only supported|that support|not a(?:ccept)?\b|n't accept|text[- ]only"
    r"|not multi-?modal|\bno vision|mmproj|at most 0 image"
)
_ABOUT_ONE_PICTURE: Final = re.compile(
    r"\b(?:format|mime|media type|file|decod|load|read\b|corrupt|damag|size|dimension|resolution|aspect|pixel|animat"
    r"|download|fetch)|valid image|image is valid|too (?:large|small|big|many)|at most [1-9]"
)
"""Words that refer to one image. "unsupported image format", for example, does not mean that the model sees no images.
"""


class RemoteFault(StrEnum):
    """The types of errors. Their values are also the retry counter's reasons."""

    RATE_LIMITED = "rate_limited"
    UNREACHABLE = "unreachable"
    SERVER_ERROR = "server_error"
    LATE = "late"
    REFUSED = "refused"
    REJECTED = "rejected"
    TOO_LONG = "too_long"
    UNREADABLE = "unreadable"


RETRYABLE = frozenset({RemoteFault.RATE_LIMITED, RemoteFault.UNREACHABLE, RemoteFault.SERVER_ERROR})
"""Errors after which a request is sent again. Timeouts are not included, because the server is already too slow."""
SERVER_AWAY = frozenset({RemoteFault.UNREACHABLE, RemoteFault.SERVER_ERROR, RemoteFault.LATE, RemoteFault.REFUSED})
"""Errors after which the server counts as down until it answers a request."""
REQUEST_AT_FAULT = frozenset({RemoteFault.REJECTED, RemoteFault.TOO_LONG, RemoteFault.UNREADABLE})
"""Errors in one request or its answer. Other requests may succeed."""


class RemoteError(Exception):
    """Raised when a request to a judge's server failed.

    Attributes:
        failure: The failure for callers, without the server's text.
    """

    def __init__(self, kind: RemoteFault, status: Status, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.failure = Failure(status, message, retry_after_s)


def rate_limited(retry_after_s: float | None) -> RemoteError:
    """Return the error for a server that limits requests."""
    message = "the judge's server accepts no more requests for now. Try again later"
    return RemoteError(RemoteFault.RATE_LIMITED, Status.UNAVAILABLE, message, retry_after_s)


def unreachable(address: str) -> RemoteError:
    """Return the error for a failed or broken connection."""
    message = f"{server_at(address)} cannot be reached. Check {ADDRESS_SETTING}, or try again"
    return RemoteError(RemoteFault.UNREACHABLE, Status.UNAVAILABLE, message)


def server_error(retry_after_s: float | None = None, *, at: str = "the judge's server") -> RemoteError:
    """Return the error for a server that failed. `at` names the server, possibly with its status."""
    message = f"{at} failed. Try again"
    return RemoteError(RemoteFault.SERVER_ERROR, Status.UNAVAILABLE, message, retry_after_s)


def late(address: str, timeout_s: float) -> RemoteError:
    """Return the error for a request that timed out."""
    message = f"{server_at(address)} did not answer within {timeout_s:g} s (judge_timeout_s). Try again"
    return RemoteError(RemoteFault.LATE, Status.UNAVAILABLE, message)


def refused(what_to_do: str) -> RemoteError:
    """Return the error for a server that cannot work until an operator changes something."""
    return RemoteError(RemoteFault.REFUSED, Status.MODEL_UNAVAILABLE, what_to_do)


def rejected(status: int) -> RemoteError:
    """Return the error for a rejected request. The server may accept other requests."""
    message = f"the judge's server rejects a request (status {status}). See the server's message in the debug log"
    return RemoteError(RemoteFault.REJECTED, Status.INTERNAL, message)


def too_long(*, pictures: bool = False) -> RemoteError:
    """Return the error for a prompt that is too long for the model, possibly because of its images."""
    shown = "pictures, question, references" if pictures else "question, references"
    message = f"{shown} and instructions are too long for the judge"
    return RemoteError(RemoteFault.TOO_LONG, Status.INVALID_INPUT, message)


def unreadable(what: str) -> RemoteError:
    """Return the error for an invalid answer."""
    return RemoteError(RemoteFault.UNREADABLE, Status.UNPARSABLE, f"the judge's server answered with {what}")


def server_at(address: str) -> str:
    """Return a phrase with the server's address. An address contains no key."""
    return f"the judge's server at {address}"


def says_too_long(text: str) -> bool:
    """Return True if a server's text says that a prompt is too long."""
    lowered = text[:_READ_CHARACTERS].casefold()
    return any(words in lowered for words in _TOO_LONG_WORDS)


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP reply.

    Attributes:
        content: The body, at most 1 MiB.
    """

    status: int
    content: bytes
    retry_after: str
    address: str

    @property
    def words(self) -> str:
        """The beginning of the body, which may quote a user's text."""
        return self.content[:_READ_CHARACTERS].decode("utf-8", "replace")


def json_object(content: bytes) -> dict[str, Any]:
    """Parse a body; raise RemoteError if the body is not a JSON object."""
    try:
        read = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise unreadable("something other than JSON") from error
    if not isinstance(read, dict):
        raise unreadable("something other than a JSON object")
    return read


def rejects_everything(reply: Reply) -> RemoteError:
    """Return the error for a server that also rejects, or answers with nonsense, a test question of our own."""
    server = server_at(reply.address)
    if reply.status == _OK:
        body = _kind_of_body(reply)
        return refused(f"{server} answers with {body}. Check {ADDRESS_SETTING}, which usually ends in /v1")
    rejects = f"{server} rejects every request (status {reply.status})"
    return refused(f"{rejects}. Check {MODEL_SETTING}, and your account there")


def no_json(reply: Reply) -> RemoteError | None:
    """Return the error for a successful reply that cannot be a JSON object, such as a web page; otherwise None."""
    is_object = reply.status != _OK or reply.content.lstrip()[:1] == b"{"
    return None if is_object else unreadable(_kind_of_body(reply))


def _kind_of_body(reply: Reply) -> str:
    if _TAGS.match(reply.words.lstrip("\ufeff \r\n\t")):
        return "a web page"
    return "something other than JSON" if reply.content.strip() else "an empty reply"


def with_words(error: RemoteError, reply: Reply, key: str) -> RemoteError:
    """Return a new error with the beginning of the server's words, without the `key` ("" means no key).

    Pass only a reply to a request without a caller's text, because the words may quote the request.
    """
    error_part = _parsed(reply).get("error")
    message = error_part.get("message") if isinstance(error_part, dict) else None
    # Beside a message, the names of fields and codes say little to a reader.
    words = message if isinstance(message, str) else server_message(reply) or _TAGS.sub(" ", reply.words)
    words = " ".join((words.replace(key, "(the key)") if key else words).split())
    said = f". The server's words: {quoted(words, _SHOWN_CHARACTERS)}" if words.strip("{}[] ") else ""
    failure = error.failure
    return RemoteError(error.kind, failure.status, f"{failure.message}{said}", failure.retry_after_s)


def error_of(reply: Reply, model: str, wanted: str = "chat completions") -> RemoteError | None:
    """Return the error for a reply, or None if the reply is successful. `wanted` describes the API in messages."""
    status, wait_s = reply.status, retry_after_s(reply.retry_after)
    if status == _OK:
        return None
    words = reply.words
    what_to_do = _remedy(reply, words, model, wanted)
    if what_to_do:
        return refused(what_to_do)
    if status == _TOO_MANY:
        return rate_limited(wait_s)
    if status >= _SERVER_FAILED or status in _WORTH_REPEATING:
        return server_error(wait_s, at=f"{server_at(reply.address)} (status {status})")
    return too_long() if status == _TOO_LARGE or says_too_long(words) else rejected(status)


def server_message(reply: Reply) -> str:
    """Return the server's message from a body. Other parts of the body may repeat the request."""
    body = _parsed(reply)
    error = body.get("error", body)
    if isinstance(error, str):
        return error
    words = [error.get(name) for name in ("param", "code", "message")] if isinstance(error, dict) else []
    detail = body.get("detail")
    for each in detail[:20] if isinstance(detail, list) else [detail]:
        if isinstance(each, dict):  # pydantic's errors, each with a location and a message
            where = each.get("loc")
            words += [each.get("msg"), *(where if isinstance(where, list) else ())]
        else:
            words.append(each)
    return " ".join(word for word in words if isinstance(word, str))


def _parsed(reply: Reply) -> dict[str, Any]:
    """Return a body's JSON object, or {} if the body is none."""
    try:
        return json_object(reply.content)
    except RemoteError:
        return {}


def _remedy(reply: Reply, words: str, model: str, wanted: str) -> str:
    status, server = reply.status, server_at(reply.address)
    if status in _UNAUTHORIZED:
        return f"{server} requires a key, or refuses this key (status {status}). Check {KEY_SETTING}"
    if status in NOT_FOUND:
        return (
            f"{server} knows no model {quoted(model)}, or no {wanted} at this address "
            f"(status {status}). Check {MODEL_SETTING} and {ADDRESS_SETTING}, which usually ends in /v1"
        )
    if status in _REDIRECTS:
        return f"{server} redirects (status {status}). Set {ADDRESS_SETTING} to the final address"
    if status == _UNPAID or (status == _TOO_MANY and _SPENT.search(words)):
        return f"the quota for {server} is used up (status {status}). Raise it or pay there, or use another judge"
    return ""


def retry_after_s(header: str) -> float | None:
    """Return the seconds (0 to 3,600) in a Retry-After header, or None if the header cannot be parsed."""
    text = header.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:8]), _LONGEST_WAIT_S)
    try:
        moment = email.utils.parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    left_s = moment.timestamp() - time.time()
    return min(max(0.0, left_s), _LONGEST_WAIT_S) if math.isfinite(left_s) else None


def refusal_of_pictures(words: str, model: str, status: int) -> RemoteError | None:
    """Return an error if a server's text refuses images; otherwise return None.

    Ignore the model's name in the text, for example in "llama-3.2-vision takes no temperature".
    """
    own_name = rf"(?<!\w){re.escape(model.casefold())}(?!\w)"
    lowered = re.sub(own_name, " ", words[:_READ_CHARACTERS].casefold())
    if not _ABOUT_PICTURES.search(lowered):
        return None
    if _ABOUT_THE_MODEL.search(lowered) and not _ABOUT_ONE_PICTURE.search(lowered):
        message = f"the judge's server reports that its model {quoted(model)} accepts no pictures (judge_sees_images)"
        return RemoteError(RemoteFault.REJECTED, Status.JUDGE_CANNOT_SEE, message)
    if status == _NO_SUCH_ADDRESS:  # the address or the model is unknown
        return None
    message = (
        f"images: the judge's server refuses these images (status {status}). Send fewer or smaller images, or a "
        "different type. See the server's message in the debug log"
    )
    return RemoteError(RemoteFault.REJECTED, Status.INVALID_INPUT, message)
