"""Calls over a real socket: bad input, errors, permits, cancelling, log and metrics."""

import asyncio
import io
import json
import logging
import random
from collections import Counter
from typing import Any

import grpc
import pytest
from grpc import aio
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from tests.support.servers.wire import EXACT, SMILE, Wire, error_of, item, request, until, wire_server

from gradewire_proto.v1 import models_pb2, references_pb2, scoring_pb2, types_pb2
from gradewire_server.metrics.registry import REGISTRY
from gradewire_server.requests.context import RequestContext
from gradewire_server.requests.handlers import Handlers
from gradewire_server.rpc.log import JsonFormatter
from gradewire_server.settings.limits import Capacity, Deadlines, Limits

OK = types_pb2.STATUS_OK


def statuses(reply: scoring_pb2.ScoreResponse) -> list[list[str]]:
    return [[types_pb2.Status.Name(result.status) for result in scored.results] for scored in reply.items]


def hold(wire: Wire) -> "asyncio.Future[None]":
    """Makes the engine's calls wait until the future is done."""
    gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    wire.engine.before = lambda _model: asyncio.shield(gate)
    return gate


async def test_a_bad_item_fails_alone_and_order_is_kept(wire: Wire) -> None:
    items = [
        item(item_id="a"),
        types_pb2.Item(id="b", prediction="no references"),
        item("blank", " ", item_id="c"),
        item("", item_id="d"),
        item("nul \0 here", "nul \0", item_id="e"),
        item(item_id="a"),
    ]
    reply = await wire.scoring.Score(request(*items, metrics=(SMILE, EXACT)))
    assert [(scored.index, scored.id, scored.complete) for scored in reply.items] == [
        (index, items[index].id, True) for index in range(6)
    ]
    assert statuses(reply) == [
        ["STATUS_OK"] * 2,
        ["STATUS_INVALID_INPUT"] * 2,
        ["STATUS_INVALID_INPUT"] * 2,
        ["STATUS_EMPTY_PREDICTION"] * 2,
        ["STATUS_OK"] * 2,
        ["STATUS_OK"] * 2,
    ]
    assert reply.items[0].results[0].score == reply.items[5].results[0].score
    assert [provenance.name for provenance in reply.provenance] == ["smile", "exact_match"]
    assert [result.metric_index for result in reply.items[0].results] == [0, 1]
    assert reply.server_s > 0


async def test_items_over_a_limit_fail_alone() -> None:
    limits = Limits(max_references_per_item=2, max_item_bytes=1000)
    async with wire_server(limits=limits) as wire:
        items = [item("x", "a", "b", "c"), item("y" * 1000), item()]
        reply = await wire.scoring.Score(request(*items))
    assert statuses(reply) == [["STATUS_INVALID_INPUT"], ["STATUS_INVALID_INPUT"], ["STATUS_OK"]]
    assert "at most 2" in reply.items[0].results[0].message
    assert "at most 1000" in reply.items[1].results[0].message


async def test_an_empty_request_has_an_empty_reply(wire: Wire) -> None:
    reply = await wire.scoring.Score(scoring_pb2.ScoreRequest())
    assert not reply.items
    assert not reply.provenance


async def test_diagnostics_can_be_left_out(wire: Wire) -> None:
    asked = request(item())
    full = await wire.scoring.Score(asked)
    asked.omit_diagnostics = True
    bare = await wire.scoring.Score(asked)
    assert full.items[0].results[0].HasField("cache_hits")
    assert not bare.items[0].results[0].HasField("cache_hits")
    assert not bare.items[0].results[0].HasField("timing")


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        (request(item(), metrics=()), "metrics:"),
        (request(item(), metrics=(SMILE, types_pb2.MetricSpec())), "metrics[1]:"),
        (
            request(item(), metrics=(types_pb2.MetricSpec(smile=types_pb2.SmileParameters(preset=99)),)),  # type: ignore[arg-type]
            "metrics[0].smile.preset:",
        ),
        (request(item(), metrics=(SMILE,) * 33), "metrics: has 33"),
        (request(*[types_pb2.Item()] * 100_000), "items: has more than 4096 elements;"),
        (scoring_pb2.ScoreRequest(items=[item()], metrics=[SMILE], reference_set="x" * 300), "reference_set:"),
    ],
)
async def test_what_is_wrong_is_named(wire: Wire, asked: scoring_pb2.ScoreRequest, field: str) -> None:
    with pytest.raises(aio.AioRpcError) as caught:
        await wire.scoring.Score(asked)
    code, details, _ = error_of(caught)
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert details.startswith(field)
    assert wire.engine.calls == []


