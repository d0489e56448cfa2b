"""The protocol for judges' servers, with questions and answers."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from gradewire_server.domain.judge import JudgePrompt
from gradewire_server.domain.ports import ModelStatus
from gradewire_server.judges.prometheus import Tokens
from gradewire_server.judges.remote.errors import RemoteError
from gradewire_server.judges.remote.labels import Step

_UNLIKELY_TOKENS: Final = 1 << 31


@dataclass(frozen=True, slots=True)
class Question:
    """A question to a judge's server.

    Attributes:
        prompt: The prompt, not yet `harmless`.
        one_token: True if the judge may write only one token of a label.
    """

    prompt: JudgePrompt
    options: tuple[str, ...] = ()
    max_tokens: int = 0
    stop: tuple[str, ...] = ()
    namespace: str = ""
    one_token: bool = False


NO_TOKENS: Final = Tokens(0, 0, 0)
_UNKNOWN_TOKENS: Final = Tokens()


def token_count(value: object) -> int | None:
    """Return a token count from a server, or None if the count is invalid."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _UNLIKELY_TOKENS else None


@dataclass(frozen=True, slots=True)
class Answer:
    """A server's answer.

    Attributes:
        text: The judge's text, without the opening that it continues.
        steps: The text's tokens and their alternatives, or None if the server does not return them.
        continued: True if the text continues the opening; False if it may begin with the opening.
        tokens: Tokens in this request, and in earlier requests that answered no caller, such as test questions.
        exhausted: True if thoughts or rambling reached the token limit before an answer started.
        probabilities: The options' probabilities (sum 1), or None if the server returns text and steps instead.
        mass: The sum of the options' probabilities before normalisation, or None if unknown.
        truncated: True if the server's module cut the prediction to the judge's limit in tokens.
    """

    text: str
    whole: bool
    steps: tuple[Step, ...] | None
    continued: bool
    tokens: Tokens = _UNKNOWN_TOKENS
    exhausted: bool = False
    probabilities: tuple[float, ...] | None = None
    demonstrated: bool = True
    mass: float | None = None
    truncated: bool = False


class UncountedTokens:
    """Tokens in requests that answered no caller. The next answer includes these tokens."""

    def __init__(self) -> None:
        self._tokens = NO_TOKENS

    def add(self, answer: Answer) -> None:
        """Add an answer that no caller receives."""
        self._tokens = self._tokens.plus(answer.tokens)

    def moved_into(self, answer: Answer) -> Answer:
        """Move the collected tokens into an answer, and return this answer. All paid tokens are then counted."""
        if self._tokens is NO_TOKENS:
            return answer
        tokens, self._tokens = self._tokens.plus(answer.tokens), NO_TOKENS
        return replace(answer, tokens=tokens)


class Server(Protocol):
    """A judge's server.

    Attributes:
        writes: True if the server writes texts; False if it only chooses between labels.
        reads_texts: True if labels are compared as texts; False if the server compares their tokens.
        sees_images: True if the server's model accepts images, or None if the server does not say.
    """

    writes: bool = True
    reads_texts: bool = True
    questions_per_request: int = 1
    sees_images: bool | None = False

    def shown(self, prompt: JudgePrompt) -> JudgePrompt:
        """Return the prompt with only the turns that are sent to the server."""
        return prompt

    def described(self, status: ModelStatus) -> ModelStatus:
        """Return the judge's status with everything that the server reports about its model."""
        return status

    @property
    def lacks(self) -> str:
        """The names of missing features that change answers, or "" if no such feature is missing."""
        return ""

    @property
    def uses(self) -> str:
        """The names of features that change answers and that only some servers have, or "" if there are none."""
        return ""

    @property
    def trouble(self) -> str:
        """The reason why the server is of no use although it answers, or ""."""
        return ""

    async def find_out(self) -> None:
        """Find out the server's features; raise RemoteError if the server is unusable. Call this method first."""

    def subject(self, question: Question) -> Hashable:
        """Return a value that is equal for questions that may share a request, or None to send this question alone."""
        del question
        return None

    async def ask(self, questions: Sequence[Question]) -> Sequence[Answer | RemoteError]:
        """Send questions with one subject in one request; raise RemoteError if the whole request failed.

        If you cancel this call, the request is also cancelled.

        Returns:
            An answer or an error for each question. The answers' token counts add up to the request's count.
        """

    async def probe(self) -> None:
        """Send a minimal request; raise RemoteError while the server is unusable."""

    async def fails_a_test(self, error: RemoteError) -> RemoteError | None:
        """Ask a test question after a request failed with `error`, to tell if other requests fail too.

        Returns:
            None if the server answers or limits requests, else the error for callers. Without a test question, `error`.
        """
        return error

    async def close(self) -> None:
        """Close all connections."""
