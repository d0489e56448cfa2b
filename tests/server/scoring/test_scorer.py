"""The scorer: merging changes no result, nobody waits for others, and one defect stays one defect."""

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.engines.hash_engine import HashEngine
from tests.support.examples import example_count

from gradewire_server.domain.item import Item
from gradewire_server.domain.metric import NO_MODEL
from gradewire_server.domain.needs import Embed, Tier
from gradewire_server.domain.ports import EmbedReply
from gradewire_server.domain.result import CacheHits, Failure, MetricResult, ScoredResult, Status, Timing
from gradewire_server.metrics.registry import REGISTRY
from gradewire_server.scoring import MetricRequest, Scorer, loop_turns, program_runner

Make = Callable[..., MetricRequest]
Results = dict[tuple[int, int], ScoredResult]

ITEMS = [
    Item("1", "", ("a kitten", "two cats", "the small cat"), "I see a small cat on the red mat, near two other cats!"),
    Item("2", "", ("no reference has", "a word of this"), "totally different things are said here, at some length"),
    Item("3", "", ("yes",), "Yes"),
    Item("4", "", (), "no references"),
    Item("5", "", ("x", " "), "a blank reference"),
    Item("6", "", ("x",), " "),
    Item("7", "", ("?!", "red " * 30), "?! " * 20),
]


async def score(
    engine: HashEngine, items: Sequence[Item], requests: Sequence[MetricRequest | Failure], **kw: Any
) -> Results:
    results: Results = {}

    def emit(item: int, metric: int, result: ScoredResult) -> None:
        assert (item, metric) not in results, "a result is emitted once"
        results[item, metric] = result

    await Scorer(engine.ports).score(items, requests, emit=emit, **kw)
    return results


def assert_same(result: MetricResult, alone: MetricResult) -> None:
    assert (result.status, result.message, result.warnings) == (alone.status, alone.message, alone.warnings)
    assert result.matched_reference == alone.matched_reference
    assert result.score == (None if alone.score is None else pytest.approx(alone.score, abs=2e-5))


async def test_a_request_gives_what_its_pairs_give_alone(engine: HashEngine, request_for: Make) -> None:
    requests = [
        *(
            request_for("smile", preset=preset)
            for preset in ("v1", "fast", "one_pass", "whole", "paper", "reference_code")
        ),
        request_for("smile", model="other"),
        *map(request_for, ("sbert", "exact_match", "easy_match")),
    ]
    results = await score(engine, ITEMS, requests)
    assert set(results) == {(i, m) for i in range(len(ITEMS)) for m in range(len(requests))}
    for (i, m), result in results.items():
        alone = await score(HashEngine(models=("hash", "other")), [ITEMS[i]], [requests[m]])
        assert_same(result.result, alone[0, 0].result)
    assert {results[i, 0].result.status for i in range(3)} == {Status.OK}
    assert [results[i, 0].result.status for i in (3, 4, 5)] == [
        Status.INVALID_INPUT,
        Status.INVALID_INPUT,
        Status.EMPTY_PREDICTION,
    ]


async def test_open_needs_become_one_call_per_model_and_kind(engine: HashEngine, request_for: Make) -> None:
    requests = [request_for("smile"), request_for("smile", preset="paper"), request_for("sbert")]
    await score(engine, ITEMS[:3], requests)
    ((kind, model, texts, tiers),) = engine.calls
    assert (kind, model) == ("embed", "hash")
    tier_of = dict(zip(texts, tiers, strict=True))
    assert tier_of["yes"] is Tier.REFERENCE  # reference, its keyword, and the window "yes"
    assert tier_of["Yes"] is Tier.PREDICTION
    assert tier_of["see a"] is Tier.WINDOW


