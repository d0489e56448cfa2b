"""The two forms in which decision servers are asked and answer.

    System One    {model, state, questions: {NAME: {type, instructions, criteria: {LABEL: text}}}}
                  -> {answers: {NAME: {type, probabilities: {LABEL: number}}}, usage}
    Decisions     {model, input, questions: [{type, name, instructions, choices: [{value, description}]}]}
                  -> {answers: [{type, name, probabilities: [{value, probability}]}], usage}

Sources: System One as llama.cpp's `server-decision.cpp`, sparrow-decider 0.2.0 and strands-decider's `schema.py` have
it; Decisions as the types of openai 3.54 have it. Gateways serve the first under the second's address as well.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from gradewire_server.judges.decisions.asked import Asked
from gradewire_server.judges.remote.errors import unreadable

_NAME: Final = "verdict"
"""Of the question, always: some models read it."""
_NO_ANSWER: Final = "no answer to the question"
OTHER_LABELS: Final = "probabilities of other labels than those it was asked for"

Given = Mapping[str, object]
"""What a server gives as probabilities, by label; nothing in it is checked."""


@dataclass(frozen=True, slots=True)
class Form:
    """How a server is asked.

    Attributes:
        path: Behind its base address.
        body: From the model's name and what is asked to the JSON object that is sent.
        given: From the JSON object of an answer to its probabilities; raises RemoteError where there are none.
    """

    path: str
    body: Callable[[str, Asked], dict[str, Any]]
    given: Callable[[Given], Given]


def _system_one_body(model: str, asked: Asked) -> dict[str, Any]:
    question = {"type": "choice", "instructions": asked.instructions, "criteria": asked.options}
    return {"model": model, "state": asked.state, "questions": {_NAME: question}}


def _system_one_given(reply: Given) -> Given:
    answers = reply.get("answers")
    if not isinstance(answers, dict):
        raise unreadable("something else than decisions")
    probabilities = _answer(answers.get(_NAME)).get("probabilities")
    if not isinstance(probabilities, dict):
        raise unreadable("a decision without probabilities")
    return probabilities


def _decisions_body(model: str, asked: Asked) -> dict[str, Any]:
    choices = [{"value": label, "description": text} for label, text in asked.options.items()]
    question = {"type": "choice", "name": _NAME, "instructions": asked.instructions, "choices": choices}
    return {"model": model, "input": asked.state, "questions": [question]}


def _decisions_given(reply: Given) -> Given:
    answers = reply.get("answers")
    if not isinstance(answers, list):
        raise unreadable("something else than decisions")
    if len(answers) != 1:
        raise unreadable(_NO_ANSWER)
    answer = _answer(answers[0])
    if answer.get("name", _NAME) not in (_NAME, None):
        raise unreadable(_NO_ANSWER)
    entries = answer.get("probabilities")
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


SYSTEM_ONE: Final = Form("systemone", _system_one_body, _system_one_given)
DECISIONS: Final = Form("decisions", _decisions_body, _decisions_given)
SYSTEM_ONE_AT_DECISIONS: Final = Form("decisions", _system_one_body, _system_one_given)
FORMS: Final = (SYSTEM_ONE, DECISIONS, SYSTEM_ONE_AT_DECISIONS)
"""In the order in which a server is tried."""
