"""The needs that a judge (a language model) answers, and the judge's answers."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from gradewire_server.domain.items import Image


class Role(StrEnum):
    """The speaker of a chat turn."""

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
    """A chat: the `fixed` turns, the item's turn (a user turn: `lead + prediction + tail`), and the judge's turn.

    The model does not interpret chat tokens in any of these strings. If the item's turn is too long for the judge, only
    the end of `prediction` is cut.

    Attributes:
        fixed: The instructions and demonstrations, which are the same for all of a metric's items.
        prediction: The answer to grade, or another text that may be cut; may be empty.
        opening: The start of the judge's turn, which the judge continues. Must not end with white space.
        images: Images that precede the text of the item's turn.
    """

    fixed: tuple[Turn, ...]
    lead: str
    prediction: str = ""
    tail: str = ""
    opening: str = ""
    images: tuple[Image, ...] = ()

    def __hash__(self) -> int:
        # Equal `fixed` turns have nothing to tell apart, and hashing them takes longer than all the rest.
        return hash((self.lead, self.prediction, self.tail, self.opening, self.images))


@dataclass(frozen=True, slots=True)
class Choose:
    """A need for the probability of each option: the probability that the judge continues its turn with this option.

    Attributes:
        model: The judge: NAME, NAME@DIGEST, or "" for the default judge.
        options: Two or more labels, for example "yes" and "no". No label may be a prefix of another label. A label
            follows the opening after one blank, or starts the turn if the opening is empty.
        namespace: The namespace in which the verdict is stored. "" means the server's own namespace.
    """

    model: str
    prompt: JudgePrompt
    options: tuple[str, ...]
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """The answer to Choose.

    Attributes:
        probabilities: The model's probability of each option at temperature 1, normalised to sum 1.
        mass: The sum of the options' probabilities before this normalisation, 0 to 1, or None if unknown.
        prompt_tokens: The number of tokens in the whole prompt, or None if unknown.
        truncated: True if the prediction was cut.
        generated_tokens: The number of tokens before the label, or None if unknown.
        demonstrated: True if the judge saw the demonstrations among the fixed turns.
    """

    probabilities: tuple[float, ...]
    mass: float | None
    prompt_tokens: int | None
    truncated: bool = False
    generated_tokens: int | None = 0
    demonstrated: bool = True


@dataclass(frozen=True, slots=True)
class Generate:
    """A need for the judge's continuation: at most `max_tokens` tokens, decoded greedily.

    Attributes:
        stop: Strings that end the answer and are not part of the answer. The end of the turn also ends the answer.
        example: An answer in the form that the caller reads, for views of prompts. No judge sees it.
    """

    model: str
    prompt: JudgePrompt
    max_tokens: int
    stop: tuple[str, ...] = ()
    namespace: str = ""
    example: str = ""


@dataclass(frozen=True, slots=True)
class Generated:
    """The answer to Generate.

    Attributes:
        text: The text without leading and trailing white space; may be empty.
        complete: True if the judge ended its turn or wrote a `stop` string, False if `max_tokens` cut the text.
        prompt_tokens: The number of tokens in the whole prompt, or None if unknown.
        generated_tokens: The number of generated tokens, or None if unknown.
    """

    text: str
    complete: bool
    prompt_tokens: int | None
    generated_tokens: int | None
    truncated: bool = False


JudgeNeed: TypeAlias = Choose | Generate
JudgeAnswer: TypeAlias = Choice | Generated
