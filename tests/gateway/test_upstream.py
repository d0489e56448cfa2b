"""The gateway asks the process with the fewest calls, and another one where it stops or is lost."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import grpc
import pytest
from google.protobuf.message import Message
from tests.client.small_server import Fault, SmallServer, run_small_server

from gradewire_gateway.settings import UpstreamSettings
from gradewire_gateway.upstream import CallOptions, Upstream
from gradewire_gateway.wire import RpcMethod, method_at
from gradewire_proto.v1 import scoring_pb2

SCORE: RpcMethod = method_at("/gradewire.v1.Scoring/Score")
OPTIONS = CallOptions(metadata=(), timeout_s=20)
LOST = Fault(grpc.StatusCode.UNAVAILABLE, "the server is shutting down")


@pytest.fixture
def servers() -> Iterator[tuple[SmallServer, SmallServer]]:
    with run_small_server() as first, run_small_server() as second:
        yield first, second


@asynccontextmanager
async def _upstream(*servers: SmallServer) -> AsyncIterator[Upstream]:
    upstream = Upstream(UpstreamSettings(target=",".join(each.address for each in servers)))
    try:
        yield upstream
    finally:
        await upstream.close()


def _calls(servers: tuple[SmallServer, SmallServer]) -> list[int]:
    return [len(each.script.requests) for each in servers]


async def test_calls_in_a_row_take_turns_and_one_that_waits_is_left_alone(
    servers: tuple[SmallServer, SmallServer],
) -> None:
    async with _upstream(*servers) as upstream:
        for _ in range(4):
            await upstream.unary(SCORE, scoring_pb2.ScoreRequest(), OPTIONS)
        assert _calls(servers) == [2, 2]
        servers[0].script.hold.clear()
        waiting = upstream.unary(SCORE, scoring_pb2.ScoreRequest(), OPTIONS)
        for _ in range(4):
            await asyncio.wait_for(upstream.unary(SCORE, scoring_pb2.ScoreRequest(), OPTIONS), 10)
        assert _calls(servers) == [2, 6]
        servers[0].script.hold.set()
        assert isinstance(await waiting, scoring_pb2.ScoreResponse)


async def test_a_call_that_one_refuses_is_made_with_the_other_which_then_gets_all(
    servers: tuple[SmallServer, SmallServer],
) -> None:
    async with _upstream(*servers) as upstream:
        servers[0].script.faults = [LOST]
        for _ in range(3):
            assert isinstance(
                await upstream.unary(SCORE, scoring_pb2.ScoreRequest(), OPTIONS), scoring_pb2.ScoreResponse
            )
        assert _calls(servers) == [1, 3]


async def test_what_both_refuse_and_what_is_no_loss_fails(servers: tuple[SmallServer, SmallServer]) -> None:
    async with _upstream(*servers) as upstream:
        servers[0].script.faults, servers[1].script.faults = [LOST], [LOST]
        with pytest.raises(grpc.aio.AioRpcError, match="shutting down"):
            await upstream.unary(SCORE, scoring_pb2.ScoreRequest(), OPTIONS)
        assert _calls(servers) == [1, 1]
        servers[0].script.faults = servers[1].script.faults = [Fault(grpc.StatusCode.INVALID_ARGUMENT, "no")]
        with pytest.raises(grpc.aio.AioRpcError, match="no"):
            await upstream.unary(SCORE, scoring_pb2.ScoreRequest(), OPTIONS)
        assert sum(_calls(servers)) == 3


async def test_none_is_asked_twice_while_another_one_was_not_asked(servers: tuple[SmallServer, SmallServer]) -> None:
    busy, idle = servers
    async with _upstream(busy, idle) as upstream:

        def call() -> asyncio.Task[Message]:
            return upstream.unary(SCORE, scoring_pb2.ScoreRequest(), OPTIONS)

        busy.script.faults, idle.script.faults = [LOST, LOST], [LOST, LOST]
        for _ in range(2):  # the one that is asked first is avoided from then on
            with pytest.raises(grpc.aio.AioRpcError, match="shutting down"):
                await call()
        busy.script.hold.clear()
        first, second = call(), call()
        (answered,), (held,) = await asyncio.wait((first, second), return_when=asyncio.FIRST_COMPLETED)
        assert isinstance(answered.result(), scoring_pb2.ScoreResponse)
        idle.script.faults = [LOST, LOST]
        asked = call()
        await asyncio.wait((asked,), timeout=0.3)
        busy.script.hold.set()
        assert isinstance(await asked, scoring_pb2.ScoreResponse)
        await held


async def test_a_call_that_nobody_waits_for_is_cancelled(servers: tuple[SmallServer, SmallServer]) -> None:
    async with _upstream(servers[0]) as upstream:
        servers[0].script.hold.clear()
        call = upstream.unary(SCORE, scoring_pb2.ScoreRequest(), OPTIONS)
        await asyncio.sleep(0.05)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
