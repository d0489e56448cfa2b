"""Synthetic answers written while references are prepared: each once, kept at once, told of honestly."""

import asyncio
import itertools
import re
from collections.abc import Callable, Iterable
from contextlib import aclosing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.engines.hash_engine import HashEngine

from gradewire_server.domain.items import CacheHits, Failure, Item, ReferenceEntry, Status
from gradewire_server.domain.judge import Generate, Generated
from gradewire_server.metrics.prompts.library import PACKAGE_PROMPTS
from gradewire_server.scoring import MetricRequest, PreparedChunk, Scorer
from gradewire_server.scoring.prepare import ENTRIES_PER_CHUNK, ENTRIES_PER_WRITTEN_CHUNK, PATIENCE, SENTENCES_AT_ONCE
from gradewire_server.scoring.synthetic import WritingSettings

Make = Callable[..., MetricRequest]
WRITING = WritingSettings("scripted@" + "0" * 64, PACKAGE_PROMPTS.find("synthetic", ""))
_ANSWER = re.compile(r"Answer: (.*)")


def said(text: str) -> Generated:
    return Generated(text, complete=True, prompt_tokens=9, generated_tokens=5)


def reference_of(need: Generate) -> str:
    """The reference that a prompt of the package is about."""
    found = _ANSWER.search(need.prompt.lead)
    assert found is not None
    return found[1]


def good_sentence(need: Generate) -> Generated:
    return said(f"It is surely {reference_of(need)}.")


@pytest.fixture
def judged(engine: HashEngine) -> HashEngine:
    """An engine whose judge writes good sentences."""
    engine.script.on_generate = good_sentence
    return engine


async def prepare(
    engine: HashEngine, entries: Iterable[ReferenceEntry], requests: Iterable[MetricRequest] = (), **options: Any
) -> list[PreparedChunk]:
    options = {"reference_set": "set", "writing": WRITING, **options}
    return [chunk async for chunk in Scorer(engine.ports).prepare(list(entries), list(requests), **options)]


def failures_of(chunks: Iterable[PreparedChunk]) -> list[tuple[int, Failure]]:
    return [failure for chunk in chunks for failure in chunk.failures]


def answers_of(chunks: Iterable[PreparedChunk]) -> dict[int, tuple[str | None, ...]]:
    return {index: answers for chunk in chunks for index, answers in chunk.answers}


async def test_missing_answers_are_written_and_scoring_uses_them(judged: HashEngine, request_for: Make) -> None:
    entries = [ReferenceEntry("q", ("a cat", "two dogs")), ReferenceEntry("p", ("a cat",), ("A cat it is.",))]
    smile = request_for("smile", synthetic="prepared")
    chunks = await prepare(judged, entries, [smile])
    assert failures_of(chunks) == []
    assert judged.prepared == {
        ("set", "q", "a cat"): "It is surely a cat.",
        ("set", "q", "two dogs"): "It is surely two dogs.",
        ("set", "p", "a cat"): "A cat it is.",
    }
    counts = chunks[-1].synthetic
    assert (counts.stored, counts.generated, counts.fallback) == (3, 2, 0)
    assert answers_of(chunks) == {0: ("It is surely a cat.", "It is surely two dogs."), 1: ("A cat it is.",)}
    assert ("embed", "It is surely two dogs.") in judged.computed
    before = set(judged.computed)
    item = Item("1", "q", ("a cat", "two dogs"), "There may be two dogs.")
    results: list[Any] = []
    scorer = Scorer(judged.ports)
    corpora = scorer.corpora_of([item], reference_set="set")
    await scorer.score([item], [smile], corpora=corpora, emit=lambda *told: results.append(told[2].result))
    assert [result.status for result in results] == [Status.OK]
    assert not {text for _, text in set(judged.computed) - before} & {"It is surely two dogs.", "two dogs", "two dog"}


