"""Metrics of a judge on their way from the wire: judges resolved and pinned, prompts named and never written out."""

import hashlib
import threading
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib.resources import files
from typing import Any
from unittest import mock

import pytest
from tests.support.engines.hash_engine import HashEngine, ListedModels
from tests.support.servers.handlers import handlers_over, planner_over
from tests.support.servers.wire import EXACT, SMILE, item, request

from gradewire_proto.choices import JudgeGuard, ShownReferences
from gradewire_proto.v1 import types_pb2
from gradewire_server.domain.items import Failure, Item, MetricResult, Status
from gradewire_server.domain.judge import Choose, JudgePrompt, Role, Turn
from gradewire_server.domain.metric import ParameterError, Parameters
from gradewire_server.domain.needs import ask
from gradewire_server.domain.ports import ModelStatus
from gradewire_server.metrics.prompts.library import PACKAGE_PROMPTS
from gradewire_server.metrics.prompts.prompt_file import PromptFile
from gradewire_server.metrics.registry import REGISTRY
from gradewire_server.requests.errors import InvalidRequestError, ModelReplacedError, NothingLoadedError
from gradewire_server.requests.plan import Planner
from gradewire_server.scoring import MetricRequest

DIGEST = hashlib.sha256(b"scripted").hexdigest()
PROMPT_DIGEST = hashlib.sha256(b"prompt").hexdigest()
read = 0


class Value(StrEnum):
    MOST_PROBABLE = "most_probable"
    EXPECTED = "expected"


@dataclass(frozen=True, slots=True)
class LikenessParameters(Parameters):
    model: str = ""
    value: Value = Value.EXPECTED
    prompt: str = ""
    caption: bool = False
    references: ShownReferences = ShownReferences.AUTO
    guard: JudgeGuard = JudgeGuard.NONE

    def __post_init__(self) -> None:
        global read  # noqa: PLW0603 - how often a prompt is read is what a test asks
        read += 1
        if self.prompt == "bad":
            raise ParameterError("prompt", "not one that is known here")
        if not self.prompt:
            object.__setattr__(self, "prompt", f"likeness/1@{PROMPT_DIGEST}")

    @property
    def prompt_name(self) -> str:
        return "likeness/1"

    @property
    def prompt_digest(self) -> str:
        return PROMPT_DIGEST


class Likeness:
    """A judge metric that needs nothing of the real ones; on the wire it is judge_similarity."""

    info = replace(
        REGISTRY["exact_match"].info, name="judge_similarity", version=7, needs_judge=True, advice="smile agrees better"
    )
    parameters_type = LikenessParameters

    def score(self, item: Item, parameters: LikenessParameters, metadata: Any) -> Any:
        del metadata
        prompt = JudgePrompt((Turn(Role.SYSTEM, "Compare."),), lead="", prediction=item.prediction)
        choice = yield from ask(Choose(parameters.model, prompt, ("0", "1")))
        return MetricResult.failed(choice) if isinstance(choice, Failure) else MetricResult(choice.probabilities[1])

    def prepare(self, entry: Any, parameters: Any) -> Any:
        raise NotImplementedError


METRICS: dict[str, Any] = {**REGISTRY, "judge_similarity": Likeness()}


def likeness(**fields: Any) -> types_pb2.MetricSpec:
    return types_pb2.MetricSpec(judge_similarity=types_pb2.JudgeSimilarityParameters(**fields))


def planner(*judges: str) -> Planner:
    return planner_over(HashEngine(judges=judges or ("scripted", "other")), METRICS)


def judge_named(model: str) -> ModelStatus:
    context = handlers_over(HashEngine(judges=("scripted", "other")), metrics=METRICS).context
    return context.judge(model, "generate.model")


def test_provenance_names_judge_and_prompt_and_can_be_sent_back() -> None:
    (plan,) = planner().plan([likeness()], "metrics")
    assert isinstance(plan.request, MetricRequest)
    assert plan.request.parameters.model == f"scripted@{DIGEST}"
    provenance = plan.provenance
    assert (provenance.model, provenance.model_digest) == ("scripted", DIGEST)
    assert (provenance.prompt, provenance.prompt_digest) == ("likeness/1", PROMPT_DIGEST)
    assert provenance.line == (
        f"judge_similarity/7?caption=false&guard=none&model=scripted@{DIGEST[:12]}&prompt=likeness/1@{PROMPT_DIGEST[:12]}"
        "&references=auto&value=expected"
    )
    (again,) = planner().plan([provenance.metric], "metrics")
    assert again.provenance == provenance


def test_a_line_never_holds_a_whole_prompt() -> None:
    text = 'format = 1\nname = "mine"\n' * 1000
    (plan,) = planner().plan([likeness(prompt=text)], "metrics")
    assert plan.provenance.metric.judge_similarity.prompt == text
    assert "prompt=likeness/1@" in plan.provenance.line
    assert len(plan.provenance.line) < 200


def test_an_inline_prompt_is_read_once_however_often_it_comes() -> None:
    mine = planner()
    spec = likeness(prompt="x" * 65_536)
    before = read
    plans = [mine.plan([spec], "metrics") for _ in range(20)]
    assert read - before <= 2
    assert all(plan == plans[0] for plan in plans)


def test_what_is_remembered_of_prompts_is_bounded() -> None:
    mine = planner()
    for number in range(200):
        mine.plan([likeness(prompt=f"{number} " + "x" * 60_000)], "metrics")
    held = sum(len(key[0]) for key in mine._cache)
    assert held == mine._cache_bytes
    assert held <= 4 << 20


