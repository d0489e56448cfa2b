"""Makes calls over connections of its own, as bytes: what is encoded and checked is not measured twice."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Final, Protocol, Self

import grpc
import grpc.aio

from gradewire._transport.channels import open_channel
from gradewire._transport.spreading import process_of
from gradewire.errors import ServerUnreachable
from gradewire.load_testing.counts import HANGING, OK, Ended
from gradewire_proto.conventions.metadata import AUTHORIZATION_KEY, PROCESS_KEY, PUSHBACK_KEY, bearer
from gradewire_proto.v1 import scoring_pb2, types_pb2

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradewire._transport.endpoint import Endpoint

SCORE: Final = "/gradewire.v1.Scoring/Score"
_LIST: Final = "/gradewire.v1.Models/List"
_TRIES: Final = 16
"""Connections that are tried for each place, at most."""
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
    """Several connections to one server, taken in turns; to a server of several processes as many to each.

    Args:
        endpoint: The server.
        count: How many; rounded up to a multiple of the server's processes.
    """

    def __init__(self, endpoint: Endpoint, count: int) -> None:
        self._endpoint = endpoint
        self.channels = [self._open() for _ in range(count)]
        self.metadata = ((AUTHORIZATION_KEY, bearer(endpoint.token)),) if endpoint.token else None
        self.address = endpoint.address

    async def ready(self, within_s: float) -> None:
        """Connects all.

        Raises:
            ServerUnreachable: One is not connected in time.
        """
        try:
            async with asyncio.timeout(within_s):
                await self._spread_out(await asyncio.gather(*map(self._process_of, self.channels)))
        except TimeoutError:
            raise ServerUnreachable(f"{self.address} does not answer within {within_s:g} s") from None
        except grpc.aio.AioRpcError as error:
            raise ServerUnreachable(f"{self.address}: {error.code().name}: {error.details()}") from None

    async def _spread_out(self, found: Sequence[str]) -> None:
        """Opens and closes connections until each process of the server has as many: the system chooses among them.

        Where it does not choose one in many tries, that process has fewer; no run is lost for that.
        """
        processes = max((int(each.partition("/")[2]) for each in found if each), default=1)
        if processes == 1:
            return
        share = -(-len(found) // processes)
        kept: defaultdict[str, list[grpc.aio.Channel]] = defaultdict(list)
        surplus: list[grpc.aio.Channel] = []
        for process, channel in zip(found, self.channels, strict=True):
            (kept[process] if len(kept[process]) < share else surplus).append(channel)
        tries = _TRIES * processes * share
        while tries and sum(map(len, kept.values())) < processes * share:
            tries -= 1
            channel = self._open()
            self.channels.append(channel)
            process = await self._process_of(channel)
            (kept[process] if len(kept[process]) < share else surplus).append(channel)
        # One of each process after the other, as they are taken in turns.
        in_turns = chain.from_iterable(zip_longest(*kept.values()))
        self.channels = [channel for channel in in_turns if channel is not None]
        await asyncio.gather(*(channel.close() for channel in surplus))

    async def _process_of(self, channel: grpc.aio.Channel) -> str:
        """INDEX/COUNT of the process at the other end; empty where the server has one only."""
        list_models: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(_LIST)
        call = list_models(b"", metadata=self.metadata, wait_for_ready=True)
        await call
        said = (value for key, value in await call.trailing_metadata() or () if key == PROCESS_KEY)
        return process_of(next(said, ""))

    def _open(self) -> grpc.aio.Channel:
        return open_channel(self._endpoint, _OPTIONS)

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
