"""Corpora: counted once, the same whatever the order, named by what was counted, and never stale."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.engines.hash_engine import HashEngine, token_vectors

from gradewire_proto.choices import Corpus
from gradewire_server.domain.items import Failure, Item, MetricResult, ReferenceEntry, ScoredResult, Status
from gradewire_server.domain.needs import CorpusStatistics, DocumentFrequencies, ReferenceEntries, Terms
from gradewire_server.metrics.overlap.cider import ngrams
from gradewire_server.scoring import MetricRequest, Scorer, corpus, program_runner
from gradewire_server.scoring.corpus import (
    Corpora,
    RequestCorpora,
    count_tokens,
    digest_of,
    distinct_references,
    entries_of,
    entry_of,
    name_of,
)

Make = Callable[..., MetricRequest]
NGRAMS = CorpusStatistics(Corpus.PREPARED, Terms.NGRAMS)
TOKENS = CorpusStatistics(Corpus.REQUEST, Terms.TOKENS, "hash")
ASKED = CorpusStatistics(Corpus.REQUEST, Terms.TOKENS, "hash", with_question=True)
ITEMS = [
    Item("1", "which?", ("a brown dog", "the dog"), "a brown dog runs"),
    Item("2", "which?", ("a red cat",), "the red cat"),
    Item("3", "who?", ("two men on a horse", "two riders"), "two men ride"),
    Item("4", "who?", ("the king",), "the king"),
]
_WORDS = st.text("ab ", min_size=1, max_size=6).filter(str.strip)
_PAIRS = st.lists(st.tuples(st.sampled_from(["", "q"]), st.lists(_WORDS, min_size=1, max_size=3)), max_size=6)


async def score(
    scorer: Scorer, items: Sequence[Item], requests: Sequence[MetricRequest], reference_set: str = ""
) -> dict[str, MetricResult]:
    """Results of the last metric by the item's id."""
    results: dict[str, MetricResult] = {}

    def emit(item: int, metric: int, scored: ScoredResult) -> None:
        if metric == len(requests) - 1:
            results[items[item].id] = scored.result

    await scorer.score(items, requests, corpora=scorer.corpora_of(items, reference_set=reference_set), emit=emit)
    return results


async def prepared(scorer: Scorer, items: Sequence[Item], request: MetricRequest, name: str) -> list[Failure]:
    entries = [ReferenceEntry(item.question, item.references) for item in items]
    chunks = [chunk async for chunk in scorer.prepare(entries, [request], reference_set=name)]
    return [failure for chunk in chunks for _, failure in chunk.failures]


def counted(answer: DocumentFrequencies | Failure) -> DocumentFrequencies:
    assert isinstance(answer, DocumentFrequencies)
    return answer


async def test_any_order_of_items_gives_the_same_scores_and_name(engine: HashEngine, request_for: Make) -> None:
    cider, scorer = request_for("cider"), Scorer(engine.ports)
    one = await score(scorer, ITEMS, [cider])
    other = await score(scorer, ITEMS[::-1], [cider])
    assert one == other
    assert {result.status for result in one.values()} == {Status.OK}
    (name,) = {result.parts.corpus for result in one.values()}  # type: ignore[union-attr]
    assert name.startswith("request:4:")
    # Repeated items, other predictions and repeated or reordered references make no further documents.
    again = [Item("5", each.question, each.references[::-1] + each.references, "x") for each in ITEMS]
    more = await score(scorer, [*ITEMS, *again], [cider])
    assert {key: more[key] for key in one} == one


async def test_items_that_no_metric_grades_are_left_out(engine: HashEngine, request_for: Make) -> None:
    bad = [Item("5", "q", (), "x"), Item("6", "q", ("x", "\u200b"), "x")]
    scorer, cider = Scorer(engine.ports), request_for("cider")
    alone, beside = await score(scorer, ITEMS, [cider]), await score(scorer, [*bad, *ITEMS], [cider])
    assert {key: beside[key] for key in alone} == alone
    assert [beside[key].status for key in ("5", "6")] == [Status.INVALID_INPUT] * 2
    # One with a blank prediction is graded as such, and its references count.
    empty = await score(scorer, [*ITEMS, Item("7", "q", ("a new one",), " ")], [cider])
    assert empty["7"].status is Status.EMPTY_PREDICTION
    assert empty["1"].parts.corpus.startswith("request:5:")  # type: ignore[union-attr]


async def test_a_request_without_any_references_has_no_corpus() -> None:
    answer = await RequestCorpora(Corpora(HashEngine().ports), [Item("1", "q", (), "x")], reference_set="").count(
        TOKENS
    )
    assert isinstance(answer, Failure)
    assert answer.status is Status.INVALID_INPUT


