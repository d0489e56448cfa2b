"""However a call ends, it is freed at once: nothing of it is left in a cycle for Python's collector to find."""

import gc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import grpc
import pytest
from grpc import aio
from tests.support.servers.wire import EXACT, SMILE, Wire, item, request, wire_server

from gradewire_proto.v1 import references_pb2, scoring_pb2
from gradewire_server.rpc.call import RpcCall
from gradewire_server.settings.limits import Capacity


@contextmanager
def calls_in_cycles() -> Iterator[list[Any]]:
    """The calls that only the collector could free, in a list that is filled at the end."""
    found: list[Any] = []
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield found
        gc.collect()
        found += [each for each in gc.garbage if isinstance(each, RpcCall)]
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


async def cancelled(wire: Wire) -> None:
    call = wire.scoring.ScoreStream()
    await call.write(scoring_pb2.ScoreStreamRequest(config=scoring_pb2.ScoreStreamConfig(metrics=[EXACT])))
    call.cancel()
    with suppress(BaseException):
        await call.code()


async def messages(metric: Any) -> AsyncIterator[scoring_pb2.ScoreStreamRequest]:
    yield scoring_pb2.ScoreStreamRequest(config=scoring_pb2.ScoreStreamConfig(metrics=[metric]))
    yield scoring_pb2.ScoreStreamRequest(items=scoring_pb2.ScoreStreamItems(items=[item()]))


async def ends_with(call: Awaitable[Any], code: grpc.StatusCode) -> None:
    with pytest.raises(aio.AioRpcError) as caught:
        await call
    assert caught.value.code() is code


@pytest.mark.parametrize(
    "ask", [scored, refused, invalid, unreadable, streamed, refused_stream, refused_prepare, cancelled]
)
async def test_nothing_of_a_call_is_left_in_a_cycle(ask: Callable[[Wire], Awaitable[None]]) -> None:
    async with wire_server(capacity=Capacity(max_items=256)) as wire:
        await ask(wire)
        await wire.calls.idle()
        with calls_in_cycles() as found:
            for _ in range(5):
                await ask(wire)
            await wire.calls.idle()
        assert not found
