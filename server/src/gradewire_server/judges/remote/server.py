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
        prompt: What the judge is to see, not yet made harmless.
    """

    prompt: JudgePrompt
    options: tuple[str, ...] = ()
    max_tokens: int = 0
    stop: tuple[str, ...] = ()
    namespace: str = ""


NO_TOKENS: Final = Tokens(0, 0, 0)
_UNKNOWN_TOKENS: Final = Tokens()


def token_count(value: object) -> int | None:
    """Return a number of tokens as a server writes it; None where it is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _UNLIKELY_TOKENS else None


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of a server.

    Attributes:
        text: What the judge wrote, without what it was made to begin with.
        steps: Its tokens with the alternatives; None where the server does not give them.
        continued: Whether it goes on from the opening; otherwise the opening may be its begin.
        tokens: With those of other requests that were made on the way, our own small questions for instance.
        exhausted: Whether its tokens were used up before an answer began: it thinks first, or it rambles.
        probabilities: Of the question's options, where the server gives them itself, in place of text and steps: each 0
            to 1, sum 1.
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
    """Tokens of answers that came to nothing by themselves: the next answer to a caller takes them over."""

    def __init__(self) -> None:
        self._tokens = NO_TOKENS

    def add(self, answer: Answer) -> None:
        """Take over the tokens of an answer that no caller gets."""
        self._tokens = self._tokens.plus(answer.tokens)

    def moved_into(self, answer: Answer) -> Answer:
        """Return an answer with these tokens too, so that nothing that was paid for is missing in the sum."""
        tokens, self._tokens = self._tokens.plus(answer.tokens), NO_TOKENS
        return replace(answer, tokens=tokens)


class Server(Protocol):
    """A judge's server, of one kind.

    Attributes:
        writes: Whether it writes texts; one that does not is only asked to choose.
        questions_per_request: The most questions about one subject that one request may have.
        sees_images: Whether its model can be shown pictures; None where it does not say.
    """

    writes: bool = True
    questions_per_request: int = 1
    sees_images: bool | None = False

    def shown(self, prompt: JudgePrompt) -> JudgePrompt:
        """Return what of a prompt is sent; the rest does not count against its longest length."""
        return prompt

    @property
    def lacks(self) -> str:
        """Names of what it does not do though its kind does, where that changes answers; ""."""
        return ""

    async def find_out(self) -> None:
        """Learn what it can do; called once, before anything else. Raise RemoteError where it is of no use."""

    def subject(self, question: Question) -> Hashable:
        """Return what questions must have in common to be put into one request; None: this one goes alone."""
        del question
        return None

    async def ask(self, questions: Sequence[Question]) -> Sequence[Answer | RemoteError]:
        """Have questions of one subject answered by one request: an answer or what is wrong with it for each.

        Counts of tokens are shared out among the answers, so that their sum is the request's. Raises RemoteError where
        the whole request has failed. Cancelling it cancels the request.
        """

    async def probe(self) -> None:
        """Ask for as little as possible; raise RemoteError while the server is of no use."""

    async def close(self) -> None:
        """Close connections."""
