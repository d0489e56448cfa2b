"""Questions and answers of a judge's server, of any kind, with their pictures."""

import asyncio
import base64
import json
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from gradewire_server.domain.items import Failure, Image, Status, quoted
from gradewire_server.domain.judge import JudgePrompt
from gradewire_server.judges.remote.errors import RemoteError, RemoteFault
from gradewire_server.judges.remote.labels import Step


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


_LARGE_BYTES: Final = 128 << 10


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


_OF_PICTURES: Final = re.compile(
    r"\b(?:images?|image_\w+|pictures?|vision|visual|multi-?modal\w*|modalit(?:y|ies)|mmproj)\b"
)
_BLIND: Final = re.compile(
    r"not? support|n't support|unsupported|only supported|that support|not a(?:ccept)?\b|n't accept|text[- ]only"
    r"|not multi-?modal|\bno vision|mmproj|at most 0 image"
)
_OF_THESE: Final = re.compile(
    r"\b(?:format|mime|media type|file|decod|load|read\b|corrupt|damag|size|dimension|resolution|aspect|pixel|animat"
    r"|download|fetch)|valid image|image is valid|too (?:large|small|big|many)|at most [1-9]"
)
"""What is said of one picture and not of a model: "unsupported image format" is no word of a blind one."""
_READ_CHARACTERS: Final = 4000
_NOT_FOUND: Final = 404


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
    if not _OF_PICTURES.search(lowered):
        return None
    if _BLIND.search(lowered) and not _OF_THESE.search(lowered):
        message = f"the judge's server says that its model {quoted(model)} takes no pictures (judge_sees_images)"
        return RemoteError(RemoteFault.REJECTED, Failure(Status.JUDGE_CANNOT_SEE, message))
    if status == _NOT_FOUND:  # nor is the address, or the model
        return None
    message = (
        f"images: the judge's server refuses these (status {status}): send fewer, smaller ones, or another type; its "
        "words are in the log at level debug"
    )
    return RemoteError(RemoteFault.REJECTED, Failure(Status.INVALID_INPUT, message))