async def test_calls_are_cut_and_bounded_without_a_change_of_scores(
    engine: HashEngine, request_for: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = [request_for("smile"), request_for("smile", preset="fast")]
    whole = await score(engine, ITEMS * 5, requests)
    monkeypatch.setattr(program_runner, "MAX_TEXTS_PER_CALL", 20)
    monkeypatch.setattr(program_runner, "MAX_CALLS", 2)
    small = HashEngine()
    most = 0

    def note(_model: str) -> None:
        nonlocal most
        most = max(most, small.running)

    small.before = note
    cut = await score(small, ITEMS * 5, requests)
    assert len(small.calls) > 5
    assert most <= 3  # two calls of one sweep may follow the one that is let through
    for pair, result in whole.items():
        assert_same(cut[pair].result, result.result)


async def test_a_metric_never_waits_for_anothers_slower_model(engine: HashEngine, request_for: Make) -> None:
    gate = asyncio.get_running_loop().create_future()
    engine.before = lambda model: gate if model == "other" else None
    seen: list[tuple[int, int]] = []
    requests = [request_for("smile", model="other"), request_for("smile", preset="fast"), request_for("sbert")]
    quick_ones_done = asyncio.Event()

    def emit(item: int, metric: int, _result: ScoredResult) -> None:
        seen.append((item, metric))
        if len(seen) == 4:
            quick_ones_done.set()

    running = asyncio.create_task(Scorer(engine.ports).score(ITEMS[:2], requests, emit=emit))
    await quick_ones_done.wait()
    assert set(seen) == {(i, m) for i in range(2) for m in (1, 2)}
    assert not running.done()
    gate.set_result(None)
    await running
    assert len(seen) == 6


async def test_a_failed_request_fails_all_items_and_no_neighbour(engine: HashEngine, request_for: Make) -> None:
    failure = Failure(Status.MODEL_UNAVAILABLE, "not built: gradewire models build x")
    results = await score(engine, ITEMS[:3], [failure, request_for("sbert")])
    assert [results[i, 0].result for i in range(3)] == [MetricResult.failed(failure)] * 3
    assert [results[i, 1].result.status for i in range(3)] == [Status.OK] * 3


async def test_a_failed_text_fails_the_pairs_that_need_it(engine: HashEngine, request_for: Make) -> None:
    failure = engine.failures["small cat"] = Failure(Status.TIMEOUT, "late")
    results = await score(engine, ITEMS[:2], [request_for("smile"), request_for("sbert")])
    assert results[0, 0].result == MetricResult.failed(failure)
    assert [results[pair].result.status for pair in ((0, 1), (1, 0), (1, 1))] == [Status.OK] * 3


class Broken:
    """A metric with a defect: raises at the start or after a round."""

    info = REGISTRY["sbert"].info
    parameters_type = REGISTRY["sbert"].parameters_type

    def __init__(self, *, rounds: int) -> None:
        self._rounds = rounds

    def score(self, item: Item, parameters: Any, calibration: Any) -> Any:
        del calibration
        for _ in range(self._rounds):
            yield (Embed(parameters.model, (item.prediction,), Tier.PREDICTION),)
        raise KeyError(item.prediction)


@pytest.mark.parametrize("rounds", [0, 1, 2])
async def test_a_metric_that_raises_fails_alone_and_logs_no_text(
    engine: HashEngine, request_for: Make, caplog: pytest.LogCaptureFixture, rounds: int
) -> None:
    broken: Any = Broken(rounds=rounds)
    requests = [MetricRequest(broken, broken.parameters_type(model="hash"), NO_MODEL), request_for("smile")]
    with caplog.at_level(logging.ERROR):
        results = await score(engine, ITEMS[:2], requests)
    assert [results[i, 0].result.status for i in range(2)] == [Status.INTERNAL] * 2
    assert [results[i, 1].result.status for i in range(2)] == [Status.OK] * 2
    assert "Broken.score raised KeyError" in caplog.text
    assert "test_scorer.py" in caplog.text  # where it happened
    assert "small cat" not in caplog.text
    assert "small cat" not in results[0, 0].result.message


async def test_an_engine_that_raises_fails_its_call_alone(request_for: Make, caplog: pytest.LogCaptureFixture) -> None:
    class Raising(HashEngine):
        async def embed(self, model: str, *args: Any, **kw: Any) -> EmbedReply:
            if model == "other":
                raise RuntimeError(args)
            return await super().embed(model, *args, **kw)

    requests = [request_for("sbert", model="other"), request_for("sbert"), request_for("exact_match")]
    results = await score(Raising(), ITEMS[:1], requests)
    assert [results[0, m].result.status for m in range(3)] == [Status.INTERNAL, Status.OK, Status.OK]
    assert "RuntimeError" in caplog.text
    assert "small cat" not in caplog.text


async def test_costs_are_counted_by_text_and_pair(engine: HashEngine, request_for: Make) -> None:
    item = Item("1", "", ("Yes", "no"), "Yes")  # texts: Yes (twice), no; "yes" is said: no window is looked at
    requests = [request_for("smile"), request_for("sbert")]
    cold = await score(engine, [item], requests)
    assert cold[0, 0].cache_hits == CacheHits(computed=2)
    assert cold[0, 1].cache_hits == CacheHits(computed=2)
    assert cold[0, 0].timing == Timing(queue_s=0.25, inference_s=1.0)  # one call
    warm = await score(engine, [item], requests)
    assert warm[0, 0].cache_hits == CacheHits(memory=2)


async def test_costs_add_up_over_rounds(engine: HashEngine, request_for: Make) -> None:
    results = await score(engine, ITEMS[:1], [request_for("smile", preset="fast")])
    assert results[0, 0].timing == Timing(queue_s=0.5, tokenize_s=0.5, inference_s=2.0)  # tokens, embed; then embed
    hits = results[0, 0].cache_hits
    assert hits.computed + hits.memory == sum(len(texts) for _, _, texts, _ in engine.calls)


async def test_prepared_answers_come_from_the_requests_set(engine: HashEngine, request_for: Make) -> None:
    item = Item("1", "q", ("yes",), "Yes, it is")
    engine.prepared["set", "q", "yes"] = "Yes, it is"
    results = await score(engine, [item], [request_for("smile", synthetic="prepared")], reference_set="set")
    assert results[0, 0].result.parts is not None
    assert results[0, 0].result.parts.sentence == pytest.approx(1.0, abs=1e-6)
    for name in ("", "another"):
        engine.calls.clear()
        other = await score(engine, [item], [request_for("smile", synthetic="prepared")], reference_set=name)
        assert other[0, 0].result.status is Status.NOT_PREPARED
        assert [kind for kind, *_ in engine.calls] == (["prepared"] if name else [])


async def test_the_deadline_reaches_the_engine(request_for: Make) -> None:
    deadlines = []

    class Noting(HashEngine):
        async def embed(self, *args: Any, deadline_s: float | None = None) -> EmbedReply:
            deadlines.append(deadline_s)
            return await super().embed(*args, deadline_s=deadline_s)

    await score(Noting(), ITEMS[:1], [request_for("smile")], deadline_s=123.5)
    assert deadlines == [123.5]


async def test_other_tasks_get_their_turn_in_long_stretches(
    engine: HashEngine, request_for: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop_turns, "SLICE_S", 0.0)
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    task = asyncio.create_task(other())
    await score(engine, ITEMS[:3] * 100, [request_for("easy_match")])  # no engine call in which to take a turn
    task.cancel()
    assert turns >= 200


async def test_others_get_their_turn_in_rounds_that_ask_for_nothing(
    engine: HashEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop_turns, "SLICE_S", 0.0)
    turns: list[None] = []

    class Computing:
        info = REGISTRY["exact_match"].info
        parameters_type = REGISTRY["exact_match"].parameters_type

        def score(self, *_: Any) -> Any:
            for _round in range(100):
                assert (yield ()) == ()
            return MetricResult(1.0)

        def prepare(self, *_: Any) -> Any:
            raise NotImplementedError

    async def other() -> None:
        while True:
            await asyncio.sleep(0)
            turns.append(None)

    request = MetricRequest(Computing(), REGISTRY["exact_match"].parameters_type(), NO_MODEL)
    results: list[Any] = []
    task = asyncio.create_task(other())
    await Scorer(engine.ports).score([ITEMS[0]], [request], emit=lambda *result: results.append(result))
    task.cancel()
    assert len(results) == 1
    assert len(turns) >= 90


@pytest.mark.parametrize(("words", "aside"), [(10, False), (1_500, True)])
async def test_rounds_of_a_long_item_do_not_keep_the_event_loop(engine: HashEngine, words: int, *, aside: bool) -> None:
    threads: set[int] = set()

    class Watched:
        info = REGISTRY["exact_match"].info
        parameters_type = REGISTRY["exact_match"].parameters_type

        def score(self, item: Item, *_: Any) -> Any:
            yield (Embed("hash", (item.prediction,), Tier.PREDICTION),)
            threads.add(threading.get_ident())
            return MetricResult(1.0)

        def prepare(self, *_: Any) -> Any:
            raise NotImplementedError

    request = MetricRequest(Watched(), REGISTRY["exact_match"].parameters_type(), NO_MODEL)
    item = Item("1", "", ("a",), "answer " * words)
    results = []
    await Scorer(engine.ports).score([item], [request], emit=lambda *result: results.append(result))
    assert len(results) == 1
    assert (threads != {threading.get_ident()}) is aside


async def test_cancelling_cancels_the_calls(engine: HashEngine, request_for: Make) -> None:
    never: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    all_sent = asyncio.Event()
    requests: list[MetricRequest] = []

    def hold(_model: str) -> "asyncio.Future[None]":
        if engine.running == len(requests):
            all_sent.set()
        return asyncio.shield(never)

    engine.before = hold
    for models in (["hash"], ["hash", "other"]):
        requests = [request_for("smile", model=model) for model in models]
        all_sent.clear()
        running = asyncio.create_task(score(engine, ITEMS, requests))
        await all_sent.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert engine.running == 0
    never.cancel()


@settings(max_examples=example_count(25), deadline=None)
@given(st.lists(st.integers(0, 12), min_size=6, max_size=6))
async def test_cancelling_some_leaves_the_others_right(turns_until_cancel: list[int]) -> None:
    engine = HashEngine()
    smile = REGISTRY["smile"]
    requests = [MetricRequest(smile, smile.parameters_type(preset=p, model="hash"), NO_MODEL) for p in ("v1", "fast")]
    expected = await score(HashEngine(), ITEMS, requests)
    tasks = [asyncio.create_task(score(engine, ITEMS, requests)) for _ in turns_until_cancel]
    for turn in range(13):
        for task, cancel_at in zip(tasks[::2], turns_until_cancel[::2], strict=True):
            if turn == cancel_at:
                task.cancel()
        await asyncio.sleep(0)
    survivors = await asyncio.gather(*tasks[1::2])
    await asyncio.gather(*tasks[::2], return_exceptions=True)
    for results in survivors:
        assert set(results) == set(expected)
        for pair, result in results.items():
            assert_same(result.result, expected[pair].result)
    assert engine.running == 0


async def test_answers_beside_many_references_go_to_a_grader_in_parts(request_for: Make) -> None:
    # Each is a text of its own there, as long as question, reference and answer together.
    engine = HashEngine()
    references = tuple(f"a{number}" for number in range(100))
    items = [replace(ITEMS[0], references=references, prediction=f"b{number}") for number in range(12)]
    await score(engine, items, [request_for("grader", model="words")])
    assert [len(asked) for asked in engine.graded] == [300] * 4
