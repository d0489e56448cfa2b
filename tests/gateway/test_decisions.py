"""Typed questions in both forms, over a real socket before a scripted judge; and answers graded by `correctness`."""

import math
from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
from sparrow_decider import Decider
from tests.support.engines.correctness_fits import fit_text
from tests.support.engines.hash_engine import HashEngine
from tests.support.judges.scripted import choice
from tests.support.servers.gateway import RunningGateway, gateway_over
from tests.support.servers.wire import Wire, wire_server

from gradewire_gateway.decisions import Decided
from gradewire_proto.v1 import scoring_pb2, types_pb2
from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.judge import Choice, Choose

SYSTEM_ONE = "/v1/systemone"
QUESTIONS = {
    "refund": {"type": "noul", "instructions": "Is the user asking for money back?"},
    "intent": {
        "type": "choice",
        "instructions": "Primary intent?",
        "criteria": {"billing": "charges, invoices", "bug": "broken feature"},
    },
    "urgency": {"type": "score", "instructions": "How urgent?", "criteria": ["not urgent", "soon", "now"]},
}
STATE = "User: I was charged twice"
ANSWER = {"question": "Capital of France?", "references": ["Paris"], "answer": "It is Paris."}
RIGHT = {"right": {"type": "noul", "instructions": "Is the answer right?"}}

CHOICES, LEVELS = "questions[0].choices", "questions[0].levels"


def last(need: Choose) -> Choice:
    return choice(need, [*[1.0] * (len(need.options) - 1), 2.0])


@pytest.fixture
async def wire() -> AsyncIterator[Wire]:
    engine = HashEngine()
    engine.script.on_choose = last
    async with wire_server(engine=engine) as running:
        yield running


@pytest.fixture
async def gateway(wire: Wire) -> AsyncIterator[RunningGateway]:
    async with gateway_over(f"127.0.0.1:{wire.port}") as running:
        yield running


def form(value: Any) -> Any:
    """The shape of an answer: names and types, without what differs from model to model."""
    if isinstance(value, dict):
        return {name: form(each) for name, each in value.items()}
    return "number" if isinstance(value, (int, float)) else type(value).__name__


async def test_system_one_answers_as_a_decision_server_does(gateway: RunningGateway, wire: Wire) -> None:
    reply = (await gateway.post(SYSTEM_ONE, {"model": "default", "state": STATE, "questions": QUESTIONS})).json()
    assert reply["model"] == "scripted"
    assert reply["usage"]["input_tokens"] > 0
    answers = reply["answers"]
    assert answers["refund"] == {"type": "noul", "noul": pytest.approx(2 / 3)}
    assert answers["intent"]["choice"] == "bug"
    assert answers["intent"]["probabilities"] == {"billing": pytest.approx(1 / 3), "bug": pytest.approx(2 / 3)}
    assert answers["urgency"]["score"] == pytest.approx(0.25 + 2 * 0.5)
    assert answers["urgency"]["legend"] == {"0": "not urgent", "1": "soon", "2": "now"}
    assert form(answers) == form(Decider.load().ask(STATE, QUESTIONS)), "the same fields as a real decision server's"
    assert [need.options for need in wire.engine.script.asked] == [("A", "B"), ("A", "B"), ("A", "B", "C")]


def test_confidence_is_computed_as_decision_servers_do() -> None:
    answers = Decider.load().ask(STATE, QUESTIONS)
    for name in ("intent", "urgency"):
        decided = Decided(tuple(answers[name]["probabilities"].values()))
        ours = decided.choice_confidence if name == "intent" else decided.score_confidence
        assert math.isclose(ours, answers[name]["confidence"], abs_tol=2e-3), "theirs is rounded to four digits"
    assert math.isclose(Decided((0.5, 0, 0.5)).score_confidence, 0)
    assert math.isclose(Decided((0, 1)).choice_confidence, 1)


async def test_the_openai_client_gets_typed_decisions(gateway: RunningGateway) -> None:
    asked: list[Any] = [
        {"type": "predicate", "name": "p", "instructions": "Is it calm?"},
        {
            "type": "choice",
            "instructions": "Which?",
            "choices": [{"value": "red"}, {"value": True, "description": "none of them"}],
        },
        {"type": "score", "name": "s", "instructions": "How much?", "levels": [{"label": "low"}, {"label": "high"}]},
    ]
    base = f"http://127.0.0.1:{gateway.port}/v1"
    async with openai.AsyncOpenAI(base_url=base, api_key="any", max_retries=0) as client:
        reply = await client.decisions.create(model="default", input=STATE, questions=asked)
    predicate, chosen, score = reply.answers
    assert (predicate.type, predicate.name, predicate.probability) == ("predicate", "p", pytest.approx(2 / 3))
    assert (chosen.type, chosen.name, chosen.choice) == ("choice", None, True)
    assert [each.value for each in chosen.probabilities] == ["red", True]
    assert (score.type, score.score) == ("score", pytest.approx(2 / 3))
    assert [(each.label, each.value) for each in score.probabilities] == [("low", 0), ("high", 1)]
    assert reply.usage.total_tokens == reply.usage.input_tokens > 0


