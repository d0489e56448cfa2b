"""Typed questions and their answers with probabilities: ``POST /v1/systemone`` and ``POST /v1/decisions``."""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from gradewire_gateway.body import Body
from gradewire_gateway.gateway import Gateway
from gradewire_gateway.json_methods import Endpoint, call_unary, json_body
from gradewire_gateway.problems import check_ok, invalid
from gradewire_gateway.upstream import CallOptions
from gradewire_gateway.wire import DEFAULT_MODEL, Buffer, list_of, method_at, object_of, read_object, text_of
from gradewire_proto.v1 import judging_pb2, scoring_pb2, types_pb2
from gradewire_proto.wire_rules import JUDGING, SCORING

MAX_QUESTIONS: Final = 64
MAX_OPTIONS: Final = 26
NOUL: Final = (("false", "the statement does not hold for the state"), ("true", "the statement holds for the state"))

_KEYS: Final = {"question", "references", "answer"}
_TEXT_PARTS: Final = ("input_text", "output_text")
CORRECTNESS: Final = "correctness"
SYSTEM_ONE_PATH: Final = "/v1/systemone"
DECISIONS_PATH: Final = "/v1/decisions"


class QuestionType(StrEnum):
    """The type of a question."""

    NOUL = "noul"
    CHOICE = "choice"
    SCORE = "score"


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a state, with a label and a description for each option.

    A score's options are its levels, lowest first. `at` is the question's path in the request, for error messages.
    """

    kind: QuestionType
    at: str
    instructions: str
    options: tuple[tuple[str, str], ...]

    def to_message(self) -> judging_pb2.DecisionQuestion:
        """Return the question for a request to the server."""
        options = [judging_pb2.DecisionOption(label=label, description=text) for label, text in self.options]
        return judging_pb2.DecisionQuestion(instructions=self.instructions, options=options)


@dataclass(frozen=True, slots=True)
class Decided:
    """The probabilities of a question's options, in the options' order and with a sum of 1."""

    probabilities: tuple[float, ...]

    @property
    def best(self) -> int:
        """The index of the first option with the highest probability."""
        return max(range(len(self.probabilities)), key=self.probabilities.__getitem__)

    @property
    def level(self) -> float:
        """The mean level, weighted by probability. The lowest level counts as 0, the next one as 1, and so on."""
        return math.fsum(number * share for number, share in enumerate(self.probabilities))

    @property
    def choice_confidence(self) -> float:
        """The confidence in the best option, from 0 (all options are equally probable) to 1 (one option is certain)."""
        count = len(self.probabilities)
        return (count * self.probabilities[self.best] - 1) / (count - 1)

    @property
    def score_confidence(self) -> float:
        """The confidence in the mean level, 1 - S / H. S is the level's standard deviation, and H is half the scale.

        The confidence is 0 if the lowest and the highest level each have probability 0.5.
        """
        mean = self.level
        variance = math.fsum((number - mean) ** 2 * share for number, share in enumerate(self.probabilities))
        return 1 - math.sqrt(variance) / ((len(self.probabilities) - 1) / 2)


@dataclass(frozen=True, slots=True)
class Decisions:
    """The answers to a request's questions, in the questions' order. `prompt_tokens` is 0 if the number is unknown."""

    model: str
    answers: Sequence[Decided]
    prompt_tokens: int


@dataclass(frozen=True, slots=True)
class DecisionRequest:
    """Questions about a state, for a judge or the metric `correctness`. The state is any JSON value."""

    model: str
    state: Any
    at: str
    questions: tuple[Question, ...]

    def text(self) -> str:
        """Return the state as the string that a judge sees."""
        return self.state if isinstance(self.state, str) else json.dumps(self.state, ensure_ascii=False)

    def item(self) -> types_pb2.Item:
        """Return the item to grade from the state ``{"question", "references", "answer"}``. "question" may be missing.

        Raises:
            ProblemError: The state has a different format.
        """
        state = object_of(self.state, self.at)
        if unknown := sorted(state.keys() - _KEYS):
            named = f"{self.at}.{unknown[0][:80]}"
            raise invalid(f"{named}: does not exist; the fields are {', '.join(sorted(_KEYS))}", named)
        references = list_of(state.get("references"), f"{self.at}.references")
        return types_pb2.Item(
            question=text_of(state.get("question", ""), f"{self.at}.question"),
            references=[text_of(each, f"{self.at}.references[{index}]") for index, each in enumerate(references)],
            prediction=text_of(state.get("answer"), f"{self.at}.answer"),
        )


def instructions_of(given: object, at: str) -> str:
    """Return a question's instructions; raise ProblemError if they are blank or not a string."""
    text = text_of(given, f"{at}.instructions")
    if not text.strip():
        raise invalid(f"{at}.instructions: must not be blank", f"{at}.instructions")
    return text


