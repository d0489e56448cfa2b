"""Errors from judges' servers, and the meaning of a reply's status and text."""

import email.utils
import math
import re
import time
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final, Self

from gradewire_server.domain.items import Failure, Status, quoted
from gradewire_server.judges.remote.error_bodies import READ_CHARACTERS, error_in_success, parsed_json, read_error

ADDRESS_SETTING: Final = "judge_url (--judge-url)"
MODEL_SETTING: Final = "judge_remote_model (--judge-remote-model)"
KEY_SETTING: Final = "judge_token (gradewire score: --judge-key-env)"

NOT_FOUND: Final = frozenset({404, 405, 501})
BAD_REQUEST: Final = frozenset({400, 422})
NAMING_A_FEATURE: Final = BAD_REQUEST | {403, 404, 500, 501}
"""Statuses with which servers refuse a feature. Some servers return 403, as if the key were wrong, or fail with 500."""
_OK: Final = range(200, 300)
_REDIRECTS: Final = range(300, 400)
_UNAUTHORIZED: Final = frozenset({401, 403})
_UNPAID: Final = 402
_MAY_SAY_UNPAID: Final = frozenset({400, 403, 429})
_NO_SUCH_ADDRESS: Final = 404
_WORTH_REPEATING: Final = frozenset({408, 409, 424, 425})
"""Text generation inference and Bedrock return 424 if the model failed."""
_TOO_LARGE: Final = 413
_TOO_MANY: Final = 429
_SERVER_FAILED: Final = 500
_LONGEST_WAIT_S: Final = 3600.0
_HAS_ERROR: Final = re.compile(rb'"errors?"\s*+:\s*+(?!null\b)')
"""An error in a reply. In a text, the quotation marks would have backslashes.

Possessive quantifiers read white space once, however much a server sends.
"""
_HAS_ANSWER: Final = re.compile(rb'"(?:choices|output|content|answers)"\s*+:\s*+(?:\[\s*+[^\]\s]|\{\s*+[^}\s])')
"""The beginning of an answer in a reply. Only a reply without one is parsed in search of other words of an error."""

_SHOWN_CHARACTERS: Final = 200
_TAGS: Final = re.compile(r"<(script|style)\b.*?</\1\s*>|<!--.*?-->|<[^>]*>", re.DOTALL | re.IGNORECASE)
_SPENT: Final = re.compile(
    r"(?<![a-z])(?:insufficient[_ ](?:quota|credits?|balance|funds)|credit[_ ]balance|spend(?:ing)?[_ ]limit"
    r"|billing_(?:error|hard_limit|not_active))",
    re.IGNORECASE,
)
"""Words for a spent account. Words such as "quota exceeded" may also be about the current minute."""
_WRONG_KEY: Final = re.compile(
    r"api_key_(?:invalid|expired)|(?:invalid|incorrect|expired)[_ ]api[_ ]key"
    r"|api key (?:is )?(?:not valid|invalid|expired)",
    re.IGNORECASE,
)
"""Words for a refused key beside status 400, which Gemini sends."""
_TOO_LONG_WORDS: Final = (
    "context_length_exceeded",
    "maximum context length",
    "exceed_context_size",
    "exceeds the available context",
    "maximum model length",
    "max_model_len",
    "prompt is too long",
    "input is too long",
    "inputs is too long",
    "context length of",
    "model's context length",
    "context window",
    "input token count",
    "reduce the length of the messages",
    "string_above_max_length",
    "`inputs` must have less than",
    "`inputs` tokens + `max_new_tokens`",
)
"""Phrases with which servers say that a prompt is too long."""
_OUT_OF_TOKENS: Final = re.compile(
    r"max_(?:completion_|output_)?tokens or model output limit was reached", re.IGNORECASE
)
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
    FILTERED = "filtered"


