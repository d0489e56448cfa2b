"""Remembered results: the same texts get the same result, nothing else does, and the bound holds."""

import asyncio
import logging
import threading
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from tests.support.engines.hash_engine import HashEngine
from tests.support.examples import example_count

from gradewire_proto.parts import CorrectnessParts, Parts, SmileParts
from gradewire_proto.v1 import types_pb2
from gradewire_server import loop_turns
from gradewire_server.backends import expose_results
from gradewire_server.domain.items import CacheHits, Failure, Image, Item, MetricResult, ScoredResult, Status, Timing
from gradewire_server.domain.metric import NO_MODEL
from gradewire_server.domain.needs import Embed, Tier
from gradewire_server.domain.ports import EmbedReply
from gradewire_server.metrics.registry import REGISTRY
from gradewire_server.scoring import MetricRequest, Scorer, program_runner
from gradewire_server.scoring.calls import Cost
from gradewire_server.scoring.scorer import ENTRY_BYTES, RememberedResults
from gradewire_server.storage.shared_table import SharedTable

Make = Callable[..., MetricRequest]
ITEM = Item("1", "what?", ("a kitten", "two cats"), "I see a small cat", group="g")
MIB = 1 << 20


async def score(
    scorer: Scorer, items: Sequence[Item], requests: Sequence[MetricRequest | Failure]
) -> dict[tuple[int, int], ScoredResult]:
    results: dict[tuple[int, int], ScoredResult] = {}

    def emit(item: int, metric: int, result: ScoredResult) -> None:
        assert (item, metric) not in results, "a result is emitted once"
        results[item, metric] = result

    await scorer.score(items, requests, emit=emit)
    return results


def remembering(engine: HashEngine, max_bytes: int = MIB) -> tuple[Scorer, RememberedResults]:
    results = RememberedResults(max_bytes)
    return Scorer(engine.ports, results=results), results


async def test_the_second_time_nothing_is_asked_and_the_result_is_the_same(
    engine: HashEngine, request_for: Make
) -> None:
    scorer, results = remembering(engine)
    requests = [request_for("smile"), request_for("exact_match"), request_for("smile", preset="fast")]
    first = await score(scorer, [ITEM], requests)
    asked = len(engine.calls)
    again = await score(scorer, [replace(ITEM, id="2", group="h")], requests)
    assert len(engine.calls) == asked
    assert {pair: each.result for pair, each in again.items()} == {pair: each.result for pair, each in first.items()}
    texts = first[0, 0].cache_hits
    assert texts.total > 0
    assert again[0, 0].cache_hits == CacheHits(memory=texts.total)
    assert again[0, 0].timing == Timing()
    assert results.found == 2, "exact_match costs no more than looking its result up"
    assert results.texts == texts.total + first[0, 2].cache_hits.total
    registry = CollectorRegistry()
    expose_results(results, registry)
    assert registry.get_sample_value("gradewire_remembered_results_texts_total") == results.texts


async def test_known_and_new_items_and_failed_metrics_keep_their_places(engine: HashEngine, request_for: Make) -> None:
    scorer, _ = remembering(engine)
    failed = Failure(Status.INVALID_PARAMETER, "no")
    requests = [request_for("smile"), failed, request_for("sbert")]
    items = [replace(ITEM, prediction=f"cat number {number}") for number in range(6)]
    await score(scorer, items[::2], requests)
    mixed = await score(scorer, items, requests)
    fresh = await score(Scorer(HashEngine().ports), items, requests)
    assert mixed.keys() == fresh.keys()
    for pair, each in mixed.items():
        assert each.result.status is fresh[pair].result.status
        if each.result.score is not None:
            assert each.result.score == pytest.approx(fresh[pair].result.score, abs=2e-5)
    told: set[tuple[int, int]] = scorer.recall(items, requests, emit=lambda *_: None)
    assert told == {(item, metric) for item in range(6) for metric in (0, 2)}, "a failed metric is left to score"


