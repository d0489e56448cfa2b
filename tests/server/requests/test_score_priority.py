"""A request may say that it can wait, and nothing else."""

from collections.abc import AsyncGenerator

import grpc
import pytest
from tests.support.servers.wire import SMILE, Wire, wire_server

from gradewire_proto.v1 import scoring_pb2, types_pb2
from gradewire_server.domain.caller import Lane


@pytest.fixture
async def wire() -> AsyncGenerator[Wire]:
    async with wire_server() as wire:
        yield wire


def request(priority: int) -> scoring_pb2.ScoreRequest:
    item = types_pb2.Item(references=["a bowl of fruit"], prediction="some fruit")
    message = scoring_pb2.ScoreRequest(items=[item], metrics=[SMILE])
    message.priority = priority  # type: ignore[assignment] # any number may come over the wire
    return message


@pytest.mark.parametrize(
    ("priority", "lane"), [(scoring_pb2.PRIORITY_UNSPECIFIED, Lane.INTERACTIVE), (scoring_pb2.PRIORITY_BULK, Lane.BULK)]
)
async def test_a_small_request_is_interactive_unless_it_can_wait(
    wire: Wire, priority: int, lane: Lane, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoders = wire.handlers.context.admission._encoders
    entered: list[Lane] = []
    enter = encoders.enter
    monkeypatch.setattr(encoders, "enter", lambda lane, tokens: (entered.append(lane), enter(lane, tokens)))
    reply = await wire.scoring.Score(request(priority))
    assert reply.items[0].results[0].status == types_pb2.STATUS_OK
    assert entered == [lane]


async def test_a_priority_that_nobody_knows_is_refused(wire: Wire) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        await wire.scoring.Score(request(7))
    assert isinstance(refused.value, grpc.aio.AioRpcError)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert refused.value.details() == "priority: 7 is not a value of gradewire.v1.Priority"
