"""Questions and answers of a judge's server of any kind, with their pictures, and the errors of such servers."""

import asyncio
import base64
import json
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final, Protocol

from gradewire_server.domain.items import Failure, Image, Status, quoted
from gradewire_server.domain.judge import JudgePrompt
from gradewire_server.judges.remote.labels import Step

ADDRESS_SETTING: Final = "judge_url (--judge-url)"
MODEL_SETTING: Final = "judge_remote_model (--judge-remote-model)"
KEY_SETTING: Final = "judge_token (gradewire score: --judge-key-env)"

_UNLIKELY_TOKENS: Final = 1 << 31

_LARGE_BYTES: Final = 128 << 10

_ABOUT_PICTURES: Final = re.compile(
    r"\b(?:images?|image_\w+|pictures?|vision|visual|multi-?modal\w*|modalit(?:y|ies)|mmproj)\b"
)
_MODEL_TAKES_NO_PICTURES: Final = re.compile(
    r"not? support|n't support|unsupported|only supported|that support|not a(?:ccept)?\b|n't accept|text[- ]only"
    r"|not multi-?modal|\bno vision|mmproj|at most 0 image"
)
_ABOUT_ONE_PICTURE: Final = re.compile(
    r"\b(?:format|mime|media type|file|decod|load|read\b|corrupt|damag|size|dimension|resolution|aspect|pixel|animat"
    r"|download|fetch)|valid image|image is valid|too (?:large|small|big|many)|at most [1-9]"
)
"""What is said of one picture and not of a model: "unsupported image format" is no word of a blind one."""
_READ_CHARACTERS: Final = 4000
_HTTP_NOT_FOUND: Final = 404


class RemoteFault(StrEnum):
    """Kinds of errors; also the reasons of the counter of retries."""

    RATE_LIMITED = "rate_limited"
    UNREACHABLE = "unreachable"
    SERVER_ERROR = "server_error"
    LATE = "late"
    REFUSED = "refused"
    REJECTED = "rejected"
    TOO_LONG = "too_long"
    UNREADABLE = "unreadable"


RETRYABLE = frozenset({RemoteFault.RATE_LIMITED, RemoteFault.UNREACHABLE, RemoteFault.SERVER_ERROR})
"""Requests that are sent again. A server that was too slow once is not asked the same again."""
SERVER_AWAY = frozenset({RemoteFault.UNREACHABLE, RemoteFault.SERVER_ERROR, RemoteFault.LATE, RemoteFault.REFUSED})
"""The server is taken to be away until a request is answered again."""
REQUEST_AT_FAULT = frozenset({RemoteFault.REJECTED, RemoteFault.TOO_LONG, RemoteFault.UNREADABLE})
"""The request or its answer is to blame, and others may go well: of several questions in it, it may be one."""


class RemoteError(Exception):
    """A request to a judge's server went wrong.

    Attributes:
        kind: What went wrong.
        failure: For callers: says what to do, and nothing that the server said.
        retry_after_s: What the server asks to wait.
    """

    def __init__(self, kind: RemoteFault, failure: Failure, *, retry_after_s: float | None = None) -> None:
        super().__init__(failure.message)
        self.kind = kind
        self.failure = failure
        self.retry_after_s = retry_after_s


def rate_limited(retry_after_s: float | None) -> RemoteError:
    """The server wants fewer requests."""
    message = "the judge's server takes no more requests for now; try again later"
    return _error(RemoteFault.RATE_LIMITED, Status.UNAVAILABLE, message, retry_after_s)


def unreachable(address: str) -> RemoteError:
    """No connection, or one that broke."""
    message = f"{server_at(address)} cannot be reached: see {ADDRESS_SETTING}, or try again"
    return _error(RemoteFault.UNREACHABLE, Status.UNAVAILABLE, message)


def server_error(retry_after_s: float | None = None) -> RemoteError:
    """The server failed."""
    message = "the judge's server failed; try again"
    return _error(RemoteFault.SERVER_ERROR, Status.UNAVAILABLE, message, retry_after_s)


def late(address: str, timeout_s: float) -> RemoteError:
    """No answer within the time that one request has."""
    message = f"{server_at(address)} did not answer within {timeout_s:g} s (judge_timeout_s); try again"
    return _error(RemoteFault.LATE, Status.UNAVAILABLE, message)


