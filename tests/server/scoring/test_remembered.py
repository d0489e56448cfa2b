"""Remembered results: the same texts get the same result, nothing else does, and the bound holds."""

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

from gradewire_proto.v1 import types_pb2
from gradewire_server.domain.image import Image
from gradewire_server.domain.item import Item
from gradewire_server.domain.metric import NO_MODEL
from gradewire_server.domain.parts import CorrectnessParts, Parts, SmileParts
from gradewire_server.domain.result import CacheHits, Failure, MetricResult, ScoredResult, Status, Timing
from gradewire_server.metrics.registry import REGISTRY
from gradewire_server.scoring import MetricRequest, Scorer
from gradewire_server.scoring.program_run import Cost
from gradewire_server.scoring.remembered import ENTRY_BYTES, RememberedResults
from gradewire_server.scoring.telemetry import RememberedTelemetry

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
    RememberedTelemetry(results, registry)
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
    tenant = Scorer(engine.ports, results=results.within("tenant"))
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
