"""Preparing references: progress, durable synthetic answers, and a cache that then holds all that scoring needs."""

from collections.abc import Callable
from typing import Any

from tests.support.engines.hash_engine import HashEngine

from gradewire_server.domain.item import Item, ReferenceEntry
from gradewire_server.domain.result import CacheHits, Failure, Status
from gradewire_server.scoring import MetricRequest, PreparedChunk, Scorer
from gradewire_server.scoring.prepare import ENTRIES_PER_CHUNK

Make = Callable[..., MetricRequest]


async def prepare(engine: HashEngine, entries: Any, requests: Any, reference_set: str = "set") -> list[PreparedChunk]:
    return [chunk async for chunk in Scorer(engine.ports).prepare(entries, requests, reference_set=reference_set)]


async def test_progress_adds_up_chunk_by_chunk(engine: HashEngine, request_for: Make) -> None:
    count = 2 * ENTRIES_PER_CHUNK + 5
    entries = [ReferenceEntry(f"q{i}", (f"Answer {i}",)) for i in range(count)]
    chunks = await prepare(engine, entries, [request_for("smile")])
    assert [chunk.entries_done for chunk in chunks] == [ENTRIES_PER_CHUNK, 2 * ENTRIES_PER_CHUNK, count]
    # Each entry has two texts: "Answer 3" and "answer 3".
    assert [chunk.cache_hits.computed for chunk in chunks] == [2 * chunk.entries_done for chunk in chunks]
    assert all(not chunk.failures for chunk in chunks)


async def test_the_same_content_again_computes_nothing(engine: HashEngine, request_for: Make) -> None:
    entries = [ReferenceEntry("q", ("Yes", "No"), ("Yes, it is.", "No, it is not."))]
    requests = [request_for("smile", synthetic="prepared"), request_for("sbert")]
    (first,) = await prepare(engine, entries, requests)
    before = dict(engine.computed)
    (second,) = await prepare(engine, entries, requests)
    assert first.cache_hits.computed == 6  # two references, two keywords, two synthetic answers
    assert second.cache_hits == CacheHits(memory=6)
    assert second.synthetic.stored == first.synthetic.stored == 2
    assert engine.computed == before


async def test_scoring_after_it_computes_no_reference(engine: HashEngine, request_for: Make) -> None:
    item = Item("1", "q", ("A kitten", "Two cats"), "There are some kittens in the box over there.")
    requests = [
        request_for("smile", synthetic="prepared"),
        request_for("smile", preset="fast", synthetic="prepared"),
        request_for("sbert"),
        request_for("exact_match"),
    ]
    entry = ReferenceEntry(item.question, item.references, ("There is a kitten.", "There are two cats."))
    await prepare(engine, [entry], requests)
    before = set(engine.computed)
    statuses = []
    await Scorer(engine.ports).score(
        [item], requests, reference_set="set", emit=lambda _i, _m, result: statuses.append(result.result.status)
    )
    assert statuses == [Status.OK] * 4
    new = {text for _, text in set(engine.computed) - before}
    assert not new & {*item.references, *entry.synthetic_answers, "a kitten", "two cat"}
    assert item.prediction in new


async def test_bad_entries_fail_alone(engine: HashEngine, request_for: Make) -> None:
    engine.failures["cannot be stored"] = Failure(Status.UNAVAILABLE, "disk full")
    entries = [
        ReferenceEntry("q", ("fine",), ("This is fine.",)),
        ReferenceEntry("q", ()),
        ReferenceEntry("q", ("x", " ")),
        ReferenceEntry("q", ("x", "y"), ("only one",)),
        ReferenceEntry("q", ("x",), (" ",)),
        ReferenceEntry("q", ("x", "x"), ("one", "another")),
        ReferenceEntry("q", ("x", "x"), ("the same", "the same")),
        ReferenceEntry("q", ("z",), ("cannot be stored",)),
    ]
    (chunk,) = await prepare(engine, entries, [request_for("smile")])
    assert [(index, failure.status) for index, failure in chunk.failures] == [
        (1, Status.INVALID_INPUT),
        (2, Status.INVALID_INPUT),
        (3, Status.INVALID_INPUT),
        (4, Status.INVALID_INPUT),
        (5, Status.INVALID_INPUT),
        (7, Status.UNAVAILABLE),
    ]
    assert chunk.entries_done == len(entries)
    assert chunk.synthetic.stored == 3
    assert engine.prepared == {("set", "q", "fine"): "This is fine.", ("set", "q", "x"): "the same"}
    assert ("embed", "fine") in engine.computed
    assert ("embed", "z") not in engine.computed


async def test_another_answer_for_what_the_set_holds_is_the_entrys_failure(
    engine: HashEngine, request_for: Make
) -> None:
    entries = [ReferenceEntry("q", ("x",), (answer,)) for answer in ("It is x.", "It is x.", "It may be x.")]
    (chunk,) = await prepare(engine, entries, [request_for("smile", synthetic="prepared")])
    assert [(index, failure.status) for index, failure in chunk.failures] == [(2, Status.INVALID_INPUT)]
    assert engine.prepared == {("set", "q", "x"): "It is x."}
    assert chunk.synthetic.stored == 2


async def test_failures_name_the_entry_of_the_whole_set_once(engine: HashEngine, request_for: Make) -> None:
    entries = [ReferenceEntry("q", ("x",))] * ENTRIES_PER_CHUNK + [ReferenceEntry("q", ())]
    requests = [request_for("smile"), request_for("sbert"), request_for("exact_match")]
    first, second = await prepare(engine, entries, requests)
    assert first.failures == ()
    assert [index for index, _ in second.failures] == [ENTRIES_PER_CHUNK]


async def test_a_metric_that_cannot_be_had_is_everyones_failure_and_the_others_go_on(
    engine: HashEngine, request_for: Make
) -> None:
    missing = Failure(Status.MODEL_UNAVAILABLE, "build it")
    (chunk,) = await prepare(engine, [ReferenceEntry("q", ("x",))] * 2, [missing, request_for("sbert")])
    assert chunk.failures == ((0, missing), (1, missing))
    assert engine.computed == {("embed", "x"): 1}


async def test_a_text_that_fails_is_the_entrys_failure(engine: HashEngine, request_for: Make) -> None:
    failure = engine.failures["bad"] = Failure(Status.TIMEOUT, "late")
    (chunk,) = await prepare(
        engine, [ReferenceEntry("q", ("bad",)), ReferenceEntry("q", ("x",))], [request_for("sbert")]
    )
    assert chunk.failures == ((0, failure),)


async def test_no_entries_no_progress(engine: HashEngine, request_for: Make) -> None:
    assert await prepare(engine, [], [request_for("smile")]) == []