@pytest.mark.parametrize("bad", [b"\xff", b"\xed\xa0\x80", b"\xc0\x80"], ids=["byte", "surrogate", "overlong"])
async def test_invalid_utf8_fails_cleanly_and_the_connection_lives_on(wire: Wire, bad: bytes) -> None:
    good = request(item("MARK")).SerializeToString()
    with pytest.raises(aio.AioRpcError) as caught:
        await wire.score_bytes(good.replace(b"MARK", (bad + b"MARK")[:4]))
    code, details, _ = error_of(caught)
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert "UTF-8" in details
    assert scoring_pb2.ScoreResponse.FromString(await wire.score_bytes(good)).items[0].results[0].status == OK


async def test_garbage_fails_cleanly(wire: Wire) -> None:
    with pytest.raises(aio.AioRpcError) as caught:
        await wire.score_bytes(b"\xff\xff\xff\xff garbage")
    assert error_of(caught)[0] is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_message_over_the_limit_is_refused_by_grpc() -> None:
    async with wire_server(limits=Limits(max_message_bytes=10_000)) as wire:
        with pytest.raises(aio.AioRpcError) as caught:
            await wire.scoring.Score(request(item("x" * 10_000)))
    code, _, metadata = error_of(caught)
    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "grpc-retry-pushback-ms" not in metadata


async def test_calls_beyond_those_of_one_connection_wait_in_the_client(wire: Wire) -> None:
    calls = [wire.scoring.Score(request(item(), metrics=(EXACT,))) for _ in range(1000)]
    assert {await call.code() for call in calls} == {grpc.StatusCode.OK}


async def test_a_compressed_message_is_refused_and_the_connection_lives_on(wire: Wire) -> None:
    with pytest.raises(aio.AioRpcError) as caught:
        await wire.scoring.Score(request(item("x" * 5000), metrics=(EXACT,)), compression=grpc.Compression.Gzip)
    code, details, _ = error_of(caught)
    assert code is grpc.StatusCode.UNIMPLEMENTED
    assert "gzip" in details
    assert statuses(await wire.scoring.Score(request(item(), metrics=(EXACT,)))) == [["STATUS_OK"]]


async def test_a_reply_over_the_limit_says_what_to_do() -> None:
    async with wire_server(limits=Limits(max_message_bytes=4000)) as wire:
        with pytest.raises(aio.AioRpcError) as caught:
            await wire.scoring.Score(request(*[item("a")] * 60))
    code, details, _ = error_of(caught)
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert "exceed the limit of 4000 bytes; send about" in details


async def test_nothing_loaded_fails_the_call(wire: Wire) -> None:
    absent = types_pb2.MetricSpec(smile=types_pb2.SmileParameters(model="absent"))
    with pytest.raises(aio.AioRpcError) as caught:
        await wire.scoring.Score(request(item(), metrics=(absent,)))
    code, details, _ = error_of(caught)
    assert code is grpc.StatusCode.FAILED_PRECONDITION
    assert "hash" in details
    reply = await wire.scoring.Score(request(item(), metrics=(absent, EXACT)))
    assert statuses(reply) == [["STATUS_MODEL_UNAVAILABLE", "STATUS_OK"]]


