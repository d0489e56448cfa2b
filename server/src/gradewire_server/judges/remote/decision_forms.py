"""Questions for decision servers: a state and options, in the two forms that these servers take."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from gradewire_server.domain.judge import JudgePrompt, Role
from gradewire_server.judges.prompt_texts import harmless, turns
from gradewire_server.judges.remote.errors import unreadable
from gradewire_server.judges.remote.server import Question

_INSTRUCTIONS: Final = "Choose the option that fits best."
"""Where a prompt has none: some servers refuse an empty text."""
_NAME: Final = "verdict"
"""Of a question that is asked alone, always: some models read it."""
_NO_ANSWER: Final = "no answer to the question"
_OTHER_ANSWERS: Final = "answers to other questions than those it was asked"
OTHER_LABELS: Final = "probabilities of other labels than those it was asked for"


@dataclass(frozen=True, slots=True)
class DecisionQuestion:
    """One question of the type choice; all texts are harmless to a server that writes a chat of them.

    Attributes:
        options: Descriptions by label, in the order of the labels.
    """

    state: str
    instructions: str
    options: dict[str, str]


def without_demonstrations(prompt: JudgePrompt) -> JudgePrompt:
    """Return a prompt with its instructions as the only fixed turns."""
    return replace(prompt, fixed=tuple(turn for turn in prompt.fixed if turn.role is Role.SYSTEM))


def decision_question(question: Question) -> DecisionQuestion:
    """Return what is asked for a choice.

    What the judge said in earlier steps (all lines of the opening but the last) stands behind the instructions: it is
    the judge's own, and no part of the item.
    """
    *instructions, item = (turn.text for turn in turns(without_demonstrations(question.prompt)))
    *earlier, begin = harmless(question.prompt.opening).split("\n")
    said = "\n".join(text for text in ("\n\n".join(instructions), "\n".join(earlier)) if text)
    described = {label: f"{begin} {harmless(label)}".strip() for label in question.options}
    return DecisionQuestion(item, said or _INSTRUCTIONS, described)


GivenProbabilities = Mapping[str, object]
"""What a server gives as probabilities, by label; nothing in it is checked."""


@dataclass(frozen=True, slots=True)
class Form:
    """A way in which a server is asked.

    Attributes:
        body: From the model's name and what is asked about one state to the JSON object that is sent.
        answers: From the JSON object of an answer and the number of questions to the answer to each of them; raises
            RemoteError where these are not answered, or others are.
        given: From an answer to its probabilities; raises RemoteError where there are none.
    """

    path: str
    body: Callable[[str, Sequence[DecisionQuestion]], dict[str, Any]]
    answers: Callable[[GivenProbabilities, int], list[object]]
    given: Callable[[object], GivenProbabilities]


def names(count: int) -> list[str]:
    """Return the names of the questions of a request; the first one's is that of a question that is asked alone."""
    return [_NAME, *(f"{_NAME}_{number}" for number in range(2, count + 1))]


def _system_one_body(model: str, asked: Sequence[DecisionQuestion]) -> dict[str, Any]:
    questions = {
        name: {"type": "choice", "instructions": each.instructions, "criteria": each.options}
        for name, each in zip(names(len(asked)), asked, strict=True)
    }
    return {"model": model, "state": asked[0].state, "questions": questions}


def _system_one_answers(reply: GivenProbabilities, count: int) -> list[object]:
    answers = reply.get("answers")
    if not isinstance(answers, dict):
        raise unreadable("something else than decisions")
    asked = names(count)
    if count > 1 and answers.keys() != set(asked):
        raise unreadable(_OTHER_ANSWERS)
    return [answers.get(name) for name in asked]


def _system_one_probabilities(answer: object) -> GivenProbabilities:
    probabilities = _answer(answer).get("probabilities")
    if not isinstance(probabilities, dict):
        raise unreadable("a decision without probabilities")
    return probabilities


def _decisions_body(model: str, asked: Sequence[DecisionQuestion]) -> dict[str, Any]:
    questions = [
        {
            "type": "choice",
            "name": name,
            "instructions": each.instructions,
            "choices": [{"value": label, "description": text} for label, text in each.options.items()],
        }
        for name, each in zip(names(len(asked)), asked, strict=True)
    ]
    return {"model": model, "input": asked[0].state, "questions": questions}


def _decisions_answers(reply: GivenProbabilities, count: int) -> list[object]:
    answers = reply.get("answers")
    if not isinstance(answers, list):
        raise unreadable("something else than decisions")
    if len(answers) != count:
        raise unreadable(_NO_ANSWER if count == 1 else _OTHER_ANSWERS)
    for name, answer in zip(names(count), answers, strict=True):
        # They come in the order of the questions, and need not be named.
        if isinstance(answer, dict) and answer.get("name", name) not in (name, None):
            raise unreadable(_NO_ANSWER if count == 1 else _OTHER_ANSWERS)
    return answers


def _decisions_probabilities(answer: object) -> GivenProbabilities:
    entries = _answer(answer).get("probabilities")
    if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
        raise unreadable("a decision without probabilities")
    given = {each["value"]: each.get("probability") for each in entries if isinstance(each.get("value"), str)}
    if len(given) != len(entries):
        raise unreadable(OTHER_LABELS)
    return given


def _answer(answer: object) -> GivenProbabilities:
    if not isinstance(answer, dict):
        raise unreadable(_NO_ANSWER)
    kind = answer.get("type", "choice")
    if kind == "refusal":
        raise unreadable("a refusal to decide")
    if kind != "choice":
        raise unreadable("an answer to another type of question")
    return answer


SYSTEM_ONE: Final = Form("systemone", _system_one_body, _system_one_answers, _system_one_probabilities)
DECISIONS: Final = Form("decisions", _decisions_body, _decisions_answers, _decisions_probabilities)
SYSTEM_ONE_AT_DECISIONS: Final = Form("decisions", _system_one_body, _system_one_answers, _system_one_probabilities)
FORMS: Final = (SYSTEM_ONE, DECISIONS, SYSTEM_ONE_AT_DECISIONS)
"""In the order in which a server is tried."""
