"""Questions to a judge's server of any kind, its answers, and the protocol of such a server."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from gradewire_server.domain.judge import JudgePrompt
from gradewire_server.judges.prometheus import Tokens
from gradewire_server.judges.remote.errors import RemoteError
from gradewire_server.judges.remote.labels import Step

_UNLIKELY_TOKENS: Final = 1 << 31


@dataclass(frozen=True, slots=True)
class Question:
    """A question to a judge's server.

    Attributes:
        prompt: The prompt for the judge, not yet made harmless.
    """

    prompt: JudgePrompt
    options: tuple[str, ...] = ()
    max_tokens: int = 0
    stop: tuple[str, ...] = ()
    namespace: str = ""


NO_TOKENS: Final = Tokens(0, 0, 0)
_UNKNOWN_TOKENS: Final = Tokens()


def token_count(value: object) -> int | None:
    """Return a server's number of tokens; None if it is not valid."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _UNLIKELY_TOKENS else None


@dataclass(frozen=True, slots=True)
class Answer:
    """A server's answer.

    Attributes:
        text: The judge's text, without a given opening.
        steps: Its tokens with the alternatives; None if the server does not give them.
        continued: True if it continues from the opening; otherwise it may begin with the opening.
        tokens: Tokens of this and of earlier requests without an answer, such as our own small questions.
        exhausted: True if its tokens were used up before an answer began, by thoughts or rambling.
        probabilities: Probabilities of the options, each 0 to 1, sum 1, if the server gives them instead of text and
            steps.
    """

    text: str
    whole: bool
    steps: tuple[Step, ...] | None
    continued: bool
    tokens: Tokens = _UNKNOWN_TOKENS
    exhausted: bool = False
    probabilities: tuple[float, ...] | None = None
    demonstrated: bool = True


class UncountedTokens:
    """Tokens of requests that gave no answer to a caller. The next answer includes them."""

    def __init__(self) -> None:
        self._tokens = NO_TOKENS

    def add(self, answer: Answer) -> None:
        """Add the tokens of an answer that no caller gets."""
        self._tokens = self._tokens.plus(answer.tokens)

    def moved_into(self, answer: Answer) -> Answer:
        """Return an answer that includes these tokens, so that the total covers everything that was paid for."""
        tokens, self._tokens = self._tokens.plus(answer.tokens), NO_TOKENS
        return replace(answer, tokens=tokens)


class Server(Protocol):
    """A judge's server, of one kind.

    Attributes:
        writes: True if it writes texts; otherwise it only chooses.
        questions_per_request: Largest number of questions about one subject in a request.
        sees_images: Whether its model takes images; None if it does not say.
    """

    writes: bool = True
    questions_per_request: int = 1
    sees_images: bool | None = False

    def shown(self, prompt: JudgePrompt) -> JudgePrompt:
        """Return the part of a prompt that is sent; the rest does not count towards the limit of its length."""
        return prompt

    @property
    def lacks(self) -> str:
        """Names of features that its kind has but this server lacks, if they change answers; "" without any."""
        return ""

    async def find_out(self) -> None:
        """Find out its features. Called once, before anything else; raises RemoteError if the server is unusable."""

    def subject(self, question: Question) -> Hashable:
        """Return a value that is equal for questions that may share a request; None to send this one alone."""
        del question
        return None

    async def ask(self, questions: Sequence[Question]) -> Sequence[Answer | RemoteError]:
        """Send questions of one subject in one request; return an answer or an error for each.

        Token counts are divided among the answers, so that their sum is the request's. Raises RemoteError if the whole
        request failed. Cancelling it cancels the request.
        """

    async def probe(self) -> None:
        """Send a minimal request; raise RemoteError while the server is unusable."""

    async def close(self) -> None:
        """Close all connections."""