def refused(what_to_do: str) -> RemoteError:
    """The server will not do this until its operator or ours changes something."""
    return _error(RemoteFault.REFUSED, Status.MODEL_UNAVAILABLE, what_to_do)


def rejected(status: int) -> RemoteError:
    """The server does not accept this request; it may accept others."""
    message = f"the judge's server rejects a request (status {status}); its words are in the log at level debug"
    return _error(RemoteFault.REJECTED, Status.INTERNAL, message)


def too_long(*, pictures: bool = False) -> RemoteError:
    """The prompt does not fit the model; with pictures it may be these that do not."""
    shown = "pictures, question, references" if pictures else "question, references"
    message = f"{shown} and instructions are too long for the judge"
    return _error(RemoteFault.TOO_LONG, Status.INVALID_INPUT, message)


def addressed() -> RemoteError:
    """The server takes a picture's bytes only."""
    message = "images: the judge's Triton takes bytes and no addresses: send data, or a data: URI"
    return _error(RemoteFault.REJECTED, Status.INVALID_INPUT, message)


def unreadable(what: str) -> RemoteError:
    """What the server answered is not a valid answer."""
    return _error(RemoteFault.UNREADABLE, Status.UNPARSABLE, f"the judge's server answered with {what}")


def server_at(address: str) -> str:
    """A judge's server by its address, which holds no key: `judge_url` takes none with a user or a query."""
    return f"the judge's server at {address}"


def _error(kind: RemoteFault, status: Status, message: str, retry_after_s: float | None = None) -> RemoteError:
    return RemoteError(kind, Failure(status, message, retry_after_s), retry_after_s=retry_after_s)


def says_too_long(text: str) -> bool:
    """Whether a server's words mean that a prompt exceeds the model's context (OpenAI, vLLM, llama.cpp, Triton)."""
    lowered = text[:4000].casefold()
    return any(
        words in lowered
        for words in (
            "context_length_exceeded",
            "maximum context length",
            "exceed_context_size",
            "exceeds the available context",
            "maximum model length",
            "max_model_len",
        )
    )


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP reply.

    Attributes:
        status: Its code.
        content: Its body, 1 MiB at most.
        retry_after: The header of that name; "" where there is none.
        address: Base address of the server that sent it.
    """

    status: int
    content: bytes
    retry_after: str
    address: str


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


@dataclass(frozen=True, slots=True)
class Question:
    """What one answer is wanted to.

    Attributes:
        prompt: What the judge is to see, not yet made harmless.
        options: Labels to choose from; empty for free text.
        max_tokens: Longest free text.
        stop: Texts that end it.
        namespace: Whose it is.
    """

    prompt: JudgePrompt
    options: tuple[str, ...] = ()
    max_tokens: int = 0
    stop: tuple[str, ...] = ()
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered.

    Attributes:
        text: What the judge wrote, without what it was made to begin with.
        whole: Whether it ended by itself or at a stop.
        steps: Its tokens with the alternatives; None where the server does not give them.
        continued: Whether it goes on from the opening; otherwise the opening may be its begin.
        prompt_tokens, cached_tokens, generated_tokens: As RequestUsage has them; with those of other requests that
            were made on the way, our own small questions for instance.
        exhausted: Whether its tokens were used up before an answer began: it thinks first, or it rambles.
        probabilities: Of the question's options, where the server gives them itself, in place of text and steps: each 0
            to 1, sum 1.
        demonstrated: Whether the judge was shown the demonstrations.
    """

    text: str
    whole: bool
    steps: tuple[Step, ...] | None
    continued: bool
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    generated_tokens: int | None = None
    exhausted: bool = False
    probabilities: tuple[float, ...] | None = None
    demonstrated: bool = True


@dataclass(frozen=True, slots=True)
class Paid:
    """Tokens of answers that came to nothing by themselves; None: the server does not say."""

    prompt_tokens: int | None = 0
    cached_tokens: int | None = 0
    generated_tokens: int | None = 0

    def plus(self, other: "Answer | Paid") -> "Paid":
        """Both together."""
        return Paid(
            _sum(self.prompt_tokens, other.prompt_tokens),
            _sum(self.cached_tokens, other.cached_tokens),
            _sum(self.generated_tokens, other.generated_tokens),
        )

    def within(self, answer: Answer) -> Answer:
        """An answer whose counts have these tokens too, so that nothing that was paid for is missing in the sum."""
        both = self.plus(answer)
        return replace(
            answer,
            prompt_tokens=both.prompt_tokens,
            cached_tokens=both.cached_tokens,
            generated_tokens=both.generated_tokens,
        )


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


