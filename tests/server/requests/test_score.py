"""A reply that cannot fit is refused before work, and what is built never outgrows a message."""

import grpc
import pytest
from grpc import aio
from hypothesis import given
from hypothesis import strategies as st
from tests.support.engines.hash_engine import HashEngine
from tests.support.servers.handlers import handlers_over
from tests.support.servers.wire import EXACT, SMILE, error_of, item, request, wire_server

from gradewire_proto.parts import VqaParts
from gradewire_proto.v1 import scoring_pb2, types_pb2
from gradewire_server.domain.items import Failure, MetricResult, ScoredResult, Status
from gradewire_server.requests.convert import ITEMS, fill_result
from gradewire_server.requests.errors import InvalidRequestError
from gradewire_server.requests.score import ReplySize
from gradewire_server.settings.limits import Limits

BROKEN = types_pb2.MetricSpec(smile=types_pb2.SmileParameters(sentence_weight=2))


@given(st.lists(st.tuples(st.text(max_size=40), st.text(max_size=300)), max_size=8))
def test_what_is_counted_is_never_less_than_the_reply(drawn: list[tuple[str, str]]) -> None:
    reply = scoring_pb2.ScoreResponse(provenance=[types_pb2.Provenance(name="vqa_accuracy")])
    size = ReplySize(1 << 20, len(drawn), reply.ByteSize(), ITEMS)
    for name, text in drawn:
        made = reply.items.add(id=name, complete=True)
        size.add_item(made)
        result = made.results.add()
        parts = VqaParts(agreeing=1, annotators=10, compared_prediction=text)
        fill_result(result, 0, ScoredResult(MetricResult(0.5, parts=parts)), diagnostics=True)
        assert size.add_result(result)
    assert reply.ByteSize() <= size._bytes <= reply.ByteSize() + 10 * (1 + len(drawn))


async def test_a_failed_metrics_results_are_counted_before_any_work() -> None:
    engine = HashEngine()
    handlers = handlers_over(engine, limits=Limits(max_message_bytes=17_000))
    with pytest.raises(
        InvalidRequestError, match=r"items: the reply for 200 items .* about (1[0-9][0-9]) at a time"
    ) as caught:
        await handlers.score(request(*[item("a cat")] * 200, metrics=(SMILE, BROKEN)))
    assert caught.value.field == "items"
    assert engine.calls == []
    fits = int(str(caught.value).partition("about ")[2].split()[0])
    reply = await handlers.score(request(*[item("a cat")] * (fits // 2), metrics=(EXACT, BROKEN)))
    assert reply.ByteSize() <= 17_000


async def test_one_failure_stands_in_every_result() -> None:
    reply = await handlers_over(HashEngine()).score(request(*[item("a cat")] * 3, metrics=(EXACT, BROKEN)))
    assert {each.results[1].message for each in reply.items} == {
        "metrics[1].smile.sentence_weight: must be a number from 0 to 1, not 2.0"
    }


async def test_a_reply_that_outgrows_a_message_ends_its_work_and_says_how_many_fit() -> None:
    engine = HashEngine()
    async with wire_server(engine=engine, limits=Limits(max_message_bytes=8_000)) as wire:
        with pytest.raises(aio.AioRpcError) as caught:
            await wire.scoring.Score(request(*[item(f"cat {n} sat") for n in range(80)]))
        code, details, _ = error_of(caught)
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        fits = int(details.partition("about ")[2].split()[0])
        assert 20 < fits < 80
        reply = await wire.scoring.Score(request(*[item(f"cat {n} sat") for n in range(fits * 3 // 4)]))
        assert all(each.results[0].status == types_pb2.STATUS_OK for each in reply.items)
        assert wire.handlers.context.admission.items.taken == 0
        assert [line["code"] for line in await wire.log_lines()] == ["INVALID_ARGUMENT", "OK"]
        assert engine.running == 0


def test_where_not_one_item_fits_the_metrics_are_named() -> None:
    size = ReplySize(100, 2, 0, ITEMS)
    with pytest.raises(InvalidRequestError, match="request fewer metrics at a time"):
        size.check_room_for([Failure(Status.UNAVAILABLE, "x" * 200)])
