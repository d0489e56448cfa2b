"""The form of ``/v1/decisions``, as the types of openai 3.57 have it.

{model, input, questions: [{type, name, instructions, …}]} -> {model, answers: [{type, name, …}], usage}
"""

from collections.abc import Mapping
from typing import Any, Final

from gradewire_gateway.decisions.asked import Asked, checked, instructions_of
from gradewire_gateway.decisions.questions import NOUL, Decided, Decisions, Question, QuestionType
from gradewire_gateway.problems import invalid
from gradewire_gateway.wire.fields import list_of, object_of, text_of

_PREDICATE: Final = "predicate"
_TEXT_PARTS: Final = ("input_text", "output_text")


def read(body: Mapping[str, Any]) -> Asked:
    """A request; raises ProblemError, which names the field."""
    questions = list_of(body.get("questions"), "questions")
    return Asked(
        model=text_of(body.get("model") or "", "model"),
        state=_state(body.get("input")),
        at="input",
        questions=checked(tuple(_question(given, f"questions[{index}]") for index, given in enumerate(questions))),
    )


def written(asked: Asked, given: list[Any], decisions: Decisions) -> dict[str, Any]:
    """The answer; `given` has the questions as they came."""
    return {
        "model": decisions.model,
        "answers": [
            _answer(question, one, decided)
            for question, one, decided in zip(asked.questions, given, decisions.answers, strict=True)
        ],
        "usage": {
            "input_tokens": decisions.prompt_tokens,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": 0,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": decisions.prompt_tokens,
        },
    }


def _state(given: object) -> Any:
    """A text, or one value of JSON where that is all there is."""
    if isinstance(given, str):
        return text_of(given, "input")
    shown: list[Any] = []
    for index, each in enumerate(list_of(given, "input")):
        message = object_of(each, f"input[{index}]")
        if message.get("type", "message") != "message":
            raise invalid(f"input[{index}].type: takes message; other kinds are not read here", f"input[{index}].type")
        shown += _parts(message.get("content"), f"input[{index}].content")
    if len(shown) == 1:
        return shown[0]
    if not all(isinstance(part, str) for part in shown):
        raise invalid("input: takes one part of JSON, or texts", "input")
    return "\n".join(shown)


def _parts(content: object, at: str) -> list[Any]:
    if isinstance(content, str):
        return [text_of(content, at)]
    found: list[Any] = []
    for index, each in enumerate(list_of(content, at)):
        part = object_of(each, f"{at}[{index}]")
        if part.get("type") in _TEXT_PARTS:
            found.append(text_of(part.get("text"), f"{at}[{index}].text"))
        elif part.get("type") == "input_json" and part.get("data") is not None:
            found.append(part["data"])
        else:
            raise invalid(f"{at}[{index}].type: takes input_text or input_json", f"{at}[{index}].type")
    return found


def _question(given: object, at: str) -> Question:
    question = object_of(given, at)
    instructions = instructions_of(question.get("instructions"), at)
    match question.get("type"):
        case "predicate":
            return Question(QuestionType.NOUL, at, instructions, NOUL)
        case "choice":
            return Question(QuestionType.CHOICE, at, instructions, _named(question, "choices", "value", at))
        case "score":
            return Question(QuestionType.SCORE, at, instructions, _named(question, "levels", "label", at))
    raise invalid(f"{at}.type: takes predicate, choice, score", f"{at}.type")


def _named(question: Mapping[str, Any], name: str, key: str, at: str) -> tuple[tuple[str, str], ...]:
    options = []
    for index, each in enumerate(list_of(question.get(name), f"{at}.{name}")):
        path = f"{at}.{name}[{index}]"
        option = object_of(each, path)
        value = option.get(key)
        label = str(value).lower() if isinstance(value, bool) and name == "choices" else text_of(value, f"{path}.{key}")
        options.append((label, text_of(option.get("description") or "", f"{path}.description")))
    return tuple(options)


def _answer(question: Question, given: Mapping[str, Any], decided: Decided) -> dict[str, Any]:
    named: dict[str, Any] = {"name": given.get("name")}
    match question.kind:
        case QuestionType.NOUL:
            return named | {"type": _PREDICATE, "probability": decided.probabilities[1]}
        case QuestionType.CHOICE:
            values = [choice["value"] for choice in given["choices"]]
            return named | {
                "type": "choice",
                "choice": values[decided.best],
                "confidence": decided.choice_confidence,
                "probabilities": [
                    {"value": value, "probability": share}
                    for value, share in zip(values, decided.probabilities, strict=True)
                ],
            }
        case QuestionType.SCORE:
            return named | {
                "type": "score",
                "score": decided.level,
                "confidence": decided.score_confidence,
                "probabilities": [
                    {"label": label, "value": number, "probability": share}
                    for number, ((label, _), share) in enumerate(
                        zip(question.options, decided.probabilities, strict=True)
                    )
                ],
            }
