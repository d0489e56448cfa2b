"""The two forms in which decision servers are asked and answer.

    System One    {model, state, questions: {NAME: {type, instructions, criteria: {LABEL: text}}}}
                  -> {answers: {NAME: {type, probabilities: {LABEL: number}}}, usage}
    Decisions     {model, input, questions: [{type, name, instructions, choices: [{value, description}]}]}
                  -> {answers: [{type, name, probabilities: [{value, probability}]}], usage}

Sources: System One as llama.cpp's `server-decision.cpp`, sparrow-decider 0.2.0 and strands-decider's `schema.py` have
it; Decisions as the types of openai 3.54 have it. Gateways serve the first under the second's address as well.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gradewire_server.judges.decisions.asked import Asked
from gradewire_server.judges.remote.errors import unreadable

_NAME: Final = "verdict"
"""Of a question that is asked alone, always: some models read it."""
_NO_ANSWER: Final = "no answer to the question"
_OTHER_ANSWERS: Final = "answers to other questions than those it was asked"
OTHER_LABELS: Final = "probabilities of other labels than those it was asked for"

Given = Mapping[str, object]
"""What a server gives as probabilities, by label; nothing in it is checked."""


@dataclass(frozen=True, slots=True)
class Form:
    """How a server is asked.

    Attributes:
        path: Behind its base address.
        body: From the model's name and what is asked about one state to the JSON object that is sent.
        answers: From the JSON object of an answer and the number of questions to the answer to each of them; raises
            RemoteError where these are not answered, or others are.
        given: From an answer to its probabilities; raises RemoteError where there are none.
    """

    path: str
    body: Callable[[str, Sequence[Asked]], dict[str, Any]]
    answers: Callable[[Given, int], list[object]]
    given: Callable[[object], Given]


def names(count: int) -> list[str]:
    """Of the questions of a request, the first one's is that of a question that is asked alone."""
    return [_NAME, *(f"{_NAME}_{number}" for number in range(2, count + 1))]


def _system_one_body(model: str, asked: Sequence[Asked]) -> dict[str, Any]:
    questions = {
        name: {"type": "choice", "instructions": each.instructions, "criteria": each.options}
        for name, each in zip(names(len(asked)), asked, strict=True)
    }
    return {"model": model, "state": asked[0].state, "questions": questions}


def _system_one_answers(reply: Given, count: int) -> list[object]:
    answers = reply.get("answers")
    if not isinstance(answers, dict):
        raise unreadable("something else than decisions")
    asked = names(count)
    if count > 1 and answers.keys() != set(asked):
        raise unreadable(_OTHER_ANSWERS)
    return [answers.get(name) for name in asked]


def _system_one_given(answer: object) -> Given:
    probabilities = _answer(answer).get("probabilities")
    if not isinstance(probabilities, dict):
        raise unreadable("a decision without probabilities")
    return probabilities


def _decisions_body(model: str, asked: Sequence[Asked]) -> dict[str, Any]:
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


def _decisions_answers(reply: Given, count: int) -> list[object]:
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


def _decisions_given(answer: object) -> Given:
    entries = _answer(answer).get("probabilities")
    if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
        raise unreadable("a decision without probabilities")
    given = {each["value"]: each.get("probability") for each in entries if isinstance(each.get("value"), str)}
    if len(given) != len(entries):
        raise unreadable(OTHER_LABELS)
    return given


def _answer(answer: object) -> Given:
    if not isinstance(answer, dict):
        raise unreadable(_NO_ANSWER)
    kind = answer.get("type", "choice")
    if kind == "refusal":
        raise unreadable("a refusal to decide")
    if kind != "choice":
        raise unreadable("an answer to another type of question")
    return answer


SYSTEM_ONE: Final = Form("systemone", _system_one_body, _system_one_answers, _system_one_given)
DECISIONS: Final = Form("decisions", _decisions_body, _decisions_answers, _decisions_given)
SYSTEM_ONE_AT_DECISIONS: Final = Form("decisions", _system_one_body, _system_one_answers, _system_one_given)
FORMS: Final = (SYSTEM_ONE, DECISIONS, SYSTEM_ONE_AT_DECISIONS)
"""In the order in which a server is tried."""