async def test_correctness_grades_an_answer(gateway: RunningGateway, wire: Wire) -> None:
    wire.engine.correctness["hash"] = fit_text(model_digest=wire.engine.digests["hash"])
    item = types_pb2.Item(question=ANSWER["question"], references=["Paris"], prediction="It is Paris.")
    spec = types_pb2.MetricSpec(correctness=types_pb2.CorrectnessParameters())
    scored = await wire.scoring.Score(scoring_pb2.ScoreRequest(items=[item], metrics=[spec]))
    expected = scored.items[0].results[0].score
    ours = await gateway.post(SYSTEM_ONE, {"model": "correctness", "state": ANSWER, "questions": RIGHT})
    assert ours.json()["answers"] == {"right": {"type": "noul", "noul": expected}}
    message = {"role": "user", "content": [{"type": "input_json", "data": ANSWER}]}
    predicate = {"type": "predicate", "instructions": "Is the answer right?"}
    theirs = await gateway.post("/v1/decisions", {"model": "correctness", "input": [message], "questions": [predicate]})
    assert theirs.json()["answers"] == [{"name": None, "type": "predicate", "probability": expected}]
    assert not wire.engine.script.asked, "no judge is asked"


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"state": None}, "state"),
        ({"questions": None}, "questions"),
        ({"questions": {}}, "questions"),
        ({"questions": {"q": 7}}, "questions.q"),
        ({"questions": {"q": {"type": "essay"}}}, "questions.q.type"),
        ({"questions": {"q": {"type": "noul"}}}, "questions.q.instructions"),
        ({"questions": {"q": {"type": "noul", "instructions": " "}}}, "questions.q.instructions"),
        ({"questions": {"q": {"type": "noul", "instructions": "x", "criteria": {"a": "b"}}}}, "questions.q.criteria"),
        ({"questions": {"q": {"type": "choice", "instructions": "x"}}}, "questions.q.criteria"),
        ({"questions": {"q": {"type": "choice", "instructions": "x", "criteria": ["a"]}}}, "questions.q"),
        ({"questions": {"q": {"type": "choice", "instructions": "x", "criteria": ["a", "a"]}}}, "questions.q"),
        ({"questions": {"q": {"type": "score", "instructions": "x", "criteria": ["a", 7]}}}, "questions.q.criteria[1]"),
        ({"model": "correctness", "state": "text"}, "state"),
        ({"model": "correctness", "state": {"references": "x", "answer": "y"}}, "state.references"),
        ({"model": "correctness", "state": {"references": ["x"]}}, "state.answer"),
        ({"model": "correctness", "state": {**ANSWER, "hint": 1}}, "state.hint"),
        ({"model": "correctness", "state": {**ANSWER, "references": []}}, "state"),
        (
            {"model": "correctness", "state": ANSWER, "questions": {"intent": QUESTIONS["intent"]}},
            "questions.intent.type",
        ),
    ],
)
async def test_what_cannot_be_answered_is_named(
    gateway: RunningGateway, wire: Wire, fields: dict[str, Any], field: str
) -> None:
    reply = await gateway.post(SYSTEM_ONE, {"state": STATE, "questions": RIGHT} | fields)
    assert (reply.status_code, reply.json()["field"]) == (400, field), reply.text
    assert not wire.engine.script.asked


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"input": None}, "input"),
        ({"input": [{"type": "function_call"}]}, "input[0].type"),
        ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "input[0].content[0].type"),
        ({"questions": {}}, "questions"),
        ({"questions": [{"type": "noul", "instructions": "x"}]}, "questions[0].type"),
        (
            {"questions": [{"type": "choice", "instructions": "x", "choices": [{"value": 7}]}]},
            "questions[0].choices[0].value",
        ),
        (
            {"questions": [{"type": "score", "instructions": "x", "levels": [{"label": True}]}]},
            "questions[0].levels[0].label",
        ),
    ],
)
async def test_what_the_other_form_cannot_take_is_named(
    gateway: RunningGateway, fields: dict[str, Any], field: str
) -> None:
    questions = [{"type": "predicate", "instructions": "Is it so?"}]
    reply = await gateway.post("/v1/decisions", {"input": STATE, "questions": questions} | fields)
    assert (reply.status_code, reply.json()["field"], reply.json()["error"]["param"]) == (400, field, field), reply.text


async def test_a_question_that_fails_is_an_error(gateway: RunningGateway, wire: Wire) -> None:
    wire.engine.script.failure = Failure(Status.UNAVAILABLE, "its process is down", retry_after_s=2.0)
    reply = await gateway.post(SYSTEM_ONE, {"state": STATE, "questions": RIGHT})
    assert (reply.status_code, reply.json()["code"], reply.headers["retry-after"]) == (503, "unavailable", "2")
    assert reply.json()["detail"] == "questions.right: its process is down"