async def test_what_one_process_scored_another_does_not_score_again(request_for: Make) -> None:
    table = SharedTable.create(MIB)
    engines = [HashEngine(), HashEngine()]
    results = [RememberedResults(MIB, table) for _ in engines]
    one, two = (Scorer(engine.ports, results=remembered) for engine, remembered in zip(engines, results, strict=True))
    first = await score(one, [ITEM], [request_for("smile"), request_for("sbert")])
    # Another process has other objects for equal requests, and asks for its metrics in another order.
    smile = request_for("smile")
    again = await score(two, [ITEM], [request_for("exact_match"), request_for("sbert"), smile])
    assert not engines[1].calls
    assert [again[0, metric].result for metric in (2, 1)] == [first[0, metric].result for metric in (0, 1)]
    assert again[0, 2].cache_hits == CacheHits(memory=first[0, 0].cache_hits.total)
    assert results[1].found == 2
    found = table.found
    await score(two, [ITEM], [smile])
    assert table.found == found, "the second time, its own memory has it"
    for other in (request_for("smile", preset="paper"), request_for("smile", model="other")):
        await score(two, [ITEM], [other])
    await score(two.within(engines[1].ports, "tenant"), [ITEM], [request_for("smile")])
    await score(two, [replace(ITEM, images=(Image(data=b"x"),))], [request_for("smile")])
    await score(two, [replace(ITEM, prediction="cat " * 2000)], [request_for("smile")])
    assert table.found == found


async def test_failures_and_results_of_items_that_are_not_remembered_are_not_shared(request_for: Make) -> None:
    table = SharedTable.create(MIB)
    scorer = Scorer(HashEngine().ports, results=RememberedResults(MIB, table))
    items = [
        replace(ITEM, prediction=" "),
        replace(ITEM, images=(Image(data=b"x"),)),
        replace(ITEM, prediction="cat " * 2000),
    ]
    await score(scorer, items, [request_for("smile")])
    none = Scorer(HashEngine().ports, results=RememberedResults(0, table))
    await score(none, [ITEM], [request_for("smile")])
    assert not table.used_bytes


@pytest.mark.parametrize(
    "other",
    [
        replace(ITEM, question="which?"),
        replace(ITEM, prediction="I see a small dog"),
        replace(ITEM, references=("two cats", "a kitten")),
        replace(ITEM, synthetic_answers=("It is a kitten.", "They are two cats.")),
        replace(ITEM, captions=("a cat",)),
    ],
)
async def test_an_item_with_another_text_is_not_found(engine: HashEngine, request_for: Make, other: Item) -> None:
    scorer, results = remembering(engine)
    await score(scorer, [ITEM], [request_for("smile")])
    await score(scorer, [other], [request_for("smile")])
    assert results.found == 0


async def test_other_parameters_models_and_tenants_find_nothing(engine: HashEngine, request_for: Make) -> None:
    results = RememberedResults(MIB)
    scorer = Scorer(engine.ports, results=results)
    smile = request_for("smile")
    await score(scorer, [ITEM], [smile])
    tenant = scorer.within(engine.ports, "tenant")
    await score(tenant, [ITEM], [smile])
    for request in (request_for("smile", preset="paper"), request_for("smile", model="other"), request_for("sbert")):
        await score(scorer, [ITEM], [request])
    assert results.found == 0
    await score(tenant, [ITEM], [smile])
    assert results.found == 1


async def test_what_failed_and_what_rests_on_more_than_texts_is_not_remembered(
    engine: HashEngine, request_for: Make
) -> None:
    scorer, results = remembering(engine)
    smile = request_for("smile")
    not_kept = [
        replace(ITEM, references=()),
        replace(ITEM, prediction=" "),
        replace(ITEM, prediction="word " * 1000),
        replace(ITEM, images=(Image(b"x", "", "image/png"),)),
        replace(ITEM, captions=("word " * 1000,)),
    ]
    await score(scorer, not_kept, [smile])
    assert results.used_bytes == 0
    engine.before = _fail
    await score(scorer, [ITEM], [smile])
    assert results.used_bytes == 0
    others = [request_for("cider"), request_for("smile", synthetic="prepared"), request_for("lave")]
    assert [results.of(each) for each in others] == [None, None, None]
    assert RememberedResults(0).of(smile) is None


def _fail(_model: str) -> None:
    raise RuntimeError("the encoder is gone")


@given(
    st.lists(st.tuples(st.sampled_from(["keep", "find"]), st.integers(0, 12)), max_size=60),
    st.integers(ENTRY_BYTES, 8 * ENTRY_BYTES),
)
@settings(max_examples=example_count(60))
def test_what_is_found_is_what_was_kept_last_and_the_bound_holds(ops: list[tuple[str, int]], max_bytes: int) -> None:
    results = RememberedResults(max_bytes)
    of_metric = results.of(_smile_request())
    assert of_metric is not None
    kept: dict[int, MetricResult] = {}
    for number, (operation, index) in enumerate(ops):
        item = Item("", "", (f"reference {index}",), "x" * 100 * index)
        if operation == "keep":
            kept[index] = MetricResult(score=number / 100)
            of_metric.keep(item, kept[index], Cost())
        elif (found := of_metric.find(item)) is not None:
            assert found.result is kept[index]
        assert 0 <= results.used_bytes <= max_bytes


