"""The form of ``/v1/systemone``.

{model, state, questions: {NAME: {type, instructions, criteria}}} -> {model, answers: {NAME: {type, …}}, usage}
"""

from collections.abc import Mapping
from typing import Any

from gradewire_gateway.decisions.asked import Asked, checked, instructions_of
from gradewire_gateway.decisions.questions import NOUL, Decided, Decisions, Question, QuestionType
from gradewire_gateway.problems import invalid
from gradewire_gateway.wire.fields import object_of, text_of


def read(body: Mapping[str, Any]) -> Asked:
    """A request; raises ProblemError, which names the field."""
    if body.get("state") is None:
        raise invalid("state: is missing; it is what the questions are about", "state")
    questions = object_of(body.get("questions"), "questions")
    return Asked(
        model=text_of(body.get("model") or "", "model"),
        state=body["state"],
        at="state",
        questions=checked(tuple(_question(given, f"questions.{name}") for name, given in questions.items())),
    )


def written(asked: Asked, names: Mapping[str, Any], decisions: Decisions) -> dict[str, Any]:
    """The answer; `names` has the questions' names, in their order."""
    answers = {
        name: _answer(question, decided)
        for name, question, decided in zip(names, asked.questions, decisions.answers, strict=True)
    }
    usage = {"input_tokens": decisions.prompt_tokens, "output_tokens": 0}
    return {"model": decisions.model, "answers": answers, "usage": usage}


def _question(given: object, at: str) -> Question:
    question = object_of(given, at)
    kind = question.get("type")
    if kind not in list(QuestionType):
        raise invalid(f"{at}.type: takes {', '.join(QuestionType)}", f"{at}.type")
    options = _options(QuestionType(kind), question.get("criteria"), f"{at}.criteria")
    return Question(QuestionType(kind), at, instructions_of(question.get("instructions"), at), options)


def _options(kind: QuestionType, criteria: object, at: str) -> tuple[tuple[str, str], ...]:
    if kind is QuestionType.NOUL and criteria is None:
        return NOUL
    if isinstance(criteria, list):
        texts = [text_of(each, f"{at}[{index}]") for index, each in enumerate(criteria)]
        if kind is QuestionType.CHOICE:
            return tuple((text, "") for text in texts)
        options = tuple((str(number), text) for number, text in enumerate(texts))
    else:
        described = object_of(criteria, at)
        options = tuple((name, text_of(text or "", f"{at}.{name}")) for name, text in described.items())
    if kind is QuestionType.NOUL:
        by_label = dict(options)
        if by_label.keys() != dict(NOUL).keys():
            raise invalid(f'{at}: takes {{"false": TEXT, "true": TEXT}}', at)
        return tuple((label, by_label[label]) for label, _ in NOUL)
    return options


def _answer(question: Question, decided: Decided) -> dict[str, Any]:
    labels = [label for label, _ in question.options]
    probabilities = dict(zip(labels, decided.probabilities, strict=True))
    match question.kind:
        case QuestionType.NOUL:
            return {"type": "noul", "noul": decided.probabilities[1]}
        case QuestionType.CHOICE:
            return {
                "type": "choice",
                "choice": labels[decided.best],
                "probabilities": probabilities,
                "confidence": decided.choice_confidence,
            }
        case QuestionType.SCORE:
            return {
                "type": "score",
                "score": decided.level,
                "legend": dict(question.options),
                "probabilities": probabilities,
                "confidence": decided.score_confidence,
            }
