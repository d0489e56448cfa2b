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

from gradewire_server.domain.item import Item, ReferenceEntry
from gradewire_server.domain.judge import Generate, Generated
from gradewire_server.domain.result import Failure, Status
from gradewire_server.metrics.judged.prompts import PACKAGE_PROMPTS
from gradewire_server.scoring import MetricRequest, PreparedChunk, Scorer
from gradewire_server.scoring.prepare import ENTRIES_PER_WRITTEN_CHUNK
from gradewire_server.scoring.synthetic.sentence import Writing
from gradewire_server.scoring.synthetic.writing import PATIENCE, SENTENCES_AT_ONCE

Make = Callable[..., MetricRequest]
WRITING = Writing("scripted@" + "0" * 64, PACKAGE_PROMPTS.find("synthetic", ""))
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
    await Scorer(judged.ports).score(
        [item], [smile], reference_set="set", emit=lambda *told: results.append(told[2].result)
    )
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
    assert failure.message.startswith("references[1] stands for itself: ")
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
    assert "synthetic answer is written from question and reference" in failures_of(chunks)[0][1].message
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