def test_the_least_recently_used_goes_first() -> None:
    results = RememberedResults(3 * ENTRY_BYTES)
    of_metric = results.of(_smile_request())
    assert of_metric is not None
    first, second, third = (replace(ITEM, prediction=text) for text in "abc")
    for item in (first, second):
        of_metric.keep(item, MetricResult(score=1.0), Cost())
    assert of_metric.find(first) is not None
    of_metric.keep(third, MetricResult(score=1.0), Cost())
    assert [of_metric.find(item) is not None for item in (first, second, third)] == [True, False, True]


def test_an_entry_takes_no_more_than_it_is_counted_for() -> None:
    results = RememberedResults(64 * MIB)
    of_metric = results.of(_smile_request())
    assert of_metric is not None
    names = [f"feature {number}" for number in range(40)]
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for number in range(5000):
        item = Item("", f"question {number}?", (f"reference {number}",), f"an answer of some words {number}")
        parts: Parts = SmileParts(
            0.1 + number, 0.2 + number, 0.3 + number, 0.4 + number, f"window {number}", 3, correct=True
        )
        features = {name: number + place + 0.5 for place, name in enumerate(names)}
        if number % 2:
            parts = CorrectnessParts(
                0.1 + number, 0.2 + number, 0.3 + number, 0.4 + number, f"window {number}", features
            )
        of_metric.keep(item, MetricResult(score=0.5 + number, matched_reference=0, parts=parts), Cost())
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert 0.5 * results.used_bytes < taken <= results.used_bytes