async def test_the_same_again_asks_the_judge_nothing(judged: HashEngine, request_for: Make) -> None:
    entries = [ReferenceEntry("q", ("a", "b")), ReferenceEntry("q", ("b", "c"))]
    first = await prepare(judged, entries, [request_for("smile", synthetic="prepared")])
    assert first[-1].synthetic.generated == 3, "b is written once"
    assert first[-1].synthetic.stored == 4
    asked = len(judged.script.asked)
    again = await prepare(judged, entries, [request_for("smile", synthetic="prepared")])
    assert len(judged.script.asked) == asked == 3
    assert again[-1].synthetic.generated == 0
    assert again[-1].synthetic.stored == 4
    assert again[-1].cache_hits.computed == 0
    assert answers_of(again) == answers_of(first)


async def test_a_fallback_is_kept_told_and_not_tried_again(judged: HashEngine, request_for: Make) -> None:
    judged.script.on_generate = lambda need: said("Who knows?") if reference_of(need) == "b" else good_sentence(need)
    entries = [ReferenceEntry("q", ("a", "b")), ReferenceEntry("q", ("c",))]
    smile = request_for("smile", synthetic="prepared")
    first = await prepare(judged, entries, [smile])
    ((index, failure),) = failures_of(first)
    assert (index, failure.status) == (0, Status.UNPARSABLE)
    assert failure.message.startswith("references[1] is used unchanged: ")
    assert judged.prepared["set", "q", "b"] == "b"
    assert (first[-1].synthetic.generated, first[-1].synthetic.fallback, first[-1].synthetic.stored) == (2, 1, 3)
    assert ("embed", "a") in judged.computed, "the entry is prepared nevertheless"
    judged.script.on_generate = good_sentence
    asked = len(judged.script.asked)
    again = await prepare(judged, entries, [smile])
    assert len(judged.script.asked) == asked
    assert judged.prepared["set", "q", "b"] == "b"
    ((index, failure),) = failures_of(again)
    assert (index, failure.status) == (0, Status.UNPARSABLE)
    assert (again[-1].synthetic.generated, again[-1].synthetic.fallback) == (0, 1)


async def test_long_references_stand_for_themselves_without_a_word(judged: HashEngine) -> None:
    long = "It was " + "very " * 20 + "late."
    chunks = await prepare(judged, [ReferenceEntry("q", (long,))])
    assert judged.prepared == {("set", "q", long): long}
    assert not judged.script.asked
    assert (chunks[-1].synthetic.stored, chunks[-1].synthetic.generated, chunks[-1].synthetic.fallback) == (1, 0, 0)
    assert failures_of(chunks) == failures_of(await prepare(judged, [ReferenceEntry("q", (long,))])) == []


async def test_entries_that_cannot_be_written_for_fail_alone(judged: HashEngine, request_for: Make) -> None:
    entries = [
        ReferenceEntry(" ", ("a",)),
        ReferenceEntry("q", ()),
        ReferenceEntry("q", ("a", " ")),
        ReferenceEntry("q" * 40_000, ("a",)),
        ReferenceEntry("q", ("fine",)),
        ReferenceEntry(" ", ("a",), ("It is a.",)),
    ]
    chunks = await prepare(judged, entries, [request_for("smile", synthetic="prepared")])
    assert [(index, failure.status) for index, failure in failures_of(chunks)] == [
        (index, Status.INVALID_INPUT) for index in range(4)
    ]
    assert "synthetic answer is written from the question and the reference" in failures_of(chunks)[0][1].message
    assert judged.prepared == {("set", "q", "fine"): "It is surely fine.", ("set", " ", "a"): "It is a."}