RETRYABLE = frozenset({RemoteFault.RATE_LIMITED, RemoteFault.UNREACHABLE, RemoteFault.SERVER_ERROR})
"""Errors after which a request is sent again. Timeouts are not included, because the server is already too slow."""
SERVER_AWAY = frozenset({RemoteFault.UNREACHABLE, RemoteFault.SERVER_ERROR, RemoteFault.LATE, RemoteFault.REFUSED})
"""Errors after which the server counts as down until it answers a request."""
REQUEST_AT_FAULT = frozenset({RemoteFault.REJECTED, RemoteFault.TOO_LONG, RemoteFault.UNREADABLE, RemoteFault.FILTERED})
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

    def billed(self, prompt_tokens: int | None, generated_tokens: int | None) -> Self:
        """Add the tokens of an answer that cannot be used, or None for unknown numbers, and return this error."""
        self.failure = replace(self.failure, prompt_tokens=prompt_tokens, generated_tokens=generated_tokens)
        return self


def rate_limited(retry_after_s: float | None) -> RemoteError:
    """Return the error for a server that limits requests."""
    message = "the judge's server accepts no more requests for now. Try again later"
    return RemoteError(RemoteFault.RATE_LIMITED, Status.UNAVAILABLE, message, retry_after_s)


def unreachable(address: str, reason: str = "") -> RemoteError:
    """Return the error for a failed or broken connection. `reason` is "" if only the network knows it."""
    why = f": {reason}" if reason else ""
    message = f"{server_at(address)} cannot be reached{why}. Check {ADDRESS_SETTING}, or try again"
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
    message = (
        f"the judge's server rejects a request (status {status}), though it accepts others, so there is no verdict. "
        "See the server's message in the debug log"
    )
    return RemoteError(RemoteFault.REJECTED, Status.UNPARSABLE, message)


def filtered(what: str = "nothing, because its content filter intervened") -> RemoteError:
    """Return the error for a question or an answer that a content filter or the model itself refused."""
    return RemoteError(RemoteFault.FILTERED, Status.UNPARSABLE, f"the judge's server answered with {what}")


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


def says_out_of_tokens(reply: "Reply") -> bool:
    """Return True if a refusal means that the thoughts used up the token limit, as with OpenAI's reasoning models."""
    return reply.status in BAD_REQUEST and _OUT_OF_TOKENS.search(server_message(reply)) is not None


def says_too_long(text: str) -> bool:
    """Return True if a server's text says that a prompt is too long."""
    lowered = text[:READ_CHARACTERS].casefold()
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
    def ok(self) -> bool:
        """True if the status reports success."""
        return self.status in _OK

    @property
    def words(self) -> str:
        """The beginning of the body, which may quote a user's text."""
        return self.content[:READ_CHARACTERS].decode("utf-8", "replace")


def json_object(content: bytes) -> dict[str, Any]:
    """Parse a body; raise RemoteError if the body is not a JSON object."""
    read = parsed_json(content)
    if read is None:
        raise unreadable("something other than JSON")
    if not isinstance(read, dict):
        raise unreadable("something other than a JSON object")
    return read


def unwrapped(reply: Reply) -> Reply:
    """Return the reply with the status of its error if the reply reports success but has an error and no answer.

    Gateways that have begun to answer, such as OpenRouter, can no longer change the HTTP status.
    """
    if not reply.ok or (_HAS_ERROR.search(reply.content) is None and _HAS_ANSWER.search(reply.content) is not None):
        return reply
    error = error_in_success(parsed_json(reply.content))
    return reply if error is None else replace(reply, status=error.likely_status)


def rejects_everything(reply: Reply) -> RemoteError:
    """Return the error for a server that also rejects, or answers with nonsense, a test question of our own."""
    server = server_at(reply.address)
    if reply.ok:
        body = _kind_of_body(reply)
        return refused(f"{server} answers with {body}. Check {ADDRESS_SETTING}, which usually ends in /v1")
    rejects = f"{server} rejects every request (status {reply.status})"
    return refused(f"{rejects}. Check {MODEL_SETTING}, and your account there")


