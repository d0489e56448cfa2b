"""Needs for a judge: never in the way of embeddings, each resumed by itself, merged where equal, few at a time."""

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from tests.support.engines.hash_engine import HashEngine
from tests.support.judges.scripted import preferring, saying

from gradewire_server.domain.items import CacheHits, Failure, Item, MetricResult, ScoredResult, Status, Timing
from gradewire_server.domain.judge import Choose, Generate, JudgePrompt, Role, Turn
from gradewire_server.domain.metric import NO_MODEL, Parameters
from gradewire_server.domain.needs import Embed, Tier, ask
from gradewire_server.metrics.registry import REGISTRY
from gradewire_server.scoring import MetricRequest, Scorer, program_runner

FIXED = (Turn(Role.SYSTEM, "Grade."), Turn(Role.USER, "right?"), Turn(Role.ASSISTANT, "yes"))


def prompt(text: str) -> JudgePrompt:
    return JudgePrompt(FIXED, lead="Answer: ", prediction=text, opening="Verdict:")


@dataclass(frozen=True, slots=True)
class JudgeOnly(Parameters):
    model: str = "scripted"
    reasons: bool = False


class Verdict:
    """Probability of yes; with a reason first where that is asked for."""

    info = replace(REGISTRY["exact_match"].info, name="verdict", needs_judge=True)
    parameters_type = JudgeOnly

    def score(self, item: Item, parameters: JudgeOnly, metadata: Any) -> Any:
        del metadata
        shown = prompt(item.prediction)
        if parameters.reasons:
            reason = yield from ask(Generate(parameters.model, shown, 8))
            if isinstance(reason, Failure):
                return MetricResult.failed(reason)
            shown = replace(shown, opening=f"{reason.text} Verdict:")
        choice = yield from ask(Choose(parameters.model, shown, ("yes", "no")))
        return MetricResult.failed(choice) if isinstance(choice, Failure) else MetricResult(choice.probabilities[0])

    def prepare(self, entry: Any, parameters: Any) -> Any:
        raise NotImplementedError


def verdict(*, reasons: bool = False) -> MetricRequest:
    metric: Any = Verdict()
    return MetricRequest(metric, JudgeOnly(reasons=reasons), NO_MODEL)


def items(count: int) -> list[Item]:
    return [Item(str(i), "q", ("yes",), f"answer {i}") for i in range(count)]


async def score(engine: HashEngine, *args: Any, **kw: Any) -> dict[tuple[int, int], ScoredResult]:
    results: dict[tuple[int, int], ScoredResult] = {}

    def emit(item: int, metric: int, scored: ScoredResult) -> None:
        assert (item, metric) not in results
        results[item, metric] = scored

    await Scorer(engine.ports).score(*args, emit=emit, **kw)
    return results


def held(engine: HashEngine, gates: list[asyncio.Future[None]]) -> asyncio.Event:
    """Holds one judge call at each gate; the event is set once all are held."""
    all_there = asyncio.Event()
    left = iter(gates)

    def hold(_model: str) -> asyncio.Future[None]:
        gate = next(left)
        if gate is gates[-1]:
            all_there.set()
        return gate

    engine.before = hold
    return all_there


async def test_a_judge_metric_goes_through_its_rounds(engine: HashEngine) -> None:
    engine.script.on_choose = preferring("yes", 0.75)
    engine.script.on_generate = saying("It is right.")
    results = await score(engine, items(2), [verdict(), verdict(reasons=True)])
    assert {pair: scored.result.score for pair, scored in results.items()} == dict.fromkeys(
        [(0, 0), (0, 1), (1, 0), (1, 1)], 0.75
    )
    assert any(seen.endswith("It is right. Verdict:") for seen in engine.script.seen)
    assert results[0, 1].cache_hits == CacheHits(computed=2)  # a reason and a verdict
    assert results[0, 1].timing == Timing(queue_s=0.5, inference_s=2.5)


async def test_equal_needs_of_a_request_are_asked_once_and_answered_to_all(engine: HashEngine) -> None:
    same = [Item(str(i), "q", ("yes",), "the same") for i in range(200)]
    results = await score(engine, same, [verdict(), verdict()])
    assert len(engine.script.asked) == 1
    assert len({scored.result.score for scored in results.values()}) == 1
    assert len(results) == 400
    hits = [scored.cache_hits for scored in results.values()]
    assert (sum(each.computed for each in hits), sum(each.joined for each in hits)) == (1, 399)


async def test_each_is_resumed_as_soon_as_its_own_answer_is_there(engine: HashEngine) -> None:
    gates = [asyncio.get_running_loop().create_future() for _ in range(3)]
    all_there = held(engine, gates)
    told: asyncio.Queue[int] = asyncio.Queue()
    running = asyncio.create_task(
        Scorer(engine.ports).score(items(3), [verdict()], emit=lambda item, _metric, _scored: told.put_nowait(item))
    )
    await all_there.wait()
    for position in (2, 0, 1):
        gates[position].set_result(None)
        assert await told.get() == position
    await running


