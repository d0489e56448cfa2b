"""Needs of a judge (a language model), and its answers."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from gradewire_server.domain.items import Image


class Role(StrEnum):
    """Who speaks in a turn of a chat."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a chat."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class JudgePrompt:
    """A chat that ends in the middle of the judge's turn.

    All texts are plain: whatever looks like a chat token in them is text to the model, not markup. The item's turn is
    `lead + prediction + tail`; where it is too long for the judge, `prediction` is cut at its end and nothing else.

    Attributes:
        fixed: Turns that are the same for all items of a metric: instructions and demonstrations, whose state in the
            model is computed once and kept.
        lead: The item's turn, a user's, up to the prediction.
        prediction: The answer to grade, or another text that may be shortened; may be empty.
        tail: The rest of the item's turn.
        opening: What the judge's turn begins with; it goes on from there. No white space at its end.
        images: Pictures that stand before the text of the item's turn.
    """

    fixed: tuple[Turn, ...]
    lead: str
    prediction: str = ""
    tail: str = ""
    opening: str = ""
    images: tuple[Image, ...] = ()


@dataclass(frozen=True, slots=True)
class Choose:
    """How probable each of `options` is as the next words of the judge's turn.

    Attributes:
        model: Judge: NAME, "" for the default one, or NAME@DIGEST.
        prompt: What it sees.
        options: Two or more distinct labels, none of which begins with another one ("yes", "no"; "1", "2", "3"). They
            follow the opening (or the turn's begin) behind one blank, or at once where the turn is empty.
        namespace: Whose verdict it is, set by the ports of a tenant's namespace; empty: the server's own.
    """

    model: str
    prompt: JudgePrompt
    options: tuple[str, ...]
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """Answer to Choose.

    Attributes:
        probabilities: One per option, each 0 to 1, sum 1: the model's own, at temperature 1, among the options alone.
        mass: Probability of all options together before the others were ruled out; None where the backend cannot tell.
        prompt_tokens: Of the whole prompt, fixed turns included; None where a server does not say.
        truncated: The prediction was cut.
        generated_tokens: Written before the label was known; None where a server does not say.
        demonstrated: Whether the judge was shown the demonstrations among the fixed turns.
    """

    probabilities: tuple[float, ...]
    mass: float | None
    prompt_tokens: int | None
    truncated: bool = False
    generated_tokens: int | None = 0
    demonstrated: bool = True


@dataclass(frozen=True, slots=True)
class Generate:
    """What the judge says next, greedily (always its most probable token), in so many tokens at the most.

    Attributes:
        stop: Texts that end the answer and are no part of it; the end of the judge's turn always does.
    """

    model: str
    prompt: JudgePrompt
    max_tokens: int
    stop: tuple[str, ...] = ()
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Generated:
    """Answer to Generate.

    Attributes:
        text: Without leading and trailing white space; may be empty.
        complete: Whether it ended by itself or at a `stop`, not at `max_tokens`.
        prompt_tokens: As `Choice.prompt_tokens`.
        generated_tokens: How many were computed; None where a server does not say.
    """

    text: str
    complete: bool
    prompt_tokens: int | None
    generated_tokens: int | None
    truncated: bool = False


JudgeNeed: TypeAlias = Choose | Generate
JudgeAnswer: TypeAlias = Choice | Generated