class Server(Protocol):
    """A judge's server, of one kind."""

    @property
    def writes(self) -> bool:
        """Whether it writes texts; one that does not is only asked to choose."""
        return True

    def shown(self, prompt: JudgePrompt) -> JudgePrompt:
        """What of a prompt is sent; the rest does not count against its longest length."""
        return prompt

    @property
    def lacks(self) -> str:
        """Names of what it does not do though its kind does, where that changes answers; ""."""

    @property
    def sees_images(self) -> bool | None:
        """Whether its model can be shown pictures; None where it does not say."""
        return False

    async def find_out(self) -> None:
        """Learns what it can do; called once, before anything else. Raises RemoteError where it is of no use."""

    async def ask(self, question: Question) -> Answer:
        """Has one question answered; raises RemoteError. Cancelling it cancels the request."""

    def subject(self, question: Question) -> Hashable:
        """What questions must have in common to be put into one request; None: this one is always asked alone."""
        del question
        return None

    def takes(self, questions: Sequence[Question]) -> bool:
        """Whether these, of one subject, may be put into one request now; does not wait."""
        del questions
        return False

    async def ask_together(self, questions: Sequence[Question]) -> list[Answer | RemoteError]:
        """Has questions that it takes together answered by one request: an answer or what is wrong with it for each.

        Counts of tokens are shared out among the answers, so that their sum is the request's. Raises RemoteError where
        the whole request has failed. Cancelling it cancels the request.
        """
        del questions
        raise RuntimeError("a server that takes one question a request was asked several")

    async def probe(self) -> None:
        """Asks for as little as possible; raises RemoteError while the server is of no use."""

    async def close(self) -> None:
        """Closes connections."""


def base64_of(image: Image) -> str:
    """A picture's bytes in base64."""
    return base64.b64encode(image.data).decode("ascii")


def url_of(image: Image) -> str:
    """A picture as a URL: a data: URI of its bytes, or its own address."""
    return image.uri or f"data:{image.media_type};base64,{base64_of(image)}"


async def body_with(images: Sequence[Image], make: Callable[[], Mapping[str, object]]) -> Mapping[str, object] | bytes:
    """The body of a request; with large pictures as JSON, written on a thread: 12 MB keep the loop for 0.1 s.

    Args:
        images: Those that it holds.
        make: Makes it.
    """
    if sum(len(image.data) for image in images) < _LARGE_BYTES:
        return make()
    return await asyncio.to_thread(lambda: json.dumps(make(), ensure_ascii=False, separators=(",", ":")).encode())


def refusal_of_pictures(words: str, model: str, status: int) -> RemoteError | None:
    """What a server's words about a request with pictures mean; None where they are not about the pictures.

    Either way only the item is refused, and the server stays in use.

    Args:
        words: The server's own.
        model: Its model's name, which says nothing of it ("llama-3.2-vision takes no temperature").
        status: Of its reply, for the message.
    """
    own_name = rf"(?<!\w){re.escape(model.casefold())}(?!\w)"
    lowered = re.sub(own_name, " ", words[:_READ_CHARACTERS].casefold())
    if not _ABOUT_PICTURES.search(lowered):
        return None
    if _MODEL_TAKES_NO_PICTURES.search(lowered) and not _ABOUT_ONE_PICTURE.search(lowered):
        message = f"the judge's server says that its model {quoted(model)} takes no pictures (judge_sees_images)"
        return RemoteError(RemoteFault.REJECTED, Failure(Status.JUDGE_CANNOT_SEE, message))
    if status == _HTTP_NOT_FOUND:  # nor is the address, or the model
        return None
    message = (
        f"images: the judge's server refuses these (status {status}): send fewer, smaller ones, or another type; its "
        "words are in the log at level debug"
    )
    return RemoteError(RemoteFault.REJECTED, Failure(Status.INVALID_INPUT, message))
