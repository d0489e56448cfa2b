"""Questions and answers without a form: of the types noul (is it so?), choice and score (which of ordered levels?)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from gradewire_proto.v1 import judging_pb2

MAX_QUESTIONS: Final = 64
MAX_OPTIONS: Final = 26
NOUL: Final = (("false", "the statement does not hold for the state"), ("true", "the statement holds for the state"))


class QuestionType(StrEnum):
    """What is asked."""

    NOUL = "noul"
    CHOICE = "choice"
    SCORE = "score"


@dataclass(frozen=True, slots=True)
class Question:
    """One question about a state.

    Attributes:
        kind: Its type.
        at: Path of it in the request, for errors.
        instructions: What is asked.
        options: Label and description of each; of a score its levels, the lowest first.
    """

    kind: QuestionType
    at: str
    instructions: str
    options: tuple[tuple[str, str], ...]

    def to_message(self) -> judging_pb2.DecisionQuestion:
        """As the server takes it."""
        options = [judging_pb2.DecisionOption(label=label, description=text) for label, text in self.options]
        return judging_pb2.DecisionQuestion(instructions=self.instructions, options=options)


@dataclass(frozen=True, slots=True)
class Decided:
    """The probabilities of a question's options, in their order, sum 1."""

    probabilities: tuple[float, ...]

    @property
    def best(self) -> int:
        """The most probable option, the first of those that are equally probable."""
        return max(range(len(self.probabilities)), key=self.probabilities.__getitem__)

    @property
    def level(self) -> float:
        """The mean of the levels' numbers, from 0."""
        return math.fsum(number * share for number, share in enumerate(self.probabilities))

    @property
    def choice_confidence(self) -> float:
        """0 where all options are equally probable, 1 where one is certain."""
        count = len(self.probabilities)
        return (count * self.probabilities[self.best] - 1) / (count - 1)

    @property
    def score_confidence(self) -> float:
        """1 less the standard deviation of the level, in halves of the scale; 0 where the two ends share it."""
        mean = self.level
        variance = math.fsum((number - mean) ** 2 * share for number, share in enumerate(self.probabilities))
        return 1 - math.sqrt(variance) / ((len(self.probabilities) - 1) / 2)


@dataclass(frozen=True, slots=True)
class Decisions:
    """The answers to the questions of a request, in their order.

    Attributes:
        model: What answered.
        answers: One per question.
        prompt_tokens: Of all prompts together; 0 where that is not known.
    """

    model: str
    answers: Sequence[Decided]
    prompt_tokens: int
