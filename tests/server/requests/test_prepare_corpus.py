"""Corpora over the wire: what a stream refuses, what Prepare stores, and what the provenance names."""

import pytest
from tests.support.engines.hash_engine import HashEngine
from tests.support.servers.wire import EXACT, Wire, item, request, wire_server

from gradewire_proto.choices import Corpus
from gradewire_proto.v1 import references_pb2, scoring_pb2, types_pb2
from gradewire_server.domain.items import Failure

CIDER = types_pb2.MetricSpec(cider=types_pb2.CiderParameters())
PREPARED = types_pb2.MetricSpec(cider=types_pb2.CiderParameters(corpus=types_pb2.CORPUS_PREPARED))
REFERENCES = ["a dog", "a cat", "two birds", "Cafe\u0301"]
ITEMS = [item(text, text, item_id=str(index)) for index, text in enumerate(REFERENCES)]


async def streamed(wire: Wire, *metrics: types_pb2.MetricSpec, reference_set: str = "") -> list[types_pb2.MetricResult]:
    """Results of a stream, by item and metric."""
    config = scoring_pb2.ScoreStreamConfig(metrics=metrics, reference_set=reference_set)
    messages = [
        scoring_pb2.ScoreStreamRequest(config=config),
        scoring_pb2.ScoreStreamRequest(items=scoring_pb2.ScoreStreamItems(items=ITEMS)),
    ]
    replies = [reply async for reply in wire.scoring.ScoreStream(iter(messages))]
    parts = sorted((part for reply in replies for part in reply.items), key=lambda part: part.index)
    return [result for part in parts for result in sorted(part.results, key=lambda each: each.metric_index)]


async def prepare(wire: Wire, *references: str, reference_set: str = "") -> references_pb2.PrepareProgress:
    entries = [references_pb2.ReferenceEntry(question="what?", references=[text]) for text in references]
    call = references_pb2.PrepareRequest(entries=entries, metrics=[PREPARED], reference_set=reference_set)
    last = [progress async for progress in wire.references.Prepare(call)][-1]
    assert last.complete
    assert not last.failures
    return last


async def test_a_stream_has_no_request_corpus_and_scores_the_rest(wire: Wire) -> None:
    results = await streamed(wire, CIDER, EXACT)
    refused, scored = results[::2], results[1::2]
    assert {result.status for result in refused} == {types_pb2.STATUS_INVALID_PARAMETER}
    assert "Prepare a reference set" in refused[0].message
    assert "Score" in refused[0].message
    assert [result.score for result in scored] == [1.0] * len(ITEMS)


async def test_a_unary_call_is_its_own_corpus(wire: Wire) -> None:
    reply = await wire.scoring.Score(request(*ITEMS, metrics=(CIDER,)))
    results = [each.results[0] for each in reply.items]
    assert [result.score for result in results] == pytest.approx([5, 5, 5, 2.5])
    assert results[0].cider.corpus.startswith("request:4:")
    assert sum(results[0].cider.by_order) / 4 == pytest.approx(results[0].score)
    assert reply.provenance[0].line == "cider/1?answer=whole&corpus=request"
    assert reply.provenance[0].metric.cider.corpus == types_pb2.CORPUS_REQUEST


async def test_a_prepared_set_scores_calls_and_streams_alike(wire: Wire) -> None:
    assert (await prepare(wire, *REFERENCES[:2], reference_set="animals")).reference_set == "animals"
    last = await prepare(wire, *REFERENCES[2:], reference_set="animals")
    line = "cider/1?answer=whole&corpus=prepared&reference_set=animals"
    assert last.provenance[0].line == line
    asked = request(*ITEMS, metrics=(PREPARED,))
    asked.reference_set = "animals"
    reply = await wire.scoring.Score(asked)
    provenance = reply.provenance[0]
    assert provenance.reference_set == "animals"
    assert len(provenance.corpus_digest) == 32
    assert provenance.line == f"{line}@{provenance.corpus_digest[:12]}"
    unary = [each.results[0] for each in reply.items]
    assert {result.cider.corpus for result in unary} == {unary[0].cider.corpus}
    assert unary[0].cider.corpus.startswith("animals:4:")
    results = await streamed(wire, PREPARED, reference_set="animals")
    assert [result.score for result in results] == [result.score for result in unary]
    assert [result.cider for result in results] == [result.cider for result in unary]
    # Alone, in another call, the score is the same: the corpus is not the call's.
    alone = request(ITEMS[0], metrics=(PREPARED,))
    alone.reference_set = "animals"
    assert (await wire.scoring.Score(alone)).items[0].results[0].score == unary[0].score


async def test_entries_are_kept_in_normal_form(wire: Wire) -> None:
    await prepare(wire, "Cafe\u0301", reference_set="set")
    await prepare(wire, "Caf\u00e9", reference_set="set")
    assert await wire.engine.entries("set") == (("what?", ("Caf\u00e9",)),)


async def test_a_set_that_was_prepared_for_other_metrics_is_not_a_corpus(wire: Wire) -> None:
    call = references_pb2.PrepareRequest(
        entries=[references_pb2.ReferenceEntry(references=["a"])], metrics=[CIDER, EXACT], reference_set="set"
    )
    assert [progress async for progress in wire.references.Prepare(call)][-1].complete
    asked = request(*ITEMS, metrics=(PREPARED,))
    asked.reference_set = "set"
    for name in ("", "set"):
        asked.reference_set = name
        reply = await wire.scoring.Score(asked)
        assert {each.results[0].status for each in reply.items} == {types_pb2.STATUS_NOT_PREPARED}


async def test_no_corpus_is_a_bad_parameter_of_cider() -> None:
    none = types_pb2.MetricSpec(cider=types_pb2.CiderParameters(corpus=types_pb2.CORPUS_NONE))
    async with wire_server(engine=HashEngine()) as wire:
        reply = await wire.scoring.Score(request(*ITEMS, metrics=(none, EXACT)))
        assert {each.results[0].status for each in reply.items} == {types_pb2.STATUS_INVALID_PARAMETER}
        assert {each.results[1].status for each in reply.items} == {types_pb2.STATUS_OK}


async def test_the_plan_of_a_stream_differs_in_nothing_else(wire: Wire) -> None:
    asked, prepared, other = await wire.handlers.context.plan([CIDER, PREPARED, EXACT])
    assert isinstance(asked.streamed(), Failure)
    assert prepared.streamed() is prepared.request
    assert other.streamed() is other.request
    assert not isinstance(asked.request, Failure)
    assert asked.request.parameters.corpus is Corpus.REQUEST
