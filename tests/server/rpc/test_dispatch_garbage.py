"""However a call ends, it is freed at once: nothing of ours is left in a cycle for Python's collector to find."""

import asyncio
import gc
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import grpc
import pytest
from grpc import aio
from tests.support.servers.wire import EXACT, SMILE, Wire, item, request, until, wire_server

from gradewire_proto.v1 import references_pb2, scoring_pb2, types_pb2
from gradewire_server.settings.limits import Capacity, Limits

CONFIG = scoring_pb2.ScoreStreamRequest(config=scoring_pb2.ScoreStreamConfig(metrics=[EXACT]))


@contextmanager
def left_in_cycles() -> Iterator[list[Any]]:
    """What of ours only the collector could free, in a list that is filled at the end."""
    found: list[Any] = []
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield found
        gc.collect()
        found += [each for each in gc.garbage if type(each).__module__.startswith("gradewire_server")]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()


async def scored(wire: Wire) -> None:
    assert (await wire.scoring.Score(request(item(), metrics=[SMILE]))).items


async def refused(wire: Wire) -> None:
    with wire.handlers.context.admission.items.hold(wire.handlers.context.admission.items.limit):
        await ends_with(wire.scoring.Score(request(item())), grpc.StatusCode.RESOURCE_EXHAUSTED)


async def invalid(wire: Wire) -> None:
    await ends_with(wire.scoring.Score(request(item(), metrics=())), grpc.StatusCode.INVALID_ARGUMENT)


async def unreadable(wire: Wire) -> None:
    await ends_with(wire.score_bytes(b"\xff\xff"), grpc.StatusCode.INVALID_ARGUMENT)


async def streamed(wire: Wire) -> None:
    assert [reply async for reply in wire.scoring.ScoreStream(messages(SMILE))]


async def refused_stream(wire: Wire) -> None:
    async def unknown() -> AsyncIterator[scoring_pb2.ScoreStreamRequest]:
        yield scoring_pb2.ScoreStreamRequest(config=scoring_pb2.ScoreStreamConfig())

    with pytest.raises(aio.AioRpcError, match="INVALID_ARGUMENT"):
        assert not [reply async for reply in wire.scoring.ScoreStream(unknown())]


async def refused_prepare(wire: Wire) -> None:
    with pytest.raises(aio.AioRpcError, match="INVALID_ARGUMENT"):
        assert not [reply async for reply in wire.references.Prepare(references_pb2.PrepareRequest())]


@contextmanager
def hanging(wire: Wire) -> Iterator[None]:
    """Nothing is computed in the block."""
    usual, wire.engine.before = wire.engine.before, lambda _: asyncio.get_running_loop().create_future()
    try:
        yield
    finally:
        wire.engine.before = usual


def in_slices() -> scoring_pb2.ScoreRequest:
    """A request so large that tasks of their own score parts of it."""
    return request(*[item(f"cat {n}") for n in range(300)])


async def cancelled(wire: Wire) -> None:
    with hanging(wire):
        before = wire.engine.running
        call = wire.scoring.Score(in_slices())
        await until(lambda: wire.engine.running > before)
        call.cancel()
        with suppress(asyncio.CancelledError):
            await call
        await until(lambda: wire.engine.running == before)


async def late(wire: Wire) -> None:
    with hanging(wire):
        reply = await wire.scoring.Score(in_slices(), timeout=1.0)
        assert {each.results[0].status for each in reply.items} == {types_pb2.STATUS_TIMEOUT}
        await until(lambda: not wire.engine.running)


async def too_long(wire: Wire) -> None:
    """Its reply finds no room, which cancels what is left to score."""
    cats = [item(f"cat {n} sat") for n in range(80)]
    await ends_with(wire.scoring.Score(request(*cats)), grpc.StatusCode.INVALID_ARGUMENT)


async def stream_cut_off_in_work(wire: Wire) -> None:
    with hanging(wire):
        before = wire.engine.running
        call = wire.scoring.ScoreStream()
        for message in [message async for message in messages(SMILE)]:
            await call.write(message)
        await until(lambda: wire.engine.running > before)
        call.cancel()
        with suppress(asyncio.CancelledError):
            await call.code()
        await until(lambda: wire.engine.running == before)


async def cancelled_stream(wire: Wire) -> None:
    call = wire.scoring.ScoreStream()
    await call.write(CONFIG)
    assert (await call.read()).provenance
    call.cancel()
    with suppress(asyncio.CancelledError):
        await call.code()


async def late_stream(wire: Wire) -> None:
    call = wire.scoring.ScoreStream(timeout=0.3)
    await call.write(CONFIG)
    assert await call.code() is grpc.StatusCode.DEADLINE_EXCEEDED


async def messages(metric: Any) -> AsyncIterator[scoring_pb2.ScoreStreamRequest]:
    yield scoring_pb2.ScoreStreamRequest(config=scoring_pb2.ScoreStreamConfig(metrics=[metric]))
    yield scoring_pb2.ScoreStreamRequest(items=scoring_pb2.ScoreStreamItems(items=[item()]))


async def ends_with(call: Awaitable[Any], code: grpc.StatusCode) -> None:
    with pytest.raises(aio.AioRpcError) as caught:
        await call
    assert caught.value.code() is code


@pytest.mark.parametrize(
    "ask",
    [
        scored,
        refused,
        invalid,
        unreadable,
        cancelled,
        late,
        streamed,
        refused_stream,
        cancelled_stream,
        stream_cut_off_in_work,
        too_long,
        late_stream,
        refused_prepare,
    ],
)
async def test_nothing_of_a_call_is_left_in_a_cycle(ask: Callable[[Wire], Awaitable[None]]) -> None:
    limits = Limits(max_message_bytes=8_000) if ask is too_long else None
    async with wire_server(capacity=Capacity(max_items=4096), limits=limits) as wire:
        await ask(wire)
        await wire.calls.idle()
        with left_in_cycles() as found:
            for _ in range(3):
                await ask(wire)
            await wire.calls.idle()
            await asyncio.sleep(0.05)  # the last callbacks of what was cancelled
        assert not Counter(type(each).__name__ for each in found)