async def test_a_judge_that_is_away_costs_only_what_it_was_asked_for(judged: HashEngine, request_for: Make) -> None:
    away = Failure(Status.TIMEOUT, "late")
    judged.script.on_generate = lambda need: away if reference_of(need) == "b" else good_sentence(need)
    entries = [ReferenceEntry("q", ("a", "b", "c")), ReferenceEntry("q", ("d",))]
    smile = request_for("smile", synthetic="prepared")
    chunks = await prepare(judged, entries, [smile])
    assert failures_of(chunks) == [(0, Failure(Status.TIMEOUT, "references[1]: late"))]
    assert set(judged.prepared) == {("set", "q", each) for each in "acd"}
    assert answers_of(chunks)[0] == ("It is surely a.", None, "It is surely c.")
    judged.script.on_generate = good_sentence
    asked = len(judged.script.asked)
    again = await prepare(judged, entries, [smile])
    assert failures_of(again) == []
    assert len(judged.script.asked) == asked + 1, "only what was missing"
    assert again[-1].synthetic.generated == 1


async def test_a_judge_that_says_when_it_is_back_is_waited_for(judged: HashEngine) -> None:
    calls = itertools.count()

    def restarting(need: Generate) -> Generated | Failure:
        return Failure(Status.UNAVAILABLE, "restarting", 0.001) if next(calls) < PATIENCE else good_sentence(need)

    judged.script.on_generate = restarting
    chunks = await prepare(judged, [ReferenceEntry("q", ("a",))])
    assert failures_of(chunks) == []
    assert judged.prepared == {("set", "q", "a"): "It is surely a."}


async def test_a_judge_that_stays_away_is_not_waited_for_for_ever(judged: HashEngine) -> None:
    judged.script.failure = Failure(Status.UNAVAILABLE, "restarting", 0.001)
    chunks = await prepare(judged, [ReferenceEntry("q", ("a",))])
    assert failures_of(chunks) == [(0, Failure(Status.UNAVAILABLE, "references[0]: restarting", 0.001))]
    assert len(judged.script.asked) == PATIENCE + 1
    assert judged.prepared == {}


async def test_nobody_is_waited_for_beyond_the_deadline(judged: HashEngine) -> None:
    judged.script.failure = Failure(Status.UNAVAILABLE, "restarting", 25.0)
    deadline_s = asyncio.get_running_loop().time() + 20
    chunks = await prepare(judged, [ReferenceEntry("q", ("a",))], deadline_s=deadline_s)
    assert [failure.status for _, failure in failures_of(chunks)] == [Status.UNAVAILABLE]
    assert judged.judge_deadlines_s == [deadline_s]


async def test_what_another_call_kept_first_is_taken(judged: HashEngine) -> None:
    def overtaken(need: Generate) -> Generated:
        judged.prepared["set", "q", reference_of(need)] = "Another call wrote this of a."
        return good_sentence(need)

    judged.script.on_generate = overtaken
    chunks = await prepare(judged, [ReferenceEntry("q", ("a",))])
    assert failures_of(chunks) == []
    assert judged.prepared == {("set", "q", "a"): "Another call wrote this of a."}
    assert answers_of(chunks) == {0: ("Another call wrote this of a.",)}
    assert (chunks[-1].synthetic.stored, chunks[-1].synthetic.generated) == (1, 0)


async def test_two_calls_at_once_keep_one_text(judged: HashEngine) -> None:
    numbers = itertools.count()
    judged.script.on_generate = lambda need: said(f"It is {reference_of(need)} for the time number {next(numbers)}.")
    entries = [ReferenceEntry("q", tuple(f"answer{index}" for index in range(20)))]
    one, other = await asyncio.gather(prepare(judged, entries), prepare(judged, entries))
    assert answers_of(one) == answers_of(other)
    assert answers_of(one)[0] == tuple(judged.prepared["set", "q", reference] for reference in entries[0].references)


async def test_a_store_that_fails_is_the_entrys_failure(judged: HashEngine) -> None:
    judged.failures["It is surely a."] = Failure(Status.UNAVAILABLE, "disk full")
    chunks = await prepare(judged, [ReferenceEntry("q", ("a", "b")), ReferenceEntry("q", ("c",))])
    assert failures_of(chunks) == [(0, Failure(Status.UNAVAILABLE, "references[0]: disk full"))]
    assert set(judged.prepared) == {("set", "q", "b"), ("set", "q", "c")}