async def test_embedding_results_are_all_out_while_the_judge_still_works(
    engine: HashEngine, request_for: Callable[..., MetricRequest], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program_runner, "MAX_TEXTS_PER_CALL", 50)  # many calls, none of which may count a judge's needs
    monkeypatch.setattr(program_runner, "MAX_CALLS", 2)
    monkeypatch.setattr(program_runner, "MAX_JUDGE_CALLS", 5)
    gate = asyncio.get_running_loop().create_future()
    engine.before = lambda model: gate if model == "scripted" else None
    seen: set[tuple[int, int]] = set()
    quick = asyncio.Event()

    def emit(item: int, metric: int, _scored: ScoredResult) -> None:
        seen.add((item, metric))
        if len(seen) == 200:
            quick.set()

    requests = [verdict(), request_for("smile"), verdict(reasons=True), request_for("sbert")]
    running = asyncio.create_task(Scorer(engine.ports).score(items(100), requests, emit=emit))
    await quick.wait()
    assert seen == {(item, metric) for item in range(100) for metric in (1, 3)}
    assert engine.running == 5  # of the judge's needs, no more than may be under way
    gate.set_result(None)
    await running
    assert len(seen) == 400


async def test_few_needs_are_under_way_at_a_time(engine: HashEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_runner, "MAX_JUDGE_CALLS", 7)
    gate, full = asyncio.get_running_loop().create_future(), asyncio.Event()
    most = 0

    def wait(_model: str) -> asyncio.Future[None]:
        nonlocal most
        most = max(most, engine.running)
        if engine.running == 7:
            full.set()
        return gate

    engine.before = wait
    running = asyncio.create_task(score(engine, items(50), [verdict(reasons=True)]))
    await full.wait()
    gate.set_result(None)
    assert len(await running) == 50
    assert most == 7


async def test_a_failure_is_one_items_own(engine: HashEngine) -> None:
    away = Failure(Status.UNAVAILABLE, "the judge went away", retry_after_s=1.5)
    yes = preferring("yes")
    engine.script.on_choose = lambda need: away if need.prompt.prediction == "answer 1" else yes(need)
    results = await score(engine, items(3), [verdict()])
    assert [results[i, 0].result.status for i in range(3)] == [Status.OK, Status.UNAVAILABLE, Status.OK]
    assert results[1, 0].result.retry_after_s == pytest.approx(1.5)


async def test_an_engine_that_raises_fails_its_need_alone(caplog: pytest.LogCaptureFixture) -> None:
    class Raising(HashEngine):
        async def choose(self, need: Choose, *, deadline_s: float | None = None) -> Any:
            if need.prompt.prediction == "answer 0":
                raise RuntimeError(need)
            return await super().choose(need, deadline_s=deadline_s)

    results = await score(Raising(), items(2), [verdict()])
    assert [results[i, 0].result.status for i in range(2)] == [Status.INTERNAL, Status.OK]
    assert "answer 0" not in caplog.text


async def test_judges_have_a_deadline_of_their_own_where_one_is_given(
    engine: HashEngine, request_for: Callable[..., MetricRequest]
) -> None:
    await score(engine, items(1), [verdict(), request_for("sbert")], deadline_s=5.0, judge_deadline_s=math.pi)
    await score(engine, items(2)[1:], [verdict()], deadline_s=5.0)
    assert engine.judge_deadlines_s == [math.pi, 5.0]


async def test_cancelling_cancels_what_the_judge_is_asked(engine: HashEngine) -> None:
    all_there = held(engine, [asyncio.get_running_loop().create_future() for _ in range(5)])
    running = asyncio.create_task(score(engine, items(5), [verdict()]))
    await all_there.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert engine.running == 0


async def test_a_program_may_ask_encoder_and_judge_at_once(engine: HashEngine) -> None:
    class Both(Verdict):
        def score(self, item: Item, parameters: Any, metadata: Any) -> Any:
            del metadata
            vectors, choice = yield (
                Embed("hash", (item.prediction,), Tier.PREDICTION),
                Choose(parameters.model, prompt(item.prediction), ("yes", "no")),
            )
            return MetricResult(float(vectors.values[0] @ vectors.values[0]) * choice.probabilities[0])

    engine.script.on_choose = preferring("yes", 0.5)
    metric: Any = Both()
    results = await score(engine, items(3), [MetricRequest(metric, JudgeOnly(), NO_MODEL)])
    assert [results[i, 0].result.score for i in range(3)] == pytest.approx([0.5] * 3, abs=1e-5)
    assert results[0, 0].cache_hits == CacheHits(computed=2)
