"""ScoreStream: every result once, bounded memory, errors with the right code."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, ClassVar

import grpc
import pytest
from grpc import aio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.engines.hash_engine import HashEngine
from tests.support.examples import example_count
from tests.support.servers.handlers import handlers_over
from tests.support.servers.wire import EXACT, SMILE, Wire, error_of, item, request, until, wire_server

from gradewire_proto.v1 import scoring_pb2, types_pb2
from gradewire_server.requests.admission import Admission
from gradewire_server.requests.errors import DeadlineExceededError, InvalidRequestError, ModelReplacedError
from gradewire_server.requests.handlers import Handlers
from gradewire_server.scoring import Scorer
from gradewire_server.settings.limits import Capacity, Deadlines, Limits

Request = scoring_pb2.ScoreStreamRequest


def config(*metrics: types_pb2.MetricSpec) -> Request:
    return Request(config=scoring_pb2.ScoreStreamConfig(metrics=metrics or (SMILE,)))


def items(*messages: types_pb2.Item) -> Request:
    return Request(items=scoring_pb2.ScoreStreamItems(items=messages))


def streaming(engine: HashEngine | None = None, *, window: int = 512, in_flight: int = 4096) -> Handlers:
    return handlers_over(
        engine,
        limits=Limits(stream_window_items=window),
        admission=Admission(Capacity(max_items=in_flight)),
    )


async def sent(requests: Sequence[Request]) -> AsyncIterator[Request]:
    for message in requests:
        yield message


async def test_same_scores_as_the_unary_call_each_once(wire: Wire) -> None:
    asked = [item(f"answer {number} cat", item_id=str(number)) for number in range(150)] + [types_pb2.Item(id="bad")]
    unary = await wire.scoring.Score(request(*asked, metrics=(SMILE, EXACT)))
    messages = [config(SMILE, EXACT), items(*asked[:100]), items(), items(*asked[100:])]
    replies = [reply async for reply in wire.scoring.ScoreStream(iter(messages))]
    assert [provenance.name for provenance in replies[0].provenance] == ["smile", "exact_match"]
    assert not any(reply.provenance for reply in replies[1:])
    scored = [(part.index, part.id, result) for reply in replies for part in reply.items for result in part.results]
    assert len(scored) == 302
    found = {(index, result.metric_index): (item_id, result) for index, item_id, result in scored}
    for expected in unary.items:
        for result in expected.results:
            item_id, got = found[expected.index, result.metric_index]
            assert item_id == expected.id
            assert (got.status, got.score, got.smile) == (result.status, result.score, result.smile)
    complete = [part.index for reply in replies for part in reply.items if part.complete]
    assert sorted(complete) == list(range(151))


async def test_a_model_that_is_replaced_ends_the_stream_with_both_digests_named() -> None:
    engine = HashEngine()
    handlers = streaming(engine)
    told = asyncio.Event()

    async def requests() -> AsyncIterator[Request]:
        yield config()
        yield items(item("a cat", item_id="before"))
        await told.wait()
        engine.digests["hash"] = "f" * 64
        yield items(item("a dog", item_id="after"))

    seen, before = [], ""

    async def read() -> None:
        nonlocal before
        async for reply in handlers.score_stream(requests()):
            before = before or reply.provenance[0].model_digest
            seen.extend(part.id for part in reply.items if part.complete)
            if seen:
                told.set()

    with pytest.raises(ModelReplacedError, match="f" * 64) as caught:
        await read()
    assert seen == ["before"]
    assert before in str(caught.value)


@settings(max_examples=example_count(30), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sizes=st.lists(st.integers(0, 150), max_size=6),
    window=st.integers(1, 100),
    in_flight=st.integers(1, 100),
)
def test_any_cut_and_any_window_gives_every_result_once(sizes: list[int], window: int, in_flight: int) -> None:
    async def run() -> None:
        handlers = streaming(window=window, in_flight=in_flight)
        messages = [config(EXACT), *(items(*[item()] * size) for size in sizes)]
        seen = [
            (part.index, result.metric_index, part.complete)
            async for reply in handlers.score_stream(sent(messages))
            for part in reply.items
            for result in part.results
        ]
        assert sorted(seen) == [(index, 0, True) for index in range(sum(sizes))]
        assert handlers.context.admission.items.taken == 0

    asyncio.run(asyncio.wait_for(run(), 20))


async def test_a_result_does_not_wait_for_the_slower_metric_of_its_item() -> None:
    engine = HashEngine()
    gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    engine.before = lambda _model: asyncio.shield(gate)
    replies = streaming(engine).score_stream(sent([config(SMILE, EXACT), items(item())]))
    await anext(replies)
    first = (await anext(replies)).items[0]
    assert [result.metric_index for result in first.results] == [1]
    assert not first.complete
    gate.set_result(None)
    second = (await anext(replies)).items[0]
    assert [result.metric_index for result in second.results] == [0]
    assert second.complete
    with pytest.raises(StopAsyncIteration):
        await anext(replies)


async def test_a_reader_that_stands_still_stops_the_reading() -> None:
    read = 0

    async def endless() -> AsyncIterator[Request]:
        nonlocal read
        yield config(EXACT)
        while True:
            read += 10
            yield items(*[item()] * 10)

    replies = streaming(window=50).score_stream(endless())
    await anext(replies)
    await anext(replies)
    for _ in range(200):
        await asyncio.sleep(0)
    assert read <= 60, "the window and the message that waits for room"
    for _ in range(20):
        await anext(replies)
    assert read > 60
    await replies.aclose()


async def test_a_slow_engine_stops_the_reading_over_the_wire() -> None:
    async with wire_server(limits=Limits(stream_window_items=60)) as wire:
        gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        wire.engine.before = lambda _model: asyncio.shield(gate)
        bulky = types_pb2.Item(references=["the cat"], prediction="a cat", caption="x" * 300_000)
        messages = [config(), *[items(bulky, *[item()] * 19)] * 200]
        call = wire.scoring.ScoreStream()
        written = 0

        async def write() -> None:
            nonlocal written
            for message in messages:
                await call.write(message)
                written += 1
            await call.done_writing()

        writing = asyncio.create_task(write())
        await until(lambda: wire.engine.running >= 2)
        await asyncio.sleep(0.1)
        assert wire.handlers.context.admission.items.taken == 40
        assert written < 150, "gRPC's flow control holds the writer back"
        gate.set_result(None)
        count = 0
        async for reply in call:
            count += sum(part.complete for part in reply.items)
        await writing
        assert count == 4000


@pytest.mark.parametrize(
    ("messages", "text"),
    [
        ([items(item())], "config: must be set in the first message"),
        ([Request()], "config: must be set in the first message"),
        ([config(types_pb2.MetricSpec())], "config.metrics[0]:"),
        ([Request(config=scoring_pb2.ScoreStreamConfig())], "config.metrics: must name at least one"),
        ([config(), items(item()), config()], "requests[2]: items must be set"),
        ([config(), Request()], "requests[1]: items must be set"),
        ([config(), items(*[types_pb2.Item()] * 5000)], "requests[1].items: has more than 4096 elements;"),
    ],
)
async def test_a_wrong_message_ends_the_stream(wire: Wire, messages: list[Request], text: str) -> None:
    with pytest.raises(aio.AioRpcError) as caught:
        async for _ in wire.scoring.ScoreStream(iter(messages)):
            pass
    code, details, _ = error_of(caught)
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert details.startswith(text)
    await until(lambda: wire.handlers.context.admission.items.taken == 0)


async def test_a_message_that_cannot_be_read_ends_the_stream(wire: Wire) -> None:
    def messages() -> Iterator[bytes]:
        yield config().SerializeToString()
        yield b"\xff\xff"

    with pytest.raises(aio.AioRpcError) as caught:
        async for _ in wire.channel.stream_stream("/gradewire.v1.Scoring/ScoreStream")(messages()):
            pass
    assert error_of(caught)[0] is grpc.StatusCode.INVALID_ARGUMENT
    assert wire.handlers.context.admission.bytes.taken == 0


async def test_an_empty_stream_has_an_empty_reply(wire: Wire) -> None:
    assert [reply async for reply in wire.scoring.ScoreStream(iter([]))] == []
    assert len([reply async for reply in wire.scoring.ScoreStream(iter([config()]))]) == 1


async def test_cancelling_gives_everything_back(wire: Wire) -> None:
    gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    wire.engine.before = lambda _model: asyncio.shield(gate)
    call = wire.scoring.ScoreStream()
    await call.write(config())
    await call.write(items(*[item()] * 200))
    await until(lambda: wire.engine.running)
    call.cancel()
    await until(lambda: wire.engine.running == 0)
    await until(lambda: wire.handlers.context.admission.items.taken == 0)
    await until(lambda: wire.handlers.context.admission.bytes.taken == 0)
    assert (
        wire.registry.get_sample_value("gradewire_calls_in_flight", {"method": "gradewire.v1.Scoring/ScoreStream"}) == 0
    )


async def test_the_deadline_of_a_stream_ends_it() -> None:
    async def endless() -> AsyncIterator[Request]:
        yield config(EXACT)
        await asyncio.Event().wait()

    replies = streaming().score_stream(endless(), deadline_s=0.05)
    await anext(replies)
    with pytest.raises(DeadlineExceededError):
        await anext(replies)


class TimedScorer(Scorer):
    """A scorer that notes the seconds that items have, and scores nothing."""

    left_s: ClassVar[list[int]] = []

    async def score(self, *_: Any, deadline_s: float, **__: Any) -> None:
        self.left_s.append(round(deadline_s - time.monotonic()))


async def test_a_message_may_set_the_deadline_of_its_items() -> None:
    engine = HashEngine()
    handlers = handlers_over(engine, scorer=TimedScorer(engine.ports), deadlines=Deadlines(default_s=60, max_s=600))
    messages = [items(item()) for _ in range(4)]
    messages[3].items.deadline_s = 1  # no shorter than the default, for items wait behind others
    messages[1].items.deadline_s = 300
    messages[2].items.deadline_s = 4000
    TimedScorer.left_s.clear()
    _ = [reply async for reply in handlers.score_stream(sent([config(), *messages]))]
    assert sorted(TimedScorer.left_s) == [60, 60, 300, 600]


@pytest.mark.parametrize("seconds", [-1.0, math.inf, math.nan])
async def test_a_message_with_an_impossible_deadline_is_refused(seconds: float) -> None:
    message = items(item())
    message.items.deadline_s = seconds
    with pytest.raises(InvalidRequestError, match=r"requests\[1\].items.deadline_s: is .*, but must be at least 0"):
        _ = [reply async for reply in streaming().score_stream(sent([config(), message]))]


async def test_a_defect_in_scoring_ends_the_stream_and_gives_permits_back() -> None:
    class Defective(Scorer):
        async def score(self, *_: Any, **__: Any) -> None:
            raise ZeroDivisionError

    engine = HashEngine()
    handlers = handlers_over(engine, scorer=Defective(engine.ports))
    replies = handlers.score_stream(sent([config(), items(item())]))
    await anext(replies)
    with pytest.raises(ZeroDivisionError):
        await anext(replies)
    assert handlers.context.admission.items.taken == 0


async def test_large_results_are_cut_into_several_messages() -> None:
    long = " ".join(["word"] * 40_000)
    handlers = streaming()
    messages = [config(), items(*[item(long, long) for _ in range(20)])]
    sizes = [reply.ByteSize() async for reply in handlers.score_stream(sent(messages))]
    assert max(sizes) < 4 << 20


async def test_an_error_names_the_message_it_is_in() -> None:
    replies = streaming().score_stream(sent([config(), items(), config()]))
    await anext(replies)
    with pytest.raises(InvalidRequestError) as caught:
        await anext(replies)
    assert caught.value.field == "requests[2]"
