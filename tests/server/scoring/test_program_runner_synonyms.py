"""Synonyms as a need: one look-up for all items of a call, and one failure for all where WordNet is missing."""

from collections.abc import Callable, Sequence

import pytest
from tests.support.engines.hash_engine import HashEngine

from gradewire_server.domain.items import Item, MetricResult, ScoredResult, Status
from gradewire_server.scoring import MetricRequest, Scorer

Make = Callable[..., MetricRequest]
ITEMS = [Item(str(n), "", ("the cat sat",), f"the guy {verb}") for n, verb in enumerate(("sat", "ran", "sat"))]


async def score(engine: HashEngine, requests: Sequence[MetricRequest]) -> dict[tuple[int, int], MetricResult]:
    results: dict[tuple[int, int], MetricResult] = {}

    def emit(item: int, metric: int, scored: ScoredResult) -> None:
        results[item, metric] = scored.result

    await Scorer(engine.ports).score(ITEMS, requests, emit=emit)
    return results


async def test_all_items_share_one_look_up_of_distinct_words(engine: HashEngine, request_for: Make) -> None:
    engine.known_synonyms = {"guy": frozenset({"guy", "cat"})}
    results = await score(engine, [request_for("meteor"), request_for("meteor", synonyms="none")])
    assert [call[2] for call in engine.calls if call[0] == "synonyms"] == [("guy", "ran")]
    parts = {key: result.parts for key, result in results.items()}
    # with synonyms: the, guy = cat, sat: 3, 2, 3 words; without: one word less
    assert [getattr(parts[item, 0], "matches", None) for item in range(3)] == [3, 2, 3]
    assert [getattr(parts[item, 1], "matches", None) for item in range(3)] == [2, 1, 2]
    assert results[0, 0].score == results[2, 0].score == pytest.approx(53 / 54)


async def test_a_missing_wordnet_fails_meteor_for_all_items_and_no_neighbour(
    engine: HashEngine, request_for: Make
) -> None:
    engine.known_synonyms = None
    results = await score(
        engine, [request_for("meteor"), request_for("rouge_l"), request_for("meteor", synonyms="none")]
    )
    assert {results[item, 0].status for item in range(3)} == {Status.MODEL_UNAVAILABLE}
    assert {results[item, metric].status for item in range(3) for metric in (1, 2)} == {Status.OK}
