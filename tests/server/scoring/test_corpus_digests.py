"""Which corpus a set is: worked out once for each state of it, and never another one than was said."""

import asyncio

import pytest
from tests.support.engines.hash_engine import HashEngine

from gradewire_server.domain.needs import Corpus, CorpusStatistics, DocumentFrequencies, Terms
from gradewire_server.domain.result import Failure, Status
from gradewire_server.scoring import corpus_digests
from gradewire_server.scoring.corpus import Corpora
from gradewire_server.scoring.corpus_digests import CorpusDigests, digest_of

ENTRIES = tuple(("what?", (f"text {index}",)) for index in range(4))
NGRAMS = CorpusStatistics(Corpus.PREPARED, Terms.NGRAMS)


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
    monkeypatch.setattr(corpus_digests, "_MAX_HELD_ENTRIES", 0)
    fresh = Corpora(engine.ports)
    assert await fresh.digest_of("set") != before
    late = await fresh.of_set("set", NGRAMS, before)
    assert isinstance(late, Failure)
    assert late.status is Status.UNAVAILABLE
    assert before in late.message


async def test_namespaces_see_their_own_sets_and_share_one_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus_digests, "_MAX_REMEMBERED", 2)
    engines = {name: HashEngine() for name in "abc"}
    root = CorpusDigests(HashEngine().ports.reference_sets)
    views = {name: root.within(engine.ports.reference_sets, name) for name, engine in engines.items()}
    for index, (name, engine) in enumerate(engines.items()):
        await engine.store_entries("set", ENTRIES[: index + 1])
        assert await views[name].of_set("set") == await digest_of(ENTRIES[: index + 1])
    for _ in range(2):
        assert await views["c"].of_set("set") == await digest_of(ENTRIES[:3])
    assert reads(engines["c"]) == 1
    await views["a"].of_set("set")
    assert reads(engines["a"]) == 2, "the oldest was forgotten, whosever it was"


@pytest.mark.parametrize("entries", [600, 3])
async def test_a_large_set_is_worked_out_beside_the_event_loop_alike(entries: int) -> None:
    many = tuple(("q", (f"text {index}",)) for index in range(entries))
    assert await digest_of(many) == await digest_of(many[::-1])
