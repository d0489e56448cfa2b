"""Write questions to decision servers and read their answers, in the two forms that these servers accept."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from gradewire_server.domain.judge import JudgePrompt, Role
from gradewire_server.judges.prompt_texts import harmless, turns
from gradewire_server.judges.remote.errors import unreadable
from gradewire_server.judges.remote.server import Question

_INSTRUCTIONS: Final = "Choose the option that fits best."
"""Instructions for a prompt without any, since some servers refuse an empty text."""
_NAME: Final = "verdict"
"""The name of a single question. It never changes, because some models read it."""
_NO_ANSWER: Final = "no answer to the question"
_OTHER_LABELS: Final = "probabilities of other labels than the requested ones"
_ROUNDING: Final = 0.005
"""Rounding error of one probability: servers round to four digits (sparrow-decider), or at worst to two."""
_ARITHMETIC: Final = 1e-9


@dataclass(frozen=True, slots=True)
class DecisionQuestion:
    """A question of the type choice. Its texts are harmless to a server that renders them as a chat.

    Attributes:
        options: Descriptions by label, in the order of the labels.
    """

    state: str
    instructions: str
    options: dict[str, str]


def without_demonstrations(prompt: JudgePrompt) -> JudgePrompt:
    """Return a prompt whose only fixed turns are the instructions."""
    return replace(prompt, fixed=tuple(turn for turn in prompt.fixed if turn.role is Role.SYSTEM))


def decision_question(question: Question) -> DecisionQuestion:
    """Return the question to send for a choice.

    The judge's words in earlier steps (all lines of the opening but the last) follow the instructions, because they are
    not part of the item.
    """
    *instructions, item = (turn.text for turn in turns(without_demonstrations(question.prompt)))
    *earlier, begin = harmless(question.prompt.opening).split("\n")
    said = "\n".join(text for text in ("\n\n".join(instructions), "\n".join(earlier)) if text)
    described = {label: f"{begin} {harmless(label)}".strip() for label in question.options}
    return DecisionQuestion(item, said or _INSTRUCTIONS, described)


def names(count: int) -> list[str]:
    """Return the names of a request's questions; the first has the name of a single question."""
    return [_NAME, *(f"{_NAME}_{number}" for number in range(2, count + 1))]


@dataclass(frozen=True, slots=True)
class Form:
    """The form of a server's requests and answers.

    Attributes:
        path: Path after the base address.
        listed: True if questions, answers and probabilities are lists; otherwise they are keyed by name.
    """

    path: str
    listed: bool = False

    def body(self, model: str, asked: Sequence[DecisionQuestion]) -> dict[str, Any]:
        """Return the JSON object of a request with questions about one state."""
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
        """Return the answer to each question; raise RemoteError if one is missing, or if there are others."""
        answers, asked = reply.get("answers"), names(count)
        others = unreadable(_NO_ANSWER if count == 1 else "answers to other questions than those it was asked")
        if self.listed and isinstance(answers, list):
            # They come in the order of the questions, with or without names.
            given = [each.get("name") if isinstance(each, dict) else None for each in answers]
            if len(given) != count or any(name not in (own, None) for own, name in zip(asked, given, strict=True)):
                raise others
            return answers
        if not self.listed and isinstance(answers, dict):
            if count > 1 and answers.keys() != set(asked):
                raise others
            return [answers.get(name) for name in asked]
        raise unreadable("something else than decisions")

    def distribution(self, answer: object, labels: tuple[str, ...]) -> tuple[float, ...]:
        """Return an answer's probabilities in the order of the labels, with sum 1.

        Raises:
            RemoteError: They are not those of exactly the labels, finite and from 0 to 1, with a sum of 1. Rounding to
                two digits, 0.005 a label, is allowed and divided out.
        """
        given = self._probabilities(answer)
        if given.keys() != set(labels):
            raise unreadable(_OTHER_LABELS)
        shares = [_probability(given[label]) for label in labels]
        total = math.fsum(shares)
        if not abs(total - 1) <= _ROUNDING * len(shares) + _ARITHMETIC:
            raise unreadable(f"probabilities that sum to {total:.3g} in place of 1")
        return tuple(share / total for share in shares)

    def _probabilities(self, answer: object) -> Mapping[str, object]:
        if not isinstance(answer, dict):
            raise unreadable(_NO_ANSWER)
        kind = answer.get("type", "choice")
        if kind != "choice":
            refused = kind == "refusal"
            raise unreadable("a refusal to decide" if refused else "an answer to another type of question")
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
    # Written so that a NaN is refused too.
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise unreadable("a probability that is none: each must be a number from 0 to 1")
    return float(value)


SYSTEM_ONE: Final = Form("systemone")
DECISIONS: Final = Form("decisions", listed=True)
SYSTEM_ONE_AT_DECISIONS: Final = Form("decisions")
FORMS: Final = (SYSTEM_ONE, DECISIONS, SYSTEM_ONE_AT_DECISIONS)
"""Forms, in the order in which they are tried."""