async def test_progress_moves_with_the_sentences(judged: HashEngine) -> None:
    entries = [ReferenceEntry("q", (f"x{index}", f"y{index}")) for index in range(ENTRIES_PER_WRITTEN_CHUNK + 3)]
    chunks = await prepare(judged, entries)
    done = [chunk.entries_done for chunk in chunks]
    generated = [chunk.synthetic.generated for chunk in chunks]
    assert done == sorted(done)
    assert generated == sorted(generated)
    assert len(set(generated)) > 4
    assert (done[-1], generated[-1]) == (len(entries), 2 * len(entries))
    assert all(chunk.entries_done < ENTRIES_PER_WRITTEN_CHUNK for chunk in chunks[:3])


async def test_only_so_many_sentences_are_under_way(judged: HashEngine) -> None:
    gates: list[asyncio.Future[None]] = []

    def hold(_model: str) -> asyncio.Future[None]:
        gates.append(asyncio.get_running_loop().create_future())
        return gates[-1]

    judged.before = hold
    entries = [ReferenceEntry("q", tuple(f"r{index}" for index in range(3 * SENTENCES_AT_ONCE)))]
    running = asyncio.create_task(prepare(judged, entries))
    for _ in range(200):
        await asyncio.sleep(0)
    assert judged.running == SENTENCES_AT_ONCE
    while not running.done():
        for gate in gates:
            if not gate.done():
                gate.set_result(None)
        await asyncio.sleep(0)
    assert (await running)[-1].synthetic.generated == 3 * SENTENCES_AT_ONCE


async def test_who_stops_listening_stops_the_judge_and_keeps_what_is_written(judged: HashEngine) -> None:
    forever: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    calls = itertools.count()
    judged.before = lambda _model: None if next(calls) < 3 else forever
    entries = [ReferenceEntry("q", tuple(f"r{index}" for index in range(9)))]
    async with aclosing(Scorer(judged.ports).prepare(entries, [], reference_set="set", writing=WRITING)) as steps:
        await anext(steps)
        assert judged.running == 6
    assert judged.running == 0
    assert set(judged.prepared) == {("set", "q", f"r{index}") for index in range(3)}


@given(st.data())
def test_failure_of_one_never_shifts_another(data: st.DataObject) -> None:
    """Whatever each reference's fate: an answer that is kept is that of its own reference."""
    references = st.sampled_from([f"r{index}" for index in range(8)])
    rows = data.draw(st.lists(st.lists(references, min_size=1, max_size=4), min_size=1, max_size=5))
    fates = {f"r{index}": data.draw(st.sampled_from(["good", "bad", "away", "second"])) for index in range(8)}
    again: set[str] = set()

    def fate(need: Generate) -> Generated | Failure:
        reference = reference_of(need)
        if fates[reference] == "away":
            return Failure(Status.MODEL_UNAVAILABLE, "gone")
        if fates[reference] == "bad" or (fates[reference] == "second" and reference not in again):
            again.add(reference)
            return said("Who knows?")
        return good_sentence(need)

    engine = HashEngine()
    engine.script.on_generate = fate
    entries = [ReferenceEntry("Who is it, surely?", tuple(row)) for row in rows]
    chunks = asyncio.run(prepare(engine, entries))
    expected = {"good": "It is surely {}.", "second": "{0} It is surely {0}.", "bad": "{}"}
    for index, entry in enumerate(entries):
        assert answers_of(chunks)[index] == tuple(
            None if fates[each] == "away" else expected[fates[each]].format(each) for each in entry.references
        )
    stood = {index: failure.status for index, failure in failures_of(chunks)}
    for index, entry in enumerate(entries):
        found = {fates[each] for each in entry.references}
        worst = Status.MODEL_UNAVAILABLE if "away" in found else Status.UNPARSABLE if "bad" in found else None
        assert stood.get(index) == worst


