"""Makes calls over connections of its own, as bytes: what is encoded and checked is not measured twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Final, Protocol, Self

import grpc
import grpc.aio

from gradewire._transport.channels import open_channel
from gradewire.errors import ServerUnreachable
from gradewire.load_testing.counts import HANGING, OK, Ended
from gradewire_proto.conventions.metadata import AUTHORIZATION_KEY, PUSHBACK_KEY, bearer
from gradewire_proto.v1 import scoring_pb2, types_pb2

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradewire._transport.endpoint import Endpoint

SCORE: Final = "/gradewire.v1.Scoring/Score"
_OPTIONS: Final = (
    ("grpc.use_local_subchannel_pool", 1),  # else channels of one process share a connection
    ("grpc.enable_retries", 0),  # a refusal is a result
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
)
# A call that has not ended so long after its deadline never will.
_HANGS_AFTER_S: Final = 5.0
_STATUS_NAMES: Final = {number: name.removeprefix("STATUS_") for name, number in types_pb2.Status.items()}


class Caller(Protocol):
    """Makes calls of any number at a time."""

    async def call(self, items: Sequence[types_pb2.Item]) -> Ended:
        """Makes one call with these items, and returns how it ended."""
        ...

    async def close(self) -> None:
        """Ends the connections, and all calls."""
        ...


class Connections:
    """Several connections to one server, taken in turns.

    Args:
        endpoint: The server.
        count: How many.
    """

    def __init__(self, endpoint: Endpoint, count: int) -> None:
        self.channels = [open_channel(endpoint, _OPTIONS) for _ in range(count)]
        self.metadata = ((AUTHORIZATION_KEY, bearer(endpoint.token)),) if endpoint.token else None
        self.address = endpoint.address

    async def ready(self, within_s: float) -> None:
        """Connects all.

        Raises:
            ServerUnreachable: One is not connected in time.
        """
        try:
            async with asyncio.timeout(within_s):
                await asyncio.gather(*(channel.channel_ready() for channel in self.channels))
        except TimeoutError:
            raise ServerUnreachable(f"{self.address} does not answer within {within_s:g} s") from None

    async def close(self) -> None:
        """Ends them."""
        await asyncio.gather(*(channel.close() for channel in self.channels))


class UnaryCaller:
    """Calls Scoring.Score, one connection after the other, without retries.

    Args:
        connections: That are ready.
        metrics: Of every call.
        deadline_s: Of every call, from when it leaves.
    """

    def __init__(self, connections: Connections, metrics: Sequence[types_pb2.MetricSpec], deadline_s: float) -> None:
        self._connections = connections
        self._calls: list[grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]] = [
            channel.unary_unary(SCORE) for channel in connections.channels
        ]
        # A message is the sum of its fields: the metrics are encoded once, and every call's items before them.
        self._tail = scoring_pb2.ScoreRequest(metrics=metrics, omit_diagnostics=True).SerializeToString()
        self._deadline_s = deadline_s
        self._made = 0

    @classmethod
    async def open(cls, connections: Connections, metrics: Sequence[types_pb2.MetricSpec], deadline_s: float) -> Self:
        """A caller; nothing is sent before the first call."""
        return cls(connections, metrics, deadline_s)

    async def call(self, items: Sequence[types_pb2.Item]) -> Ended:
        """Makes one call with these items, and returns how it ended."""
        request = scoring_pb2.ScoreRequest(items=items).SerializeToString() + self._tail
        call = self._calls[self._made % len(self._calls)]
        self._made += 1
        try:
            async with asyncio.timeout(self._deadline_s + _HANGS_AFTER_S):
                reply = await call(request, timeout=self._deadline_s, metadata=self._connections.metadata)
        except grpc.aio.AioRpcError as error:
            return refused_or_failed(error)
        except TimeoutError:
            return Ended(HANGING)
        return Ended(OK, statuses=statuses_of(scoring_pb2.ScoreResponse.FromString(reply).items))

    async def close(self) -> None:
        """Ends the connections, and all calls."""
        await self._connections.close()


def refused_or_failed(error: grpc.aio.AioRpcError) -> Ended:
    """How a call ended that got an error."""
    hinted = any(key == PUSHBACK_KEY and str(value).isdecimal() for key, value in error.trailing_metadata() or ())
    return Ended(error.code().name, hinted)


def statuses_of(items: Sequence[scoring_pb2.ItemResult]) -> Counter[str]:
    """Results by status."""
    return Counter(_STATUS_NAMES.get(result.status, str(result.status)) for item in items for result in item.results)
