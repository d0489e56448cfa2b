"""The formats of questions to decision servers, and of these servers' answers."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from gradewire_server.domain.judge import JudgePrompt, Role
from gradewire_server.judges.prompt_texts import harmless, turns
from gradewire_server.judges.remote.errors import unreadable
from gradewire_server.judges.remote.server import Question

_INSTRUCTIONS: Final = "Choose the option that fits best."
"""Instructions for a prompt without instructions, because some servers refuse an empty string."""
_NAME: Final = "verdict"
"""The name of a single question. Do not change this name, because some models read it."""
_NO_ANSWER: Final = "no answer to the question"
_OTHER_LABELS: Final = "probabilities for the wrong labels"
_ROUNDING: Final = 0.005
"""The maximum rounding error of one probability. At worst, servers round to two digits."""
_ARITHMETIC: Final = 1e-9


@dataclass(frozen=True, slots=True)
class DecisionQuestion:
    """A question with several options. All strings are `harmless`.

    Attributes:
        options: Descriptions by label, in the labels' order.
    """

    state: str
    instructions: str
    options: dict[str, str]


def without_demonstrations(prompt: JudgePrompt) -> JudgePrompt:
    """Return the prompt without demonstrations."""
    return replace(prompt, fixed=tuple(turn for turn in prompt.fixed if turn.role is Role.SYSTEM))


def decision_question(question: Question) -> DecisionQuestion:
    """Return the question to send for a choice.

    All lines of the opening except the last line follow the instructions, because the judge wrote these lines in
    earlier steps.
    """
    *instructions, item = (turn.text for turn in turns(without_demonstrations(question.prompt)))
    *earlier, begin = harmless(question.prompt.opening).split("\n")
    said = "\n".join(text for text in ("\n\n".join(instructions), "\n".join(earlier)) if text)
    described = {label: f"{begin} {harmless(label)}".strip() for label in question.options}
    return DecisionQuestion(item, said or _INSTRUCTIONS, described)


def names(count: int) -> list[str]:
    """Return names for a request's questions."""
    return [_NAME, *(f"{_NAME}_{number}" for number in range(2, count + 1))]


@dataclass(frozen=True, slots=True)
class Form:
    """The format of a server's requests and answers.

    Attributes:
        listed: True if questions, answers and probabilities are lists; False if they are objects with names as keys.
    """

    path: str
    listed: bool = False

    def body(self, model: str, asked: Sequence[DecisionQuestion]) -> dict[str, Any]:
        """Return a request with questions about one state."""
        named = zip(names(len(asked)), asked, strict=True)
        if not self.listed:
            questions = {
                name: {"type": "choice", "instructions": each.instructions, "criteria": each.options}
                for name, each in named
            }
            return {"model": model, "state": asked[0].state, "questions": questions}
        listed = [
            {
                "type": "choice",
                "name": name,
                "instructions": each.instructions,
                "choices": [{"value": label, "description": text} for label, text in each.options.items()],
            }
            for name, each in named
        ]
        return {"model": model, "input": asked[0].state, "questions": listed}

    def answers(self, reply: Mapping[str, object], count: int) -> list[object]:
        """Return the answer to each question; raise RemoteError if an answer is missing or belongs to no question."""
        answers, asked = reply.get("answers"), names(count)
        others = unreadable(_NO_ANSWER if count == 1 else "answers to the wrong questions")
        if self.listed and isinstance(answers, list):
            # The answers come in the questions' order, with or without names.
            given = [each.get("name") if isinstance(each, dict) else None for each in answers]
            if len(given) != count or any(name not in (own, None) for own, name in zip(asked, given, strict=True)):
                raise others
            return answers
        if not self.listed and isinstance(answers, dict):
            if count > 1 and answers.keys() != set(asked):
                raise others
            return [answers.get(name) for name in asked]
        raise unreadable("something other than decisions")

    def distribution(self, answer: object, labels: tuple[str, ...]) -> tuple[float, ...]:
        """Return an answer's probabilities in the labels' order, with rounding errors in their sum corrected.

        Raises:
            RemoteError: The answer has different labels, a probability is outside [0, 1], or the sum is not 1.
        """
        given = self._probabilities(answer)
        if given.keys() != set(labels):
            raise unreadable(_OTHER_LABELS)
        shares = [_probability(given[label]) for label in labels]
        total = math.fsum(shares)
        if not abs(total - 1) <= _ROUNDING * len(shares) + _ARITHMETIC:
            raise unreadable(f"probabilities that sum to {total:.3g} instead of 1")
        return tuple(share / total for share in shares)

    def _probabilities(self, answer: object) -> Mapping[str, object]:
        if not isinstance(answer, dict):
            raise unreadable(_NO_ANSWER)
        kind = answer.get("type", "choice")
        if kind != "choice":
            refused = kind == "refusal"
            raise unreadable("a refusal to decide" if refused else "an answer to a different type of question")
        given = answer.get("probabilities")
        if not self.listed and isinstance(given, dict):
            return given
        if self.listed and isinstance(given, list) and all(isinstance(each, dict) for each in given):
            by_label = {each["value"]: each.get("probability") for each in given if isinstance(each.get("value"), str)}
            if len(by_label) != len(given):
                raise unreadable(_OTHER_LABELS)
            return by_label
        raise unreadable("a decision without probabilities")


def _probability(value: object) -> float:
    # This comparison also refuses NaN.
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise unreadable("an invalid probability. A probability must be a number from 0 to 1")
    return float(value)


SYSTEM_ONE: Final = Form("systemone")
DECISIONS: Final = Form("decisions", listed=True)
SYSTEM_ONE_AT_DECISIONS: Final = Form("decisions")
FORMS: Final = (SYSTEM_ONE, DECISIONS, SYSTEM_ONE_AT_DECISIONS)
"""Formats to try, in this order."""