@pytest.mark.parametrize(
    ("references", "prediction"),
    [(1, "\U0001f600\U0001f601 " * 1300), (1, "word " * 800), (1000, "short")],
    ids=["emoji", "long window", "many references"],
)
def test_hostile_texts_take_no_more_than_they_are_counted_for(references: int, prediction: str) -> None:
    results = RememberedResults(64 * MIB)
    of_metric = results.of(_smile_request())
    assert of_metric is not None
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for number in range(40):
        texts = tuple(chr(0x430 + place % 32) + chr(0x431 + number % 31) for place in range(references))
        item = Item("", f"{number}", texts, f"{prediction}{number}")
        window = item.prediction[: len(item.prediction) * 9 // 10]
        result = MetricResult(0.5, parts=SmileParts(0.1, 0.2, 0.3, 0.4, window, 3, correct=True))
        of_metric.keep(item, result, Cost())
        for text in (*item.references, item.prediction, window):
            types_pb2.Item(prediction=text)  # which leaves a copy in UTF-8 beside the text
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert results.used_bytes > 40 * ENTRY_BYTES
    assert taken <= results.used_bytes


def _smile_request() -> MetricRequest:
    metric: Any = REGISTRY["smile"]
    return MetricRequest(metric, metric.parameters_type(), NO_MODEL)


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


async def score_scorer(
    engine: HashEngine,
    items: Sequence[Item],
    requests: Sequence[MetricRequest | Failure],
    *,
    reference_set: str = "",
    **kw: Any,
) -> Results:
    results: Results = {}

    def emit(item: int, metric: int, result: ScoredResult) -> None:
        assert (item, metric) not in results, "a result is emitted once"
        results[item, metric] = result

    scorer = Scorer(engine.ports)
    corpora = scorer.corpora_of(items, reference_set=reference_set)
    await scorer.score(items, requests, corpora=corpora, emit=emit, **kw)
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
    results = await score_scorer(engine, ITEMS, requests)
    assert set(results) == {(i, m) for i in range(len(ITEMS)) for m in range(len(requests))}
    for (i, m), result in results.items():
        alone = await score_scorer(HashEngine(models=("hash", "other")), [ITEMS[i]], [requests[m]])
        assert_same(result.result, alone[0, 0].result)
    assert {results[i, 0].result.status for i in range(3)} == {Status.OK}
    assert [results[i, 0].result.status for i in (3, 4, 5)] == [
        Status.INVALID_INPUT,
        Status.INVALID_INPUT,
        Status.EMPTY_PREDICTION,
    ]


async def test_open_needs_become_one_call_per_model_and_kind(engine: HashEngine, request_for: Make) -> None:
    requests = [request_for("smile"), request_for("smile", preset="paper"), request_for("sbert")]
    await score_scorer(engine, ITEMS[:3], requests)
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
    whole = await score_scorer(engine, ITEMS * 5, requests)
    monkeypatch.setattr(program_runner, "MAX_TEXTS_PER_CALL", 20)
    monkeypatch.setattr(program_runner, "MAX_CALLS", 2)
    small = HashEngine()
    most = 0

    def note(_model: str) -> None:
        nonlocal most
        most = max(most, small.running)

    small.before = note
    cut = await score_scorer(small, ITEMS * 5, requests)
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
    results = await score_scorer(engine, ITEMS[:3], [failure, request_for("sbert")])
    assert [results[i, 0].result for i in range(3)] == [MetricResult.failed(failure)] * 3
    assert [results[i, 1].result.status for i in range(3)] == [Status.OK] * 3


async def test_a_failed_text_fails_the_pairs_that_need_it(engine: HashEngine, request_for: Make) -> None:
    failure = engine.failures["small cat"] = Failure(Status.TIMEOUT, "late")
    results = await score_scorer(engine, ITEMS[:2], [request_for("smile"), request_for("sbert")])
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
        results = await score_scorer(engine, ITEMS[:2], requests)
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
    results = await score_scorer(Raising(), ITEMS[:1], requests)
    assert [results[0, m].result.status for m in range(3)] == [Status.INTERNAL, Status.OK, Status.OK]
    assert "RuntimeError" in caplog.text
    assert "small cat" not in caplog.text


async def test_costs_are_counted_by_text_and_pair(engine: HashEngine, request_for: Make) -> None:
    item = Item("1", "", ("Yes", "no"), "Yes")  # texts: Yes (twice), no; "yes" is said: no window is looked at
    requests = [request_for("smile"), request_for("sbert")]
    cold = await score_scorer(engine, [item], requests)
    assert cold[0, 0].cache_hits == CacheHits(computed=2)
    assert cold[0, 1].cache_hits == CacheHits(computed=2)
    assert cold[0, 0].timing == Timing(queue_s=0.25, inference_s=1.0)  # one call
    warm = await score_scorer(engine, [item], requests)
    assert warm[0, 0].cache_hits == CacheHits(memory=2)


async def test_costs_add_up_over_rounds(engine: HashEngine, request_for: Make) -> None:
    results = await score_scorer(engine, ITEMS[:1], [request_for("smile", preset="fast")])
    assert results[0, 0].timing == Timing(queue_s=0.5, tokenize_s=0.5, inference_s=2.0)  # tokens, embed; then embed
    hits = results[0, 0].cache_hits
    assert hits.computed + hits.memory == sum(len(texts) for _, _, texts, _ in engine.calls)


async def test_prepared_answers_come_from_the_requests_set(engine: HashEngine, request_for: Make) -> None:
    item = Item("1", "q", ("yes",), "Yes, it is")
    engine.prepared["set", "q", "yes"] = "Yes, it is"
    results = await score_scorer(engine, [item], [request_for("smile", synthetic="prepared")], reference_set="set")
    assert results[0, 0].result.parts is not None
    assert results[0, 0].result.parts.sentence == pytest.approx(1.0, abs=1e-6)
    for name in ("", "another"):
        engine.calls.clear()
        other = await score_scorer(engine, [item], [request_for("smile", synthetic="prepared")], reference_set=name)
        assert other[0, 0].result.status is Status.NOT_PREPARED
        assert [kind for kind, *_ in engine.calls] == (["prepared"] if name else [])


async def test_the_deadline_reaches_the_engine(request_for: Make) -> None:
    deadlines = []

    class Noting(HashEngine):
        async def embed(self, *args: Any, deadline_s: float | None = None) -> EmbedReply:
            deadlines.append(deadline_s)
            return await super().embed(*args, deadline_s=deadline_s)

    await score_scorer(Noting(), ITEMS[:1], [request_for("smile")], deadline_s=123.5)
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
    await score_scorer(engine, ITEMS[:3] * 100, [request_for("easy_match")])  # no engine call in which to take a turn
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


@pytest.mark.parametrize(
    ("words", "answer", "aside"),
    [(10, "whole", False), (400, "whole", False), (1_500, "whole", True), (10, "final", False), (400, "final", True)],
)
async def test_rounds_of_a_long_item_do_not_keep_the_event_loop(
    engine: HashEngine, words: int, answer: str, *, aside: bool
) -> None:
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

    request = MetricRequest(Watched(), REGISTRY["exact_match"].parameters_type(answer=answer), NO_MODEL)
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
        running = asyncio.create_task(score_scorer(engine, ITEMS, requests))
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
    expected = await score_scorer(HashEngine(), ITEMS, requests)
    tasks = [asyncio.create_task(score_scorer(engine, ITEMS, requests)) for _ in turns_until_cancel]
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
    await score_scorer(engine, items, [request_for("grader", model="words")])
    assert [len(asked) for asked in engine.graded] == [300] * 4