@pytest.mark.parametrize("model", ["", "scripted", f"scripted@{DIGEST[:8]}", f"scripted@{DIGEST.upper()}"])
def test_a_judge_is_found_by_name_and_digest(model: str) -> None:
    (plan,) = planner().plan([likeness(model=model)], "metrics")
    assert plan.provenance.model == "scripted"
    assert judge_named(model).digest == DIGEST


@pytest.mark.parametrize(
    ("model", "status"),
    [
        ("scripted@00000000", Status.MODEL_UNAVAILABLE),
        ("hash", Status.MODEL_UNAVAILABLE),  # an encoder is no judge
        ("scripted@xyz", Status.INVALID_PARAMETER),
    ],
)
def test_what_is_no_judge_fails_its_metric_and_says_why(model: str, status: Status) -> None:
    plan, other = planner().plan([likeness(model=model), SMILE], "metrics")
    assert isinstance(plan.request, Failure)
    assert plan.request.status is status
    assert plan.request.message.startswith("metrics[0].judge_similarity.model: ")
    assert isinstance(other.request, MetricRequest)
    expected = InvalidRequestError if status is Status.INVALID_PARAMETER else NothingLoadedError
    with pytest.raises(expected, match=r"^generate\.model: (?!generate)"):
        judge_named(model)


def test_a_judge_is_no_encoder() -> None:
    spec = types_pb2.MetricSpec(smile=types_pb2.SmileParameters(model="scripted"))
    plan, _ = planner().plan([spec, EXACT], "metrics")
    assert isinstance(plan.request, Failure)


async def test_without_a_judge_the_call_fails_only_where_nothing_else_is_asked_for() -> None:
    ports = replace(HashEngine().ports, judge_models=ListedModels(tuple, "judge_backend is none"))
    mine = Planner(ports, METRICS, PACKAGE_PROMPTS)
    with pytest.raises(NothingLoadedError, match=r"judge_backend is none.*Available models: hash"):
        mine.plan([likeness()], "metrics")
    reply = await handlers_over(ports=ports, metrics=METRICS).list_models()
    listed = {metric.name: metric for metric in reply.metrics}
    assert not listed["judge_similarity"].available
    assert listed["judge_similarity"].missing == "judge_backend is none"
    assert listed["smile"].available


async def test_judges_and_their_metrics_are_listed_with_what_to_know_of_them() -> None:
    reply = await handlers_over(metrics=METRICS).list_models()
    kinds = {model.name: (model.kind, list(model.remarks), model.is_default) for model in reply.models}
    assert kinds == {
        "hash": ("encoder", [], True),
        "words": ("grader", [], True),
        "scripted": ("judge", ["says what a test wrote"], True),
    }
    listed = {metric.name: metric for metric in reply.metrics}["judge_similarity"]
    assert (listed.needs_judge, listed.needs_model, listed.available) == (True, False, True)
    assert listed.advice == "smile agrees better"


def test_a_bad_prompt_fails_its_metric_alone() -> None:
    bad, good = planner().plan([likeness(prompt="bad"), SMILE], "metrics")
    assert isinstance(bad.request, Failure)
    assert bad.request.message == "metrics[0].judge_similarity.prompt: not one that is known here"
    assert isinstance(good.request, MetricRequest)


async def test_a_judge_that_was_replaced_ends_the_stream_that_named_it() -> None:
    engine = HashEngine()
    planning = planner_over(engine, METRICS)
    plans = planning.plan([likeness()], "metrics")
    planning.check_models(plans)
    engine.digests["scripted"] = "0" * 64
    with pytest.raises(ModelReplacedError, match="scripted was replaced"):
        planning.check_models(plans)


async def test_a_mixed_request_is_answered_with_provenance_of_both() -> None:
    engine = HashEngine()
    handlers = handlers_over(engine, metrics=METRICS)
    reply = await handlers.score(request(item("cat"), item("dog"), metrics=(SMILE, likeness())))
    assert [provenance.model for provenance in reply.provenance] == ["hash", "scripted"]
    assert [[result.status for result in each.results] for each in reply.items] == [[types_pb2.STATUS_OK] * 2] * 2
    again = await handlers.score(request(item("cat"), metrics=(likeness(),)))
    assert again.items[0].results[0].score == reply.items[0].results[1].score
    assert again.items[0].results[0].cache_hits.memory == 1


async def test_long_prompt_files_are_read_while_others_have_their_turn() -> None:
    own = (files("gradewire_server.metrics.prompts") / "lave-2.toml").read_text()
    comments = "".join(f"# {number} {'x' * 90}\n" for number in range(400))
    inline = comments + own.replace('name = "lave"', 'name = "mine"')
    spec = types_pb2.MetricSpec(lave=types_pb2.LaveParameters(prompt=inline))
    engine = HashEngine()
    threads: set[str] = set()

    def find(metric: str, prompt: str) -> PromptFile:
        threads.add(threading.current_thread().name)
        return read_file(metric, prompt)

    read_file = PACKAGE_PROMPTS.find
    with mock.patch.object(PACKAGE_PROMPTS, "find", find):
        reply = await handlers_over(engine).score(request(item("cat"), metrics=(spec,)))
    assert reply.provenance[0].prompt == "mine/2"
    assert reply.items[0].results[0].status == types_pb2.STATUS_OK
    assert len(threads) == 2  # read on one of the pool, found on ours