async def prepare_prepare(
    engine: HashEngine, entries: Any, requests: Any, reference_set: str = "set"
) -> list[PreparedChunk]:
    return [chunk async for chunk in Scorer(engine.ports).prepare(entries, requests, reference_set=reference_set)]


async def test_progress_adds_up_chunk_by_chunk(engine: HashEngine, request_for: Make) -> None:
    count = 2 * ENTRIES_PER_CHUNK + 5
    entries = [ReferenceEntry(f"q{i}", (f"Answer {i}",)) for i in range(count)]
    chunks = await prepare_prepare(engine, entries, [request_for("smile")])
    assert [chunk.entries_done for chunk in chunks] == [ENTRIES_PER_CHUNK, 2 * ENTRIES_PER_CHUNK, count]
    # Each entry has two texts: "Answer 3" and "answer 3".
    assert [chunk.cache_hits.computed for chunk in chunks] == [2 * chunk.entries_done for chunk in chunks]
    assert all(not chunk.failures for chunk in chunks)


async def test_the_same_content_again_computes_nothing(engine: HashEngine, request_for: Make) -> None:
    entries = [ReferenceEntry("q", ("Yes", "No"), ("Yes, it is.", "No, it is not."))]
    requests = [request_for("smile", synthetic="prepared"), request_for("sbert")]
    (first,) = await prepare_prepare(engine, entries, requests)
    before = dict(engine.computed)
    (second,) = await prepare_prepare(engine, entries, requests)
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
    await prepare_prepare(engine, [entry], requests)
    before = set(engine.computed)
    statuses = []
    scorer = Scorer(engine.ports)
    corpora = scorer.corpora_of([item], reference_set="set")
    await scorer.score(
        [item], requests, corpora=corpora, emit=lambda _i, _m, result: statuses.append(result.result.status)
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
    (chunk,) = await prepare_prepare(engine, entries, [request_for("smile")])
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
    (chunk,) = await prepare_prepare(engine, entries, [request_for("smile", synthetic="prepared")])
    assert [(index, failure.status) for index, failure in chunk.failures] == [(2, Status.INVALID_INPUT)]
    assert engine.prepared == {("set", "q", "x"): "It is x."}
    assert chunk.synthetic.stored == 2


async def test_failures_name_the_entry_of_the_whole_set_once(engine: HashEngine, request_for: Make) -> None:
    entries = [ReferenceEntry("q", ("x",))] * ENTRIES_PER_CHUNK + [ReferenceEntry("q", ())]
    requests = [request_for("smile"), request_for("sbert"), request_for("exact_match")]
    first, second = await prepare_prepare(engine, entries, requests)
    assert first.failures == ()
    assert [index for index, _ in second.failures] == [ENTRIES_PER_CHUNK]


async def test_a_metric_that_cannot_be_had_is_everyones_failure_and_the_others_go_on(
    engine: HashEngine, request_for: Make
) -> None:
    missing = Failure(Status.MODEL_UNAVAILABLE, "build it")
    (chunk,) = await prepare_prepare(engine, [ReferenceEntry("q", ("x",))] * 2, [missing, request_for("sbert")])
    assert chunk.failures == ((0, missing), (1, missing))
    assert engine.computed == {("embed", "x"): 1}


async def test_a_text_that_fails_is_the_entrys_failure(engine: HashEngine, request_for: Make) -> None:
    failure = engine.failures["bad"] = Failure(Status.TIMEOUT, "late")
    (chunk,) = await prepare_prepare(
        engine, [ReferenceEntry("q", ("bad",)), ReferenceEntry("q", ("x",))], [request_for("sbert")]
    )
    assert chunk.failures == ((0, failure),)


async def test_no_entries_no_progress(engine: HashEngine, request_for: Make) -> None:
    assert await prepare_prepare(engine, [], [request_for("smile")]) == []