async def test_too_much_in_flight_is_pushed_back_before_any_work() -> None:
    async with wire_server(capacity=Capacity(max_items=3)) as wire:
        gate = hold(wire)
        first = asyncio.ensure_future(wire.scoring.Score(request(item("one"), item("two"))))
        await until(lambda: wire.engine.running == 1)
        calls = len(wire.engine.calls)
        with pytest.raises(aio.AioRpcError) as caught:
            await wire.scoring.Score(request(item("three"), item("four")))
        code, _, metadata = error_of(caught)
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert 1 <= int(metadata["grpc-retry-pushback-ms"]) <= 5000
        assert len(wire.engine.calls) == calls
        gate.set_result(None)
        assert len((await first).items) == 2
        assert len((await wire.scoring.Score(request(item("three"), item("four")))).items) == 2


async def test_bytes_in_flight_are_bounded_too() -> None:
    async with wire_server(capacity=Capacity(max_bytes=1000)) as wire:
        gate = hold(wire)
        first = asyncio.ensure_future(wire.scoring.Score(request(item("a" * 700))))
        await until(lambda: wire.engine.running == 1)
        with pytest.raises(aio.AioRpcError) as caught:
            await wire.scoring.Score(request(item("b" * 700)))
        assert error_of(caught)[0] is grpc.StatusCode.RESOURCE_EXHAUSTED
        gate.set_result(None)
        await first


async def test_a_client_with_a_retry_policy_obeys_the_pushback() -> None:
    policy = json.dumps(
        {
            "methodConfig": [
                {
                    "name": [{}],
                    "retryPolicy": {
                        "maxAttempts": 5,
                        "initialBackoff": "30s",
                        "maxBackoff": "30s",
                        "backoffMultiplier": 1,
                        "retryableStatusCodes": ["RESOURCE_EXHAUSTED"],
                    },
                }
            ]
        }
    )
    async with (
        wire_server(capacity=Capacity(max_items=1)) as wire,
        aio.insecure_channel(f"127.0.0.1:{wire.port}", options=[("grpc.service_config", policy)]) as channel,
    ):
        gate = hold(wire)
        first = asyncio.ensure_future(wire.scoring.Score(request(item("one"))))
        await until(lambda: wire.engine.running == 1)
        call = channel.unary_unary(
            "/gradewire.v1.Scoring/Score",
            request_serializer=scoring_pb2.ScoreRequest.SerializeToString,
            response_deserializer=scoring_pb2.ScoreResponse.FromString,
        )
        second = asyncio.ensure_future(call(request(item("two")), timeout=20))
        await until(lambda: wire.registry.get_sample_value(*counted("RESOURCE_EXHAUSTED")))
        gate.set_result(None)
        await first
        assert len((await second).items) == 1, "without the pushback it would wait for 30 s and time out"


def counted(code: str, method: str = "gradewire.v1.Scoring/Score") -> tuple[str, dict[str, str]]:
    return "gradewire_calls_total", {"method": method, "code": code}


async def test_cancelling_reaches_the_engine_and_leaves_the_others_right(wire: Wire) -> None:
    expected = (await wire.scoring.Score(request(item("other one")))).items[0].results[0].score
    gate = hold(wire)
    calls = [wire.scoring.Score(request(item(f"answer {number}"))) for number in range(6)]
    other = asyncio.ensure_future(wire.scoring.Score(request(item("other one"))))
    await until(lambda: wire.engine.running == 7)
    for call in calls:
        call.cancel()
    await until(lambda: wire.engine.running == 1)
    gate.set_result(None)
    assert (await other).items[0].results[0].score == expected
    await until(lambda: wire.handlers.context.admission.items.taken == 0)
    assert wire.handlers.context.admission.bytes.taken == 0
    assert wire.registry.get_sample_value(*counted("CANCELLED")) == 6