async def test_one_item_is_no_corpus_and_fails(engine: HashEngine, request_for: Make) -> None:
    results = await score(Scorer(engine.ports), ITEMS[:1], [request_for("cider")])
    assert results["1"].status is Status.INVALID_PARAMETER


async def test_a_request_counts_once_however_many_ask(
    engine: HashEngine, request_for: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: Counter[str] = Counter()

    def count(documents: Any) -> Any:
        calls["ngrams"] += 1
        return original(documents)

    original = corpus.document_frequencies
    monkeypatch.setattr(corpus, "document_frequencies", count)
    monkeypatch.setattr(program_runner, "MAX_TEXTS_PER_CALL", 1)  # so that the items ask in many calls
    items = [Item(str(n), f"q{n}", (f"answer {n}",), f"answer {n}") for n in range(50)]
    results = await score(Scorer(engine.ports), items, [request_for("cider"), request_for("cider")])
    assert {result.score for result in results.values()} == {5.0}
    assert calls["ngrams"] == 1


async def test_large_corpora_are_counted_beside_the_loop(
    engine: HashEngine, request_for: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []

    async def to_thread(work: Callable[[], Any]) -> Any:
        threads.append("one")
        return work()

    monkeypatch.setattr(asyncio, "to_thread", to_thread)
    small = await score(Scorer(engine.ports), ITEMS, [request_for("cider")])
    assert threads == []
    long = [Item(str(n), "q" * 4_000, ("a", "b"), "a") for n in range(2)]
    corpora = RequestCorpora(Corpora(engine.ports), long, reference_set="")
    counted(await corpora.count(TOKENS))
    assert threads == []
    counted(await corpora.count(ASKED))
    assert threads == ["one"] * 2, "questions are part of the work: texts and counts"
    for bound in ("_OFF_LOOP_CHARS", "_OFF_LOOP_ENTRIES"):
        threads.clear()
        with monkeypatch.context() as patch:
            patch.setattr(corpus, bound, 2)
            assert await score(Scorer(engine.ports), ITEMS, [request_for("cider")]) == small
        assert threads == ["one"]


async def test_a_prepared_set_is_read_once_until_it_grows(engine: HashEngine, request_for: Make) -> None:
    cider, scorer = request_for("cider", corpus="prepared"), Scorer(engine.ports)
    assert await prepared(scorer, ITEMS[:3], cider, "set") == []
    first = await score(scorer, ITEMS, [cider], "set")
    assert first["1"].parts.corpus.startswith("set:3:")  # type: ignore[union-attr]
    assert await score(scorer, ITEMS[::-1], [cider], "set") == first
    assert [kind for kind, *_ in engine.calls].count("entries") == 1
    assert await prepared(scorer, ITEMS[:3], cider, "set") == []
    assert await score(scorer, ITEMS, [cider], "set") == first
    assert [kind for kind, *_ in engine.calls].count("entries") == 1
    assert await prepared(scorer, ITEMS[3:], cider, "set") == []
    grown = await score(scorer, ITEMS, [cider], "set")
    assert grown["1"].parts.corpus.startswith("set:4:")  # type: ignore[union-attr]
    assert grown["1"].score != first["1"].score
    # The same entries are the same corpus, of whichever kind: only the first part of the name tells.
    request = await score(scorer, ITEMS, [request_for("cider")])
    assert request["1"].score == grown["1"].score
    names = [results["1"].parts.corpus.split(":", 1)[1] for results in (request, grown)]  # type: ignore[union-attr]
    assert names[0] == names[1]
    # And another process that reads it, in another order, says the same.
    assert await score(Scorer(engine.ports), ITEMS, [cider], "set") == grown


async def test_without_a_set_or_its_entries_it_is_not_prepared(engine: HashEngine, request_for: Make) -> None:
    cider = request_for("cider", corpus="prepared")
    for name in ("", "unknown"):
        results = await score(Scorer(engine.ports), ITEMS, [cider], name)
        assert {result.status for result in results.values()} == {Status.NOT_PREPARED}
        assert "References.Prepare" in results["1"].message
    assert "gradewire prepare FILE" in (await score(Scorer(engine.ports), ITEMS, [cider]))["1"].message


async def test_only_metrics_with_a_prepared_corpus_store_entries(engine: HashEngine, request_for: Make) -> None:
    scorer = Scorer(engine.ports)
    for request in (request_for("cider"), request_for("easy_match")):
        assert await prepared(scorer, ITEMS, request, "set") == []
    assert engine.corpora == {}
    bad = Item("5", "q", ("x", " "), "x")
    failures = await prepared(scorer, [*ITEMS, bad], request_for("cider", corpus="prepared"), "set")
    assert [failure.status for failure in failures] == [Status.INVALID_INPUT]
    assert engine.corpora["set"] == {entry_of(item.question, item.references) for item in ITEMS}


async def test_a_store_that_refuses_fails_the_entries_of_its_chunk(engine: HashEngine, request_for: Make) -> None:
    failure = engine.failures["the king"] = Failure(Status.UNAVAILABLE, "full")
    failures = await prepared(Scorer(engine.ports), ITEMS, request_for("cider", corpus="prepared"), "set")
    assert failures == [failure] * len(ITEMS)


async def test_tokens_are_counted_by_distinct_reference(engine: HashEngine) -> None:
    items = [*ITEMS, Item("5", "other", ("the king",), "x")]
    corpora = RequestCorpora(Corpora(engine.ports), items, reference_set="")
    answer, same = await asyncio.gather(corpora.count(TOKENS), corpora.count(TOKENS))
    assert same is answer, "who asks meanwhile waits for the same count"
    assert [kind for kind, *_ in engine.calls] == ["ids"]
    answer = counted(answer)
    texts = {text for item in items for text in item.references}
    assert answer.name.startswith(f"request:{len(texts)}:")
    assert answer.documents == len(texts) == 6
    expected = Counter(number for text in texts for number in set(token_vectors(text, 64).ids.tolist()))
    assert answer.counts == expected
    engine.failures["the king"] = failure = Failure(Status.MODEL_UNAVAILABLE, "gone")
    assert await RequestCorpora(Corpora(engine.ports), items, reference_set="").count(TOKENS) == failure


async def test_behind_questions_documents_are_the_texts_that_are_compared(engine: HashEngine) -> None:
    entries = [("who?", ("a king", "a king", "two men")), ("which?", ("a king",)), ("who? a", ("king",)), (" ", ("x",))]
    items = [Item(str(n), question, references, "y") for n, (question, references) in enumerate(entries)]
    corpora = RequestCorpora(Corpora(engine.ports), items, reference_set="")
    bare, asked = counted(await corpora.count(TOKENS)), counted(await corpora.count(ASKED))
    # Two entries make the same text, and one without a question none that would be compared.
    texts = {"who? a king", "who? two men", "which? a king"}
    assert asked.documents == 3
    assert asked.counts == Counter(number for text in texts for number in set(token_vectors(text, 64).ids.tolist()))
    assert bare.documents == 4
    assert asked.name.split(":")[2] != bare.name.split(":")[2], "the same entries, weighed otherwise"


async def test_a_set_is_counted_with_and_without_questions(engine: HashEngine) -> None:
    await engine.store_entries("set", entries_of((item.question, item.references) for item in ITEMS))
    await engine.store_entries("bare", entries_of([("", ("a", "b"))]))
    corpora = Corpora(engine.ports)
    bare, asked = counted(await corpora.of_set("set", TOKENS)), counted(await corpora.of_set("set", ASKED))
    assert bare.counts != asked.counts
    assert asked.name.startswith("set:6:")
    assert counted(await corpora.of_set("bare", TOKENS)).documents == 2
    unasked = await corpora.of_set("bare", ASKED)
    assert isinstance(unasked, Failure)
    assert unasked.status is Status.NOT_PREPARED
    assert "question" in unasked.message


async def test_a_request_that_gives_up_does_not_waste_the_count(engine: HashEngine) -> None:
    await engine.store_entries("set", entries_of((item.question, item.references) for item in ITEMS))
    corpora = Corpora(engine.ports)
    first = asyncio.create_task(corpora.of_set("set", NGRAMS))
    second = asyncio.create_task(corpora.of_set("set", NGRAMS))
    for _ in range(3):
        await asyncio.sleep(0)
    assert [kind for kind, *_ in engine.calls] == ["entries"], "it is at work"
    first.cancel()
    assert counted(await second).documents == len(ITEMS)
    assert [kind for kind, *_ in engine.calls].count("entries") == 1


async def test_what_is_remembered_is_bounded_in_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "MAX_REMEMBERED_TERMS", 5)
    engine = HashEngine()
    corpora = Corpora(engine.ports)
    for name in ("one", "two"):
        pairs = [(f"{name} {n}", ("a b", "b")) for n in range(3)]  # terms in several documents: a, b, (a b)
        await engine.store_entries(name, entries_of(pairs))
    for name in ("one", "one", "two", "two", "one"):
        assert len(counted(await corpora.of_set(name, NGRAMS)).counts) == 3
    read = [texts[0] for kind, _, texts, _ in engine.calls if kind == "entries"]
    assert read == ["one", "two", "one"]


@given(_PAIRS)
@settings(deadline=None)
def test_counts_are_those_of_a_plain_loop_over_distinct_entries(pairs: list[tuple[str, list[str]]]) -> None:
    entries = entries_of(pairs)
    assert set(entries) == {(question, tuple(sorted(set(references)))) for question, references in pairs}
    assert entries_of(pairs[::-1]) == entries == entries_of(entries)
    everything: Counter[Any] = Counter()
    for _, references in entries:
        everything.update({ngram for text in references for ngram in ngrams(text.split())})
    assert corpus.document_frequencies([references for _, references in entries]) == {
        ngram: count for ngram, count in everything.items() if count > 1
    }
    texts = distinct_references(entries)
    assert len(texts) == len(set(texts))
    ids = [token_vectors(text, 64).ids for text in texts]
    assert count_tokens(ids) == Counter(number for each in ids for number in set(each.tolist()))


@given(_PAIRS, _PAIRS)
def test_names_are_equal_exactly_where_the_entries_are(
    one: list[tuple[str, list[str]]], other: list[tuple[str, list[str]]]
) -> None:
    first, second = entries_of(one), entries_of(other)
    assert (name_of("x", 1, first) == name_of("x", 1, second[::-1])) is (first == second)


def test_names_tell_boundaries_apart() -> None:
    different: list[ReferenceEntries] = [
        (("ab", ("c",)),),
        (("a", ("bc",)),),
        (("a", ("b", "c")),),
        (("a", ("b",)), ("c", ("d",))),
        (("a", ("b", "c", "d")),),
    ]
    assert len({name_of("x", 1, entries) for entries in different}) == len(different)


def test_no_text_is_no_token() -> None:
    assert count_tokens([]) == {}
    assert count_tokens([np.array([], np.int32), np.array([7, 7], np.int32)]) == {7: 1}


ENTRIES = tuple(("what?", (f"text {index}",)) for index in range(4))


def reads(engine: HashEngine) -> int:
    return sum(call[0] == "entries" for call in engine.calls)


async def test_a_state_is_read_once_and_counted_from_what_was_read(engine: HashEngine) -> None:
    await engine.store_entries("set", ENTRIES)
    corpora = Corpora(engine.ports)
    found = await asyncio.gather(*(corpora.digest_of("set") for _ in range(5)))
    assert set(found) == {await digest_of(ENTRIES)}
    counted = await corpora.of_set("set", NGRAMS, str(found[0]))
    assert isinstance(counted, DocumentFrequencies)
    assert reads(engine) == 1


async def test_a_call_gets_the_corpus_that_it_began_with_or_none(
    engine: HashEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await engine.store_entries("set", ENTRIES[:2])
    corpora = Corpora(engine.ports)
    before = await corpora.digest_of("set")
    assert isinstance(before, str)
    counted = await corpora.of_set("set", NGRAMS, before)
    await engine.store_entries("set", ENTRIES)
    assert await corpora.of_set("set", NGRAMS, before) == counted, "it is remembered"
    monkeypatch.setattr(corpus, "_MAX_HELD_ENTRIES", 0)
    fresh = Corpora(engine.ports)
    assert await fresh.digest_of("set") != before
    late = await fresh.of_set("set", NGRAMS, before)
    assert isinstance(late, Failure)
    assert late.status is Status.UNAVAILABLE
    assert before in late.message


async def test_namespaces_see_their_own_sets_and_share_one_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "_MAX_REMEMBERED_DIGESTS", 2)
    engines = {name: HashEngine() for name in "abc"}
    root = Corpora(HashEngine().ports)
    views = {name: root.within(engine.ports, name) for name, engine in engines.items()}
    for index, (name, engine) in enumerate(engines.items()):
        await engine.store_entries("set", ENTRIES[: index + 1])
        assert await views[name].digest_of("set") == await digest_of(ENTRIES[: index + 1])
    for _ in range(2):
        assert await views["c"].digest_of("set") == await digest_of(ENTRIES[:3])
    assert reads(engines["c"]) == 1
    await views["a"].digest_of("set")
    assert reads(engines["a"]) == 2, "the oldest was forgotten, whosever it was"


@pytest.mark.parametrize("entries", [600, 3])
async def test_a_large_set_is_worked_out_beside_the_event_loop_alike(entries: int) -> None:
    many = tuple(("q", (f"text {index}",)) for index in range(entries))
    assert await digest_of(many) == await digest_of(many[::-1])
