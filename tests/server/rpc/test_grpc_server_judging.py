"""Judging on a real socket, over a judge that a test has written: what a pair gets, and what a call."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from grpc import aio
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from prometheus_client.samples import Sample
from tests.support.engines.hash_engine import HashEngine
from tests.support.judges.scripted import choice, preferring
from tests.support.servers.wire import Wire, error_of, wire_server

from gradewire_proto.v1 import judging_pb2, models_pb2, scoring_pb2, types_pb2
from gradewire_proto.wire_rules import token_of
from gradewire_server.domain.caller import Caller, Scope
from gradewire_server.domain.items import Failure, Status, Winner
from gradewire_server.domain.judge import Choice, Choose
from gradewire_server.settings.limits import Capacity, Limits
from gradewire_server.tenants.tokens import Authentication

Request = judging_pb2.CompareStreamRequest


class Scopes(Authentication):
    """Tokens are what they are good for."""

    def caller(self, authorization: str, peer: str) -> Caller:
        del peer
        return Caller("tenant", scopes=frozenset(map(Scope, token_of(authorization).split("+"))))


def longer(need: Choose) -> Choice:
    """A judge that prefers the longer answer, wherever it stands."""
    a = need.prompt.lead.partition("Answer A: ")[2].partition("\nAnswer B: ")[0]
    b = need.prompt.prediction
    label = "tie" if len(a) == len(b) else "A" if len(a) > len(b) else "B"
    return choice(need, [0.8 if option == label else 0.1 for option in need.options])


@pytest.fixture
async def judging() -> AsyncIterator[Wire]:
    async with wire_server() as wire:
        wire.engine.script.on_choose = longer
        yield wire


def pair(a: str = "the longer one", b: str = "short", **fields: Any) -> judging_pb2.Pair:
    return judging_pb2.Pair(question="which?", answer_a=a, answer_b=b, **fields)


def request(*pairs: judging_pb2.Pair, **parameters: Any) -> judging_pb2.CompareRequest:
    return judging_pb2.CompareRequest(pairs=pairs, parameters=types_pb2.CompareParameters(**parameters))


async def streamed(*batches: list[judging_pb2.Pair], **parameters: Any) -> AsyncIterator[Request]:
    yield Request(config=judging_pb2.CompareStreamConfig(parameters=types_pb2.CompareParameters(**parameters)))
    for batch in batches:
        yield Request(pairs=judging_pb2.CompareStreamPairs(pairs=batch))


async def test_pairs_come_back_in_order_with_both_orders_and_a_line(judging: Wire) -> None:
    reply = await judging.judging.Compare(request(pair(id="1"), pair("s", "longer"), pair("ab", "cd")))

    assert [each.winner for each in reply.pairs] == [Winner.A, Winner.B, Winner.TIE]
    assert {each.status for each in reply.pairs} == {types_pb2.STATUS_OK}
    assert [each.index for each in reply.pairs] == [0, 1, 2]
    first = reply.pairs[0]
    assert (first.id, first.decided_by) == ("1", "judge")
    assert (first.probability_a, first.probability_b, first.probability_tie) == pytest.approx((0.8, 0.1, 0.1))
    assert [order.first for order in first.orders] == [judging_pb2.PAIR_ANSWER_A, judging_pb2.PAIR_ANSWER_B]
    assert first.orders[0].label_mass == pytest.approx(0.9)
    assert first.cache_hits.computed == 2
    assert reply.provenance.name == "compare"
    assert reply.provenance.line.startswith(
        "compare:v1/1?caption=false&decision=both&image=false&mode=verdict&model=scr"
    )
    assert reply.provenance.metric.compare.decision == types_pb2.COMPARE_DECISION_BOTH
    # What the provenance says can be sent back as it is.
    again = await judging.judging.Compare(
        judging_pb2.CompareRequest(pairs=[pair()], parameters=reply.provenance.metric.compare)
    )
    assert again.provenance == reply.provenance


async def test_a_pair_judged_once_is_not_judged_again_nor_with_its_answers_swapped(judging: Wire) -> None:
    await judging.judging.Compare(request(pair()))
    asked = len(judging.engine.script.asked)
    reply = await judging.judging.Compare(request(pair(), pair("short", "the longer one")))
    assert len(judging.engine.script.asked) == asked == 2
    assert [each.winner for each in reply.pairs] == [Winner.A, Winner.B]


async def test_a_bad_pair_fails_alone(judging: Wire) -> None:
    bad = [
        pair("", "x"),
        judging_pb2.Pair(answer_a="a", answer_b="b"),
        pair(id="i" * 2000),
        pair("a" + "\u0301" * 200),
        pair("x " * 900_000),
        pair(references=["r"] * 2000),
    ]
    reply = await judging.judging.Compare(request(pair(), *bad, pair()))

    names = [types_pb2.Status.Name(each.status).removeprefix("STATUS_") for each in reply.pairs]
    assert names == ["OK", "EMPTY_PREDICTION", *["INVALID_INPUT"] * 5, "OK"]
    said = [each.message for each in reply.pairs]
    assert said[1].startswith("answer_a: ")
    assert said[2].startswith("question: is blank")
    assert said[3].startswith("id: has 2000 bytes")
    assert said[4].startswith("answer_a: ")
    assert said[5].startswith("pair: has 1800011 bytes of text")
    assert said[6].startswith("references: has 2000 references,")
    assert not any(each.winner or each.orders for each in reply.pairs[1:-1])


async def test_an_inconsistent_judge_has_a_status_of_its_own_and_is_counted(judging: Wire) -> None:
    judging.engine.script.on_choose = preferring("A")
    (result,) = (await judging.judging.Compare(request(pair()))).pairs
    assert (result.status, result.winner) == (types_pb2.STATUS_INCONSISTENT, 0)
    assert [order.winner for order in result.orders] == [Winner.A, Winner.B]
    assert (result.probability_a, result.probability_b) == pytest.approx((0.45, 0.45))
    counted = [
        sample
        for sample in samples(judging)
        if sample.name == "gradewire_results_total" and sample.labels["metric"] == "compare" and sample.value
    ]
    assert [(sample.labels["status"], sample.value) for sample in counted] == [("INCONSISTENT", 1.0)]


def samples(wire: Wire) -> list[Sample]:
    return [sample for family in wire.registry.collect() for sample in family.samples]


async def test_a_stream_answers_every_pair_and_fails_bad_ones_alone(judging: Wire) -> None:
    batches = [[pair(id=f"{batch}.{number}") for number in range(20)] for batch in range(4)]
    batches[1][3] = pair("", "x", id="1.3")
    replies = [reply async for reply in judging.judging.CompareStream(streamed(*batches))]

    assert replies[0].provenance.name == "compare"
    assert not any(reply.HasField("provenance") for reply in replies[1:])
    found = {each.index: each for reply in replies for each in reply.pairs}
    assert sorted(found) == list(range(80))
    assert found[23].id == "1.3"
    assert {index for index, each in found.items() if each.winner != Winner.A} == {23}
    assert judging.handlers.context.admission.streams.taken == 0
    assert judging.handlers.context.admission.stream_bytes.taken == 0


async def test_a_message_of_a_stream_leaves_memory_once_its_pairs_are_answered() -> None:
    # Of all streams' memory one gets an eighth: room for one of these messages at a time.
    async with wire_server(capacity=Capacity(max_stream_bytes=80_000)) as wire, asyncio.timeout(60):
        wire.engine.script.on_choose = longer
        batches = [[pair(f"{number} " * 400)] for number in range(6)]
        replies = [reply async for reply in wire.judging.CompareStream(streamed(*batches))]
        assert sorted(each.index for reply in replies for each in reply.pairs) == list(range(6))


@pytest.mark.parametrize(
    ("parameters", "field"),
    [({"mode": 9}, "parameters.mode"), ({"decision": -1}, "parameters.decision")],
)
async def test_an_unknown_number_names_its_field(judging: Wire, parameters: dict[str, Any], field: str) -> None:
    with pytest.raises(aio.AioRpcError) as caught:
        await judging.judging.Compare(request(pair(), **parameters))
    code, details, _ = error_of(caught)
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert details.startswith(f"{field}: unknown value")
    with pytest.raises(aio.AioRpcError) as caught:
        _ = [reply async for reply in judging.judging.CompareStream(streamed([pair()], **parameters))]
    assert error_of(caught)[1].startswith(f"config.{field}: unknown value")


async def test_a_parameter_out_of_range_fails_every_pair(judging: Wire) -> None:
    reply = await judging.judging.Compare(request(pair(), prompt="compare/9"))
    assert reply.pairs[0].status == types_pb2.STATUS_INVALID_PARAMETER
    assert reply.pairs[0].message.startswith("parameters.prompt: unknown prompt compare/9")
    assert reply.provenance.metric.WhichOneof("metric") == "compare"


async def test_a_judge_that_is_not_there_is_an_error_of_the_call(judging: Wire) -> None:
    with pytest.raises(aio.AioRpcError) as caught:
        await judging.judging.Compare(request(pair(), model="absent"))
    code, details, _ = error_of(caught)
    assert code is grpc.StatusCode.FAILED_PRECONDITION
    assert "parameters.model: " in details


async def test_what_keeps_a_judge_from_answering_is_told_for_each_pair(judging: Wire) -> None:
    judging.engine.script.failure = Failure(Status.UNAVAILABLE, "the worker died", retry_after_s=2.5)
    (result,) = (await judging.judging.Compare(request(pair()))).pairs
    assert (result.status, result.retry_after_s) == (types_pb2.STATUS_UNAVAILABLE, 2.5)


async def test_pairs_that_are_not_judged_in_time_are_late_beside_those_that_are(judging: Wire) -> None:
    await judging.judging.Compare(request(pair()))
    judging.engine.before = lambda _model: asyncio.get_running_loop().create_future()
    judging.engine.script.on_choose = longer
    reply = await judging.judging.Compare(request(pair("same", "same"), pair("one", "another")), timeout=1.0)
    assert [each.status for each in reply.pairs] == [types_pb2.STATUS_OK, types_pb2.STATUS_TIMEOUT]
    assert reply.pairs[0].decided_by == "rule"
    assert judging.handlers.context.admission.items.taken == 0


async def test_a_comparison_is_no_metric_of_items(judging: Wire) -> None:
    spec = types_pb2.MetricSpec(compare=types_pb2.CompareParameters())
    asked = scoring_pb2.ScoreRequest(items=[types_pb2.Item(references=["a"], prediction="a")], metrics=[spec])
    with pytest.raises(aio.AioRpcError) as caught:
        await judging.scoring.Score(asked)
    assert error_of(caught)[1] == ("metrics[0].compare: grades pairs of answers, not items; call Judging.Compare")


async def test_too_many_pairs_and_wrong_messages_of_a_stream_are_refused() -> None:
    async with wire_server(limits=Limits(max_items_per_request=3)) as wire:
        with pytest.raises(aio.AioRpcError) as caught:
            await wire.judging.Compare(request(*[pair()] * 4))
        assert error_of(caught)[1].startswith("pairs: ")
        with pytest.raises(aio.AioRpcError) as caught:
            await wire.judging.Compare(request(*[pair("x" * 2000)] * 4))
        assert error_of(caught)[1].startswith("pairs: has more than 3 elements;")
        with pytest.raises(aio.AioRpcError) as caught:
            _ = [reply async for reply in wire.judging.CompareStream(streamed([pair()] * 4))]
        assert "pairs" in error_of(caught)[1]
        stream = wire.judging.CompareStream(iter([Request(pairs=judging_pb2.CompareStreamPairs())]))
        with pytest.raises(aio.AioRpcError) as caught:
            _ = [reply async for reply in stream]
        assert error_of(caught)[1] == "config: must be set in the first message of a stream"


async def test_a_reply_that_cannot_fit_is_refused_by_name() -> None:
    async with wire_server(limits=Limits(max_message_bytes=2_000)) as wire:
        wire.engine.script.on_choose = longer
        with pytest.raises(aio.AioRpcError) as caught:
            await wire.judging.Compare(request(*[pair(f"answer {number}") for number in range(40)]))
        assert error_of(caught)[1].startswith("pairs: the reply for 40 pairs would exceed the limit of 2000 bytes")


async def test_an_empty_request_has_an_empty_reply(judging: Wire) -> None:
    reply = await judging.judging.Compare(judging_pb2.CompareRequest())
    assert (list(reply.pairs), reply.provenance.name) == ([], "compare")


@pytest.mark.parametrize("data", [b"\xff\xff", b"\x0a\x04\x12\x02\xff\xfe", b"\x0a\x7f"])
async def test_bytes_that_are_no_request_are_told_so(judging: Wire, data: bytes) -> None:
    with pytest.raises(aio.AioRpcError) as caught:
        await judging.channel.unary_unary("/gradewire.v1.Judging/Compare")(data)
    code, details, _ = error_of(caught)
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert "gradewire.v1.CompareRequest" in details


async def test_the_log_has_the_call_with_its_pairs(judging: Wire) -> None:
    await judging.judging.Compare(request(pair(), pair()))
    _ = [reply async for reply in judging.judging.CompareStream(streamed([pair()] * 3))]
    lines = await judging.log_lines()
    assert [(line["method"], line["items"], line["metrics"], line["code"]) for line in lines] == [
        ("gradewire.v1.Judging/Compare", 2, ["compare"], "OK"),
        ("gradewire.v1.Judging/CompareStream", 3, ["compare"], "OK"),
    ]


async def test_a_token_needs_the_scope_of_judges() -> None:
    async with wire_server(authentication=Scopes()) as wire:
        wire.engine.script.on_choose = longer
        stream = wire.judging.CompareStream(metadata=bearer("score"))
        async for message in streamed():
            await stream.write(message)  # and no other: a call that ends during a write fails with INTERNAL
        for call, field in (
            (wire.judging.Compare(request(pair()), metadata=bearer("score")), "parameters"),
            (stream, "config.parameters"),
        ):
            assert (await call.code()) is grpc.StatusCode.PERMISSION_DENIED
            assert (await call.details()).startswith(f"{field}: needs a token with the scope judge")
        reply = await wire.judging.Compare(request(pair()), metadata=bearer("score+judge"))
        assert reply.pairs[0].winner == Winner.A


def bearer(token: str) -> list[tuple[str, str]]:
    return [("authorization", f"Bearer {token}")]


async def test_the_list_of_models_has_the_comparison(judging: Wire) -> None:
    listed = await judging.models.List(models_pb2.ListModelsRequest())
    (compare,) = listed.comparisons
    assert (compare.name, compare.version, compare.needs_judge, compare.available) == ("compare", 1, True, True)
    assert "compare" not in {metric.name for metric in listed.metrics}
    async with wire_server(engine=HashEngine(judges=())) as wire:
        (compare,) = (await wire.models.List(models_pb2.ListModelsRequest())).comparisons
        assert (compare.available, bool(compare.missing)) == (False, True)


async def test_reflection_knows_the_service(judging: Wire) -> None:
    reflection: Any = reflection_pb2_grpc.ServerReflectionStub(judging.channel)
    call = reflection.ServerReflectionInfo(iter([reflection_pb2.ServerReflectionRequest(list_services="")]))
    names = {service.name for service in (await call.read()).list_services_response.service}
    call.cancel()
    assert "gradewire.v1.Judging" in names