async def test_the_callers_deadline_reaches_the_engine(wire: Wire) -> None:
    hold(wire)
    asked = request(*[item(f"answer {n}") for n in range(50)])
    # Of 1 s the server keeps an eighth back for its reply, of 20 s a whole second: enough where the machine is busy.
    for timeout_s in (1, 5, 20):
        call = wire.scoring.Score(asked, timeout=timeout_s)
        code = await call.code()
        await until(lambda: wire.engine.running == 0)
        if wire.engine.calls and code is not grpc.StatusCode.DEADLINE_EXCEEDED:
            break
    assert wire.engine.calls
    assert statuses(await call) == [["STATUS_TIMEOUT"]] * 50


async def test_the_default_deadline_ends_a_call_without_one() -> None:
    async with wire_server(deadlines=Deadlines(default_s=0.05)) as wire:
        hold(wire)
        assert statuses(await wire.scoring.Score(request(item()))) == [["STATUS_TIMEOUT"]]
        await until(lambda: wire.engine.running == 0)


async def test_a_defect_leaks_nothing_but_the_request_id(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> models_pb2.ListModelsResponse:
        raise RuntimeError("the secret of the house")

    def defective(context: RequestContext) -> Handlers:
        handlers = Handlers(context)
        handlers.list_models = fail
        return handlers

    async with wire_server(make_handlers=defective) as wire:
        with pytest.raises(aio.AioRpcError) as caught:
            await wire.models.List(models_pb2.ListModelsRequest(), metadata=[("x-request-id", "mine-1")])
    code, details, metadata = error_of(caught)
    assert code is grpc.StatusCode.INTERNAL
    assert "secret" not in details
    assert "mine-1" in details
    assert metadata["x-request-id"] == "mine-1"
    assert "mine-1" in caplog.text
    assert "the secret of the house" in caplog.text


async def test_a_defect_of_one_pair_is_logged_under_its_request_id(wire: Wire) -> None:
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    handler.setFormatter(JsonFormatter())

    def fail(_model: str) -> None:
        raise ZeroDivisionError

    wire.engine.before = fail
    logging.getLogger("gradewire_server").addHandler(handler)
    try:
        calls = [
            wire.scoring.Score(request(item(name), metrics=(SMILE, EXACT)), metadata=[("x-request-id", name)])
            for name in ("one", "two")
        ]
        replies = [await call for call in calls]
        stream = wire.scoring.ScoreStream(
            iter(
                [
                    scoring_pb2.ScoreStreamRequest(config=scoring_pb2.ScoreStreamConfig(metrics=[SMILE])),
                    scoring_pb2.ScoreStreamRequest(items=scoring_pb2.ScoreStreamItems(items=[item("three")])),
                ]
            ),
            metadata=[("x-request-id", "three")],
        )
        assert [part.results[0].status async for reply in stream for part in reply.items] == [types_pb2.STATUS_INTERNAL]
    finally:
        logging.getLogger("gradewire_server").removeHandler(handler)
    assert [statuses(reply) for reply in replies] == [[["STATUS_INTERNAL", "STATUS_OK"]]] * 2
    lines = [json.loads(line) for line in text.getvalue().splitlines()]
    assert {line["request_id"] for line in lines if "ZeroDivisionError" in line["event"]} == {"one", "two", "three"}
    told = [line["request_id"] for line in lines if "is INTERNAL" in line["event"]]
    assert sorted(told) == ["one", "three", "two"]


async def test_request_ids_that_could_harm_the_log_are_replaced(wire: Wire) -> None:
    for given in ("a b", '"', "x" * 129):
        with pytest.raises(aio.AioRpcError) as caught:
            await wire.scoring.Score(request(item(), metrics=()), metadata=[("x-request-id", given)])
        assert error_of(caught)[2]["x-request-id"] not in {given, ""}


async def test_nothing_is_served_while_loading() -> None:
    async with wire_server(serving=False) as wire:
        for service in ("", "gradewire.v1.Scoring", "gradewire.v1.References", "gradewire.v1.Models"):
            assert await wire.health(service) == "NOT_SERVING"
        with pytest.raises(aio.AioRpcError) as caught:
            await wire.scoring.Score(request(item()))
        assert error_of(caught)[0] is grpc.StatusCode.UNAVAILABLE
        wire.lifecycle.serving(wire.handlers)
        assert await wire.health("gradewire.v1.Scoring") == "SERVING"
        assert statuses(await wire.scoring.Score(request(item()))) == [["STATUS_OK"]]


async def test_models_are_listed_with_metrics_and_limits(wire: Wire) -> None:
    reply = await wire.models.List(models_pb2.ListModelsRequest())
    assert [(model.name, model.kind) for model in reply.models] == [
        ("hash", "encoder"),
        ("words", "grader"),
        ("scripted", "judge"),
    ]
    assert [metric.name for metric in reply.metrics] == list(REGISTRY)
    assert all(metric.available for metric in reply.metrics)
    assert reply.limits.max_items_per_request == Limits().max_items_per_request
    assert reply.limits.max_windows == 512


async def test_prepare_tells_of_progress_and_fills_the_cache(wire: Wire) -> None:
    entries = [
        references_pb2.ReferenceEntry(question=f"q{number}", references=[f"answer {number}", "both"])
        for number in range(100)
    ]
    entries.append(references_pb2.ReferenceEntry(question="bad", references=[" "]))
    asked = references_pb2.PrepareRequest(entries=entries, metrics=[SMILE])
    steps = [step async for step in wire.references.Prepare(asked)]
    assert [step.complete for step in steps] == [False] * (len(steps) - 1) + [True]
    assert len(steps) >= 3, "several chunks"
    last = steps[-1]
    assert (last.entries_done, last.entries_total) == (101, 101)
    assert [failure.index for step in steps for failure in step.failures] == [100]
    assert len(last.reference_set) == 32
    assert last.provenance[0].name == "smile"
    wire.engine.computed.clear()
    again = [step async for step in wire.references.Prepare(asked)][-1]
    assert again.reference_set == last.reference_set
    assert again.cache_hits.computed == 0
    assert not wire.engine.computed
    await wire.scoring.Score(request(item("something", "answer 3", "both")))
    assert all("answer" not in text for _, text in wire.engine.computed)


async def test_prepared_answers_are_found_by_the_set_they_were_stored_under(wire: Wire) -> None:
    prepared = types_pb2.MetricSpec(smile=types_pb2.SmileParameters(synthetic=types_pb2.SYNTHETIC_MODE_PREPARED))
    asked = request(item(), metrics=(prepared,))
    assert statuses(await wire.scoring.Score(asked)) == [["STATUS_NOT_PREPARED"]]
    entry = references_pb2.ReferenceEntry(
        question="what?", references=["the cat"], synthetic_answers=["It is the cat."]
    )
    steps = [
        step async for step in wire.references.Prepare(references_pb2.PrepareRequest(entries=[entry], metrics=[SMILE]))
    ]
    assert steps[-1].synthetic_answers_stored == 1
    asked.reference_set = steps[-1].reference_set
    reply = await wire.scoring.Score(asked)
    assert statuses(reply) == [["STATUS_OK"]]
    assert reply.provenance[0].reference_set == asked.reference_set
    assert f"&reference_set={asked.reference_set}&" in reply.provenance[0].line
    # Those scores stay what they were: the set keeps its answers.
    entry.synthetic_answers[:] = ["It is something else."]
    changed = references_pb2.PrepareRequest(entries=[entry], metrics=[prepared], reference_set=asked.reference_set)
    steps = [step async for step in wire.references.Prepare(changed)]
    failures = [(failure.index, failure.status) for step in steps for failure in step.failures]
    assert failures == [(0, types_pb2.STATUS_INVALID_INPUT)]
    assert steps[-1].provenance[0].line == reply.provenance[0].line
    assert (await wire.scoring.Score(asked)).items[0].results[0].score == reply.items[0].results[0].score


async def test_the_log_has_one_line_a_call_and_no_text_of_it(wire: Wire) -> None:
    secrets = types_pb2.Item(
        id="secret-id", question="secret q", references=["secret r"], prediction="secret p", group="secret g"
    )
    await wire.scoring.Score(request(secrets, secrets, metrics=(SMILE, EXACT)))
    with pytest.raises(aio.AioRpcError):
        await wire.scoring.Score(request(secrets, metrics=()))
    ok, failed = await wire.log_lines()
    assert (ok["code"], ok["items"], ok["metrics"], ok["method"]) == (
        "OK",
        2,
        ["smile", "exact_match"],
        "gradewire.v1.Scoring/Score",
    )
    assert ok["duration_s"] > 0
    assert ok["request_bytes"] > 0
    assert ok["reply_bytes"] > 0
    assert ok["peer"].startswith("ipv4:127.0.0.1:")
    assert (failed["code"], failed["level"], failed["field"]) == ("INVALID_ARGUMENT", "warning", "metrics")
    assert ok["request_id"] != failed["request_id"]
    assert "secret" not in wire.log_text.getvalue()


async def test_metrics_count_calls_results_and_bytes(wire: Wire) -> None:
    await wire.scoring.Score(request(item(), item(""), metrics=(SMILE,)))
    with pytest.raises(aio.AioRpcError):
        await wire.scoring.Score(request(item(), metrics=()))
    sample = wire.registry.get_sample_value
    method = {"method": "gradewire.v1.Scoring/Score"}
    await until(lambda: sample(*counted("INVALID_ARGUMENT")) == 1)  # counted when the reply is out, so behind it
    assert sample(*counted("OK")) == 1
    assert sample("gradewire_call_duration_seconds_count", method) == 2
    assert sample("gradewire_items_total", method) == 3
    assert sample("gradewire_results_total", {"metric": "smile", "status": "OK"}) == 1
    assert sample("gradewire_results_total", {"metric": "smile", "status": "EMPTY_PREDICTION"}) == 1
    assert sample("gradewire_request_message_bytes_count", method) == 2
    assert sample("gradewire_reply_message_bytes_count", method) == 1
    assert sample("gradewire_calls_in_flight", method) == 0
    assert sample("gradewire_items_in_flight") == 0
    assert sample("gradewire_serving") == 1


async def test_reflection_lists_our_services(wire: Wire) -> None:
    stub: Any = reflection_pb2_grpc.ServerReflectionStub(wire.channel)
    call = stub.ServerReflectionInfo(iter([reflection_pb2.ServerReflectionRequest(list_services="")]))
    reply = await call.read()
    names = {service.name for service in reply.list_services_response.service}
    assert {"gradewire.v1.Scoring", "gradewire.v1.References", "gradewire.v1.Models", "grpc.health.v1.Health"} <= names
    call.cancel()


async def test_no_bytes_make_the_server_fail(wire: Wire) -> None:
    chance = random.Random(7)  # noqa: S311 - repeatable, not secret
    good = request(item("a cat", "the cat", item_id="id"), metrics=(SMILE, EXACT)).SerializeToString()
    codes: Counter[str] = Counter()
    for _ in range(400):
        data = bytearray(good)
        for _ in range(chance.randint(1, 4)):
            position = chance.randrange(len(data))
            kind = chance.random()
            if kind < 0.5:
                data[position] = chance.randrange(256)
            elif kind < 0.75:
                del data[position:]
                data += b"\x00"
            else:
                data[position:position] = chance.randbytes(chance.randint(1, 3))
        try:
            scoring_pb2.ScoreResponse.FromString(await wire.score_bytes(bytes(data)))
            codes["OK"] += 1
        except aio.AioRpcError as error:
            codes[error.code().name] += 1
    assert set(codes) <= {"OK", "INVALID_ARGUMENT", "FAILED_PRECONDITION"}
    assert min(codes["OK"], codes["INVALID_ARGUMENT"]) > 20, "the mutations reach both sides"
