"""`auto` over a socket: two models in one request, each pinned and named, and few judge calls at a time."""

import asyncio
from typing import Any

import pytest
from tests.support.engines.cascade_fits import auto_fit_text, stored_auto_fit
from tests.support.engines.correctness_fits import fit_text
from tests.support.engines.hash_engine import HashEngine
from tests.support.judges.scripted import preferring
from tests.support.servers.handlers import handlers_over, planner_over
from tests.support.servers.wire import SMILE, Wire, item, request

from gradewire_proto.v1 import scoring_pb2, types_pb2
from gradewire_server.domain.items import Failure, Status
from gradewire_server.metrics.correctness.fit import fit_id
from gradewire_server.metrics.registry import REGISTRY
from gradewire_server.requests.errors import ModelReplacedError
from gradewire_server.scoring import program_runner

ITEMS = [item("The cat.", "the cat"), item("a dog, I think", "cat", "hound"), item("it may be a lion", "cat")]


def spec(**values: Any) -> types_pb2.MetricSpec:
    return types_pb2.MetricSpec(auto=types_pb2.AutoParameters(**values))


def give_fits(engine: HashEngine, **changes: Any) -> str:
    """Stores a fit of `correctness` and one of `auto` with the engine's model; returns the text of the latter."""
    digest = engine.digests["hash"]
    text = fit_text(model_digest=digest)
    engine.correctness["hash"] = text
    named = {
        "model_digest": digest,
        "judge_digest": engine.digests.get("scripted", "7" * 64),
        "correctness_fit": fit_id(text),
    }
    auto = auto_fit_text(**(named | changes))
    engine.auto["hash"] = (stored_auto_fit(auto, judge_model="scripted"),)
    return auto


async def score(wire: Wire, *metrics: types_pb2.MetricSpec) -> scoring_pb2.ScoreResponse:
    reply: scoring_pb2.ScoreResponse = await wire.scoring.Score(request(*ITEMS, metrics=metrics))
    return reply


async def test_one_request_asks_whoever_is_needed_and_says_so(wire: Wire) -> None:
    give_fits(wire.engine)
    wire.engine.script.on_choose = preferring("correct")
    reply = await score(wire, SMILE, spec())
    matched, *others = [each.results[1] for each in reply.items]
    assert (matched.score, matched.correct, matched.auto.decided_by) == (1.0, True, "exact_match")
    assert not matched.auto.HasField("probability")
    for result in others:
        assert result.status == types_pb2.STATUS_OK
        assert (result.auto.decided_by, result.auto.reason) == ("judge", "band")
        assert (result.auto.judge_status, result.auto.judge_score) == ("OK", result.score)
        assert result.auto.HasField("probability")
    assert len(wire.engine.script.asked) == 2


async def test_the_provenance_names_both_models_and_asks_for_the_same_again(wire: Wire) -> None:
    text = give_fits(wire.engine)
    reply = await score(wire, spec(judge_budget=1.0, sample=0.5))
    (told,) = reply.provenance
    encoder, judge = wire.engine.digests["hash"], wire.engine.digests["scripted"]
    assert (told.model, told.model_digest, told.judge_model, told.judge_digest) == ("hash", encoder, "scripted", judge)
    assert told.prompt.startswith("lave/")
    assert told.line == (
        f"auto/1?caption=false&fit={fit_id(text)}&judge=lave&judge_budget=1.0&judge_model=scripted@{judge[:12]}"
        f"&model=hash@{encoder[:12]}&sample=0.5&sample_seed=0"
    )
    assert told.calibration == "user: fitted on ten rows"
    again = await score(wire, told.metric)
    assert list(again.provenance) == [told]
    assert [each.results[0].score for each in again.items] == [each.results[0].score for each in reply.items]


async def test_without_a_fit_the_status_says_what_to_run(wire: Wire) -> None:
    wire.engine.correctness["hash"] = fit_text(model_digest=wire.engine.digests["hash"])
    result = (await score(wire, spec())).items[0].results[0]
    assert result.status == types_pb2.STATUS_INVALID_PARAMETER
    assert "has no fit for auto with lave and the judge scripted" in result.message
    assert "gradewire calibrate FILE --metric auto" in result.message


async def test_a_judge_that_is_not_here_fails_the_metric_alone(wire: Wire) -> None:
    give_fits(wire.engine)
    reply = await score(wire, spec(judge_model="other"), SMILE)
    refused, scored = reply.items[0].results
    assert refused.status == types_pb2.STATUS_MODEL_UNAVAILABLE
    assert "metrics[0].auto.judge_model: there is no judge 'other' here" in refused.message
    assert scored.status == types_pb2.STATUS_OK


@pytest.mark.parametrize(
    ("changes", "values", "planned"),
    [
        ({"asked_below": None}, {}, True),
        ({"asked_below": None}, {"judge_budget": 1.0}, True),
        ({}, {"judge_budget": 0.0}, True),
        ({}, {}, False),
        ({"asked_below": None}, {"sample": 0.5}, False),
        ({"asked_below": None}, {"judge_model": "scripted"}, False),
    ],
)
async def test_without_a_judge_what_asks_none_is_scored(
    changes: dict[str, Any],
    values: dict[str, Any],
    planned: bool,  # noqa: FBT001 - both cases
) -> None:
    """A fit that refuses the judge, or a budget of nothing: nobody has to build a judge for that."""
    engine = HashEngine(judges=())
    give_fits(engine, **changes)
    handlers = handlers_over(engine)
    plan = planner_over(engine, REGISTRY).plan([SMILE, spec(**values)], "metrics")[1]
    assert isinstance(plan.request, Failure) is not planned
    if planned:
        assert plan.provenance.judge_model == ""
        assert "judge_model" not in plan.provenance.line
        reply = await handlers.score(request(*ITEMS, metrics=[plan.provenance.metric]))
        assert {each.results[0].status for each in reply.items} == {types_pb2.STATUS_OK}
        assert not any(each.results[0].auto.judge_status for each in reply.items)
    else:
        assert isinstance(plan.request, Failure)
        assert plan.request.status is Status.MODEL_UNAVAILABLE
        assert "judge_model" in plan.request.message


def test_a_replaced_judge_ends_a_stream() -> None:
    engine = HashEngine()
    give_fits(engine)
    planner = planner_over(engine, REGISTRY)
    plans = planner.plan([spec()], "metrics")
    assert plans[0].judged
    planner.check_models(plans)
    engine.digests["scripted"] = "9" * 64
    with pytest.raises(ModelReplacedError, match="model scripted was replaced"):
        planner.check_models(plans)


async def test_no_more_judge_calls_are_under_way_than_may_be(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its programs embed first, so all of them are started at once, and all may want the judge at the same time."""
    monkeypatch.setattr(program_runner, "MAX_JUDGE_CALLS", 3)
    give_fits(wire.engine)
    under_way, most = 0, 0
    full = asyncio.Event()
    choose = wire.engine.choose

    async def counted(need: Any, *, deadline_s: float | None = None) -> Any:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        if under_way == 3:
            full.set()
        try:
            await full.wait()
            return await choose(need, deadline_s=deadline_s)
        finally:
            under_way -= 1

    monkeypatch.setattr(wire.engine, "choose", counted)
    items = [item(f"it may be lion {number}", "cat") for number in range(40)]
    reply = await wire.scoring.Score(request(*items, metrics=[spec()]))
    assert [each.results[0].auto.decided_by for each in reply.items] == ["judge"] * 40
    assert most == 3