def no_json(reply: Reply) -> RemoteError | None:
    """Return the error for a successful reply that cannot be a JSON object, such as a web page; otherwise None."""
    is_object = not reply.ok or reply.content.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{"
    return None if is_object else unreadable(_kind_of_body(reply))


def _kind_of_body(reply: Reply) -> str:
    if _TAGS.match(reply.words.lstrip("\ufeff \r\n\t")):
        return "a web page"
    return "something other than JSON" if reply.content.strip() else "an empty reply"


def with_words(error: RemoteError, reply: Reply, key: str) -> RemoteError:
    """Return a new error with the beginning of the server's words, without the `key` ("" means no key).

    Pass only a reply to a request without a caller's text, because the words may quote the request.
    """
    # Beside sentences, the names of fields and codes say little to a reader.
    body = read_error(reply.content)
    words = " ".join(body.sentences) or body.words or _TAGS.sub(" ", reply.words)
    words = " ".join((words.replace(key, "(the key)") if key else words).split())
    said = f". The server's words: {quoted(words, _SHOWN_CHARACTERS)}" if words.strip("{}[] ") else ""
    failure = error.failure
    return RemoteError(error.kind, failure.status, f"{failure.message}{said}", failure.retry_after_s)


def error_of(reply: Reply, model: str, wanted: str = "chat completions") -> RemoteError | None:
    """Return the error for a reply, or None if the reply is successful. `wanted` describes the API in messages."""
    if reply.ok:
        return None
    status, body = reply.status, read_error(reply.content)
    wait_s = retry_after_s(reply.retry_after)
    wait_s = min(body.wait_s, _LONGEST_WAIT_S) if wait_s is None and body.wait_s is not None else wait_s
    # Only a test question can tell whether other words about a filter mean one item.
    if body.names_a_filter and status < _SERVER_FAILED:
        return filtered()
    if (status == _TOO_MANY and not _SPENT.search(body.words)) or (status == _UNPAID and wait_s is not None):
        return rate_limited(wait_s)
    what_to_do = _remedy(reply, body.words, model, wanted)
    if what_to_do:
        return refused(what_to_do)
    if status >= _SERVER_FAILED or status in _WORTH_REPEATING:
        return server_error(wait_s, at=f"{server_at(reply.address)} (status {status})")
    return too_long() if status == _TOO_LARGE or says_too_long(body.words) else rejected(status)


def server_message(reply: Reply) -> str:
    """Return the server's codes and sentences from a body. Other parts of the body may repeat the request."""
    return read_error(reply.content).words


def mentions_a_filter(reply: Reply) -> bool:
    """Return True if a refusal is about a content filter."""
    return read_error(reply.content).mentions_a_filter


def _remedy(reply: Reply, words: str, model: str, wanted: str) -> str:
    status, server = reply.status, server_at(reply.address)
    if status == _UNPAID or (status in _MAY_SAY_UNPAID and _SPENT.search(words)):
        return f"the quota for {server} is used up (status {status}). Raise it or pay there, or use another judge"
    if status in _UNAUTHORIZED or (status in BAD_REQUEST and _WRONG_KEY.search(words)):
        return f"{server} requires a key, or refuses this key (status {status}). Check {KEY_SETTING}"
    if status in NOT_FOUND:
        return (
            f"{server} knows no model {quoted(model)}, or no {wanted} at this address "
            f"(status {status}). Check {MODEL_SETTING} and {ADDRESS_SETTING}, which usually ends in /v1"
        )
    if status in _REDIRECTS:
        return f"{server} redirects (status {status}). Set {ADDRESS_SETTING} to the final address"
    return ""


def retry_after_s(header: str) -> float | None:
    """Return the seconds (0 to 3,600) in a Retry-After header, or None if the header cannot be parsed."""
    text = header.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:8]), _LONGEST_WAIT_S)
    try:
        left_s = email.utils.parsedate_to_datetime(text).timestamp() - time.time()
    except (ValueError, TypeError, IndexError, OverflowError, OSError):
        return None
    return min(max(0.0, left_s), _LONGEST_WAIT_S) if math.isfinite(left_s) else None


def refusal_of_pictures(words: str, model: str, status: int) -> RemoteError | None:
    """Return an error if a server's text refuses images; otherwise return None.

    Ignore the model's name in the text, for example in "llama-3.2-vision takes no temperature".
    """
    own_name = rf"(?<!\w){re.escape(model.casefold())}(?!\w)"
    lowered = re.sub(own_name, " ", words[:READ_CHARACTERS].casefold())
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
