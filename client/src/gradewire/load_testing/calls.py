"""Calls over connections of their own, as bytes: a request is encoded once, and nothing is measured twice."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from itertools import chain, cycle, zip_longest
from typing import TYPE_CHECKING, Final

import grpc
import grpc.aio

from gradewire._transport.channels import open_channel
from gradewire._transport.spreading import process_of
from gradewire.errors import ServerUnreachable
from gradewire.load_testing.counts import HANGING, OK, CallResult
from gradewire_proto.conventions.metadata import AUTHORIZATION_KEY, PROCESS_KEY, PUSHBACK_KEY, bearer
from gradewire_proto.v1 import scoring_pb2, types_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gradewire._transport.endpoint import Endpoint

_SCORE: Final = "/gradewire.v1.Scoring/Score"
_LIST: Final = "/gradewire.v1.Models/List"
CONNECTIONS: Final = 2
"""Connections to each process of the server."""
_TRIES: Final = 16
"""Connections to try for each one that is kept, at most: the system chooses among the processes."""
_OPTIONS: Final = (
    ("grpc.use_local_subchannel_pool", 1),  # else channels of one process share a connection
    ("grpc.enable_retries", 0),  # a refusal is a result
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
)
# A call without a result so long after its deadline never returns.
_HANGS_AFTER_S: Final = 5.0
_STATUS_NAMES: Final = {number: name.removeprefix("STATUS_") for name, number in types_pb2.Status.items()}


class LoadCaller:
    """Calls of Scoring.Score without retries, over a few connections in turns.

    Args:
        endpoint: The server.
        metrics: Metrics of every call.
        deadline_s: Deadline of every call, from when it leaves.
    """

    def __init__(self, endpoint: Endpoint, metrics: Sequence[types_pb2.MetricSpec], deadline_s: float) -> None:
        self._endpoint = endpoint
        self._metadata = ((AUTHORIZATION_KEY, bearer(endpoint.token)),) if endpoint.token else None
        # A message is the sum of its fields: the metrics are encoded once, and every call's items before them.
        self._tail = scoring_pb2.ScoreRequest(metrics=metrics, omit_diagnostics=True).SerializeToString()
        self._deadline_s = deadline_s
        self._open: list[grpc.aio.Channel] = []
        self._calls: Iterator[grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]] = iter(())

    async def connect(self, within_s: float) -> list[grpc.aio.Channel]:
        """Connect to every process of the server, and return the channels in their turns.

        Raises:
            ServerUnreachable: The server does not answer in time.
        """
        try:
            async with asyncio.timeout(within_s):
                channels = await self._spread_channels()
        except TimeoutError:
            raise ServerUnreachable(f"{self._endpoint.address} does not answer within {within_s:g} s") from None
        except grpc.aio.AioRpcError as error:
            raise ServerUnreachable(f"{self._endpoint.address}: {error.code().name}: {error.details()}") from None
        self._calls = cycle([channel.unary_unary(_SCORE) for channel in channels])
        return channels

    async def call(self, items: Sequence[types_pb2.Item]) -> CallResult:
        """Make one call with these items."""
        request = scoring_pb2.ScoreRequest(items=items).SerializeToString() + self._tail
        call = next(self._calls)
        try:
            async with asyncio.timeout(self._deadline_s + _HANGS_AFTER_S):
                reply = await call(request, timeout=self._deadline_s, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            trailing = error.trailing_metadata() or ()
            hinted = any(key == PUSHBACK_KEY and str(value).isdecimal() for key, value in trailing)
            return CallResult(error.code().name, hinted)
        except TimeoutError:
            return CallResult(HANGING)
        results = (result for item in scoring_pb2.ScoreResponse.FromString(reply).items for result in item.results)
        return CallResult(OK, statuses=Counter(_STATUS_NAMES.get(each.status, str(each.status)) for each in results))

    async def close(self) -> None:
        """Close the connections, which ends all calls."""
        await asyncio.gather(*(channel.close() for channel in self._open))

    async def _spread_channels(self) -> list[grpc.aio.Channel]:
        """Open channels until each process of the server has as many.

        If the system does not choose a process in many tries, that one has fewer: no run is lost for it.
        """
        kept: defaultdict[str, list[grpc.aio.Channel]] = defaultdict(list)
        wanted = CONNECTIONS
        while sum(map(len, kept.values())) < wanted and len(self._open) < _TRIES * wanted:
            channel = open_channel(self._endpoint, _OPTIONS)
            self._open.append(channel)
            process = await self._process_of(channel)
            wanted = max(wanted, CONNECTIONS * int(process.partition("/")[2] or 1))
            if len(kept[process]) < CONNECTIONS:
                kept[process].append(channel)
        # One of each process after the other.
        in_turns = [each for each in chain.from_iterable(zip_longest(*kept.values())) if each is not None]
        surplus = [channel for channel in self._open if channel not in in_turns]
        self._open = in_turns
        await asyncio.gather(*(channel.close() for channel in surplus))
        return in_turns

    async def _process_of(self, channel: grpc.aio.Channel) -> str:
        """Return INDEX/COUNT of the process at the other end; empty for a server of one process."""
        list_models: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(_LIST)
        call = list_models(b"", metadata=self._metadata, wait_for_ready=True)
        await call
        values = (value for key, value in await call.trailing_metadata() or () if key == PROCESS_KEY)
        return process_of(next(values, ""))