def _request(body: Mapping[str, Any], state: object, at: str, read: Iterable[Question]) -> DecisionRequest:
    """Return the request; raise ProblemError for a wrong number of questions or options, or for a repeated label."""
    questions = tuple(read)
    if not 1 <= len(questions) <= MAX_QUESTIONS:
        raise invalid(f"questions: give 1 to {MAX_QUESTIONS} questions, not {len(questions)}", "questions")
    for question in questions:
        labels = [label for label, _ in question.options]
        if not 2 <= len(labels) <= MAX_OPTIONS:
            raise invalid(f"{question.at}: give 2 to {MAX_OPTIONS} options, not {len(labels)}", question.at)
        if len(set(labels)) < len(labels):
            raise invalid(f"{question.at}: two options have the same label", question.at)
    return DecisionRequest(text_of(body.get("model") or "", "model"), state, at, questions)


def read_openai(body: Mapping[str, Any]) -> DecisionRequest:
    """Return the request from a body in OpenAI's format; raise ProblemError for an invalid body."""
    questions = list_of(body.get("questions"), "questions")
    read = (_openai_question(given, f"questions[{index}]") for index, given in enumerate(questions))
    return _request(body, _state(body.get("input")), "input", read)


def write_openai(request: DecisionRequest, given: list[Any], decisions: Decisions) -> dict[str, Any]:
    """Return the reply in OpenAI's format. `given` contains the posted questions."""
    return {
        "model": decisions.model,
        "answers": [
            _openai_answer(question, one, decided)
            for question, one, decided in zip(request.questions, given, decisions.answers, strict=True)
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
    """Return the input's joined text parts, or its single JSON part."""
    if isinstance(given, str):
        return text_of(given, "input")
    parts: list[Any] = []
    for index, each in enumerate(list_of(given, "input")):
        message = object_of(each, f"input[{index}]")
        if message.get("type", "message") != "message":
            raise invalid(f"input[{index}].type: must be message", f"input[{index}].type")
        parts += _parts(message.get("content"), f"input[{index}].content")
    if len(parts) == 1:
        return parts[0]
    if not all(isinstance(part, str) for part in parts):
        raise invalid("input: must contain either a single input_json part or only text parts", "input")
    return "\n".join(parts)


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
            raise invalid(f"{at}[{index}].type: must be input_text, or input_json with data", f"{at}[{index}].type")
    return found


def _openai_question(given: object, at: str) -> Question:
    question = object_of(given, at)
    instructions = instructions_of(question.get("instructions"), at)
    match question.get("type"):
        case "predicate":
            return Question(QuestionType.NOUL, at, instructions, NOUL)
        case "choice":
            return Question(QuestionType.CHOICE, at, instructions, _named(question, "choices", "value", at))
        case "score":
            return Question(QuestionType.SCORE, at, instructions, _named(question, "levels", "label", at))
    raise invalid(f"{at}.type: must be predicate, choice or score", f"{at}.type")


def _named(question: Mapping[str, Any], name: str, key: str, at: str) -> tuple[tuple[str, str], ...]:
    options = []
    for index, each in enumerate(list_of(question.get(name), f"{at}.{name}")):
        path = f"{at}.{name}[{index}]"
        option = object_of(each, path)
        value = option.get(key)
        label = str(value).lower() if isinstance(value, bool) and name == "choices" else text_of(value, f"{path}.{key}")
        options.append((label, text_of(option.get("description") or "", f"{path}.description")))
    return tuple(options)


def _openai_answer(question: Question, given: Mapping[str, Any], decided: Decided) -> dict[str, Any]:
    named = {"name": given.get("name")}
    shares = decided.probabilities
    match question.kind:
        case QuestionType.NOUL:
            return named | {"type": "predicate", "probability": shares[1]}
        case QuestionType.CHOICE:
            labels = [choice["value"] for choice in given["choices"]]
            listed = [{"value": value, "probability": share} for value, share in zip(labels, shares, strict=True)]
        case QuestionType.SCORE:
            labels = [label for label, _ in question.options]
            listed = [
                {"label": label, "value": number, "probability": share}
                for number, (label, share) in enumerate(zip(labels, shares, strict=True))
            ]
    return named | _verdict(question.kind, labels, decided) | {"probabilities": listed}


def _verdict(kind: QuestionType, labels: Sequence[Any], decided: Decided) -> dict[str, Any]:
    """Return the members that both formats share in the answer to a question of type choice or score."""
    if kind is QuestionType.CHOICE:
        return {"type": "choice", "choice": labels[decided.best], "confidence": decided.choice_confidence}
    return {"type": "score", "score": decided.level, "confidence": decided.score_confidence}


def read_system_one(body: Mapping[str, Any]) -> DecisionRequest:
    """Return the request from a System One body; raise ProblemError for an invalid body."""
    if body.get("state") is None:
        raise invalid("state: is missing; send the state that the questions are about", "state")
    questions = object_of(body.get("questions"), "questions")
    read = (_system_one_question(given, f"questions.{name}") for name, given in questions.items())
    return _request(body, body["state"], "state", read)


def write_system_one(request: DecisionRequest, names: Mapping[str, Any], decisions: Decisions) -> dict[str, Any]:
    """Return the System One reply. The keys of `names` are the questions' names, in order."""
    answers = {
        name: _system_one_answer(question, decided)
        for name, question, decided in zip(names, request.questions, decisions.answers, strict=True)
    }
    usage = {"input_tokens": decisions.prompt_tokens, "output_tokens": 0}
    return {"model": decisions.model, "answers": answers, "usage": usage}


def _system_one_question(given: object, at: str) -> Question:
    question = object_of(given, at)
    kind = question.get("type")
    if kind not in list(QuestionType):
        raise invalid(f"{at}.type: must be one of {', '.join(QuestionType)}", f"{at}.type")
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
            raise invalid(f'{at}: must be {{"false": TEXT, "true": TEXT}}', at)
        return tuple((label, by_label[label]) for label, _ in NOUL)
    return options


def _system_one_answer(question: Question, decided: Decided) -> dict[str, Any]:
    if question.kind is QuestionType.NOUL:
        return {"type": "noul", "noul": decided.probabilities[1]}
    labels = [label for label, _ in question.options]
    answer = _verdict(question.kind, labels, decided)
    answer["probabilities"] = dict(zip(labels, decided.probabilities, strict=True))
    return answer | ({"legend": dict(question.options)} if question.kind is QuestionType.SCORE else {})


async def decide(gateway: Gateway, request: DecisionRequest, options: CallOptions, body: Body) -> Decisions:
    """Return the answers to all of a request's questions.

    Raises:
        ProblemError: The call has failed, or a question could not be answered.
        DisconnectedError: The caller has disconnected.
    """
    if request.model == CORRECTNESS:
        return await _graded(gateway, request, options, body)
    message = judging_pb2.DecideRequest(
        model="" if request.model == DEFAULT_MODEL else request.model,
        state=request.text(),
        questions=[question.to_message() for question in request.questions],
    )
    reply = await call_unary(gateway, method_at(f"/{JUDGING}/Decide"), message, options, body)
    assert isinstance(reply, judging_pb2.DecideResponse)  # noqa: S101 - for mypy
    for question, decision in zip(request.questions, reply.decisions, strict=True):
        check_ok(decision, question.at)
    answers = [Decided(tuple(decision.probabilities)) for decision in reply.decisions]
    return Decisions(reply.model, answers, sum(decision.prompt_tokens for decision in reply.decisions))


async def _graded(gateway: Gateway, request: DecisionRequest, options: CallOptions, body: Body) -> Decisions:
    for question in request.questions:
        if question.kind is not QuestionType.NOUL:
            detail = f"{question.at}.type: {question.kind} does not work with correctness; name a judge in model"
            raise invalid(detail, f"{question.at}.type")
    message = scoring_pb2.ScoreRequest(
        items=[request.item()],
        metrics=[types_pb2.MetricSpec(correctness=types_pb2.CorrectnessParameters())],
        omit_diagnostics=True,
    )
    reply = await call_unary(gateway, method_at(f"/{SCORING}/Score"), message, options, body)
    assert isinstance(reply, scoring_pb2.ScoreResponse)  # noqa: S101 - for mypy
    (result,) = reply.items[0].results
    check_ok(result, request.at)
    answer = Decided((1 - result.score, result.score))
    return Decisions(CORRECTNESS, [answer] * len(request.questions), 0)


def decision_endpoint(
    gateway: Gateway,
    read: Callable[[Mapping[str, Any]], DecisionRequest],
    write: Callable[[DecisionRequest, Any, Decisions], dict[str, Any]],
) -> Endpoint:
    """Return the endpoint for one format, given that format's functions `read_…` and `write_…` in this module."""

    def read_both(data: Buffer) -> tuple[dict[str, Any], DecisionRequest]:
        given = read_object(data)
        return given, read(given)

    async def answer(request: Request) -> Response:
        async with json_body(gateway, request, read_both) as ((given, asked), options, body):
            decisions = await decide(gateway, asked, options, body)
        return JSONResponse(write(asked, given["questions"], decisions))

    return answer
