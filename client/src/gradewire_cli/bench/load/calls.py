"""Send calls in an open loop over separate connections, and count results and latencies."""

from __future__ import annotations

import asyncio
import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, cycle, zip_longest
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import grpc
import grpc.aio
import numpy as np
from numpy.typing import NDArray

from gradewire._transports.connection_pool import process_of
from gradewire._transports.grpc_transport import open_channel
from gradewire.errors import ServerUnreachable
from gradewire_proto.v1 import scoring_pb2, types_pb2
from gradewire_proto.wire_rules import AUTHORIZATION_KEY, PROCESS_KEY, PUSHBACK_KEY, bearer

if TYPE_CHECKING:
    from gradewire.transport import Endpoint
    from gradewire_cli.bench.load.content import SentItem


OK: Final = "OK"
REFUSED: Final = "RESOURCE_EXHAUSTED"
UNAVAILABLE: Final = "UNAVAILABLE"
HANGING: Final = "HANGING"
"""The code of a call that has no result even 5 s after its deadline."""
STOPPED: Final = "STOPPED"


def percentile_s(latencies_s: array[float], percentile: float) -> float:
    """Return a percentile of latencies in seconds, or NaN without latencies."""
    if not latencies_s:
        return math.nan
    # Without 1e-9, rounding may choose the next rank, e.g. for 99.9 % of 1000.
    rank = max(1, math.ceil(percentile / 100 * len(latencies_s) - 1e-9))
    return float(np.sort(latencies_s)[rank - 1])


class CallResult(NamedTuple):
    """The result of a call.

    Attributes:
        code: Name of the gRPC status code, `HANGING` or `STOPPED`.
        hinted: True if the server's refusal says when to try again.
        statuses: Number of metric results by status, or None if the call failed.
    """

    code: str
    hinted: bool = False
    statuses: Counter[str] | None = None

    @property
    def is_scored(self) -> bool:
        """True if all metric results are OK."""
        return self.code == OK and self.statuses is not None and set(self.statuses) <= {OK}


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """The conditions under which a server keeps up.

    Attributes:
        p99_s: Maximum 99th percentile of scored calls' latencies, in seconds from each call's due time.
        max_refused: Maximum share of refused calls.
        max_failed: Maximum share of calls that are neither scored nor refused.
        min_in_time: Minimum share of calls that are scored at most `p99_s` after the step's end.
        max_lag_s: Maximum 99th percentile of the client's delays before sending, in seconds.
    """

    p99_s: float
    max_refused: float = 0.001
    max_failed: float = 0.001
    min_in_time: float = 0.99
    max_lag_s: float

    def __str__(self) -> str:
        return (
            f"p99 of scored calls at most {self.p99_s * 1e3:g} ms, at most {self.max_refused:.1%} refused, at most "
            f"{self.max_failed:.1%} failed, at least {self.min_in_time:.0%} scored in time"
        )


@dataclass(slots=True)
class StepCounts:
    """Counts of one step's calls.

    Attributes:
        in_time: Number of scored calls whose reply arrived at most `Objective.p99_s` after the step's end.
        latency_s: Scored calls' latencies in seconds, from each call's due time.
        lag_s: All calls' delays in seconds, between due time and sending.
    """

    due: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    items: int = 0
    sent_items: int = 0
    in_time: int = 0
    hinted: int = 0
    repeated: int = 0
    latency_s: array[float] = field(default_factory=lambda: array("d"))
    lag_s: array[float] = field(default_factory=lambda: array("d"))
    stopped: bool = False

    @property
    def refused(self) -> int:
        """Number of calls that the server refused because it was full."""
        return self.codes[REFUSED]

    @property
    def failed(self) -> int:
        """Number of calls that were neither scored nor refused."""
        return sum(self.codes.values()) - len(self.latency_s) - self.refused - self.codes[STOPPED]

    def add(self, other: StepCounts) -> None:
        """Add the counts of another process."""
        for name in ("due", "items", "sent_items", "in_time", "hinted", "repeated"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.codes += other.codes
        self.statuses += other.statuses
        self.latency_s.extend(other.latency_s)
        self.lag_s.extend(other.lag_s)

    def count(self, result: CallResult, *, items: int, latency_s: float, in_time: bool) -> None:
        """Count a call that ended `latency_s` seconds after its due time."""
        self.codes[result.code] += 1
        self.hinted += result.hinted and result.code == REFUSED
        if result.statuses is not None:
            self.statuses += result.statuses
            self.items += items
        if result.is_scored:
            self.latency_s.append(latency_s)
            self.in_time += in_time


_SCORE: Final = "/gradewire.v1.Scoring/Score"
_LIST: Final = "/gradewire.v1.Models/List"
CONNECTIONS: Final = 2
"""Number of connections to each process of the server."""
_TRIES: Final = 16
"""Maximum number of connections to open, as a multiple of the number to keep."""
_OPTIONS: Final = (
    ("grpc.use_local_subchannel_pool", 1),  # otherwise the channels share a connection
    ("grpc.enable_retries", 0),  # do not retry
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
)
_HANGS_AFTER_S: Final = 5.0
_STATUS_NAMES: Final = {number: name.removeprefix("STATUS_") for name, number in types_pb2.Status.items()}


class LoadCaller:
    """A caller of Scoring.Score that never retries."""

    def __init__(self, endpoint: Endpoint, metrics: Sequence[types_pb2.MetricSpec], deadline_s: float) -> None:
        self._endpoint = endpoint
        self._metadata = ((AUTHORIZATION_KEY, bearer(endpoint.token)),) if endpoint.token else None
        # Encode the metrics only once, because protobuf allows appending them to every request.
        self._tail = scoring_pb2.ScoreRequest(metrics=metrics, omit_diagnostics=True).SerializeToString()
        self._deadline_s = deadline_s
        self._open: list[grpc.aio.Channel] = []
        self._calls: Iterator[grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]] = iter(())

    async def connect(self, within_s: float) -> list[grpc.aio.Channel]:
        """Connect to every process of the server, and return the channels in the order of use."""
        try:
            async with asyncio.timeout(within_s):
                channels = await self._open_channels_to_all_processes()
        except TimeoutError:
            raise ServerUnreachable(f"{self._endpoint.address} did not answer within {within_s:g} s") from None
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
        """Close the connections, which cancels all calls."""
        await asyncio.gather(*(channel.close() for channel in self._open))

    async def _open_channels_to_all_processes(self) -> list[grpc.aio.Channel]:
        kept: defaultdict[str, list[grpc.aio.Channel]] = defaultdict(list)
        wanted = CONNECTIONS
        while sum(map(len, kept.values())) < wanted and len(self._open) < _TRIES * wanted:
            channel = open_channel(self._endpoint, _OPTIONS)
            self._open.append(channel)
            process = await self._process_of(channel)
            wanted = max(wanted, CONNECTIONS * int(process.partition("/")[2] or 1))
            if len(kept[process]) < CONNECTIONS:
                kept[process].append(channel)
        in_turns = [each for each in chain.from_iterable(zip_longest(*kept.values())) if each is not None]
        surplus = [channel for channel in self._open if channel not in in_turns]
        self._open = in_turns
        await asyncio.gather(*(channel.close() for channel in surplus))
        return in_turns

    async def _process_of(self, channel: grpc.aio.Channel) -> str:
        """Return the server process that answers, in the form "INDEX/COUNT", or "" for a single process."""
        list_models: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(_LIST)
        call = list_models(b"", metadata=self._metadata, wait_for_ready=True)
        await call
        values = (value for key, value in await call.trailing_metadata() or () if key == PROCESS_KEY)
        return process_of(next(values, ""))


Offsets = NDArray[np.float64]
"""Due times in seconds after the start, ascending, as float64[calls]."""
Send = Callable[[float], Coroutine[Any, Any, None]]


def poisson(rate_per_s: float, duration_s: float, seed: int) -> Offsets:
    """Return the due times of Poisson arrivals."""
    source = np.random.default_rng(seed)
    most = int(rate_per_s * duration_s + 10 * (rate_per_s * duration_s) ** 0.5 + 20)
    offsets: Offsets = np.cumsum(source.exponential(1 / rate_per_s, most))
    return offsets[offsets < duration_s]


async def open_loop(due_s: Iterable[float], send: Send) -> None:
    """Start `send(due)` at each due time, even if late, and return when all calls have ended.

    `due_s` are ascending due times in seconds, on the running event loop's clock.
    """
    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as calls:
        for due in due_s:
            # Sleep even when late, because the loop reads replies only while this function sleeps.
            await asyncio.sleep(max(0.0, due - loop.time()))
            calls.create_task(send(due))


@dataclass(slots=True)
class Sender:
    """A sender, which makes calls and records the results in `counts`.

    A call counts as in time if it is scored before `in_time_until_s` on the event loop's clock.
    """

    caller: LoadCaller
    items: Iterator[SentItem]
    batch: int
    in_time_until_s: float = float("inf")
    counts: StepCounts = field(default_factory=StepCounts)

    async def open(self, due_s: Iterable[float]) -> None:
        """Send calls at these due times, on the event loop's clock."""
        await open_loop(due_s, self.send)

    async def closed(self, until_s: float, in_flight: int) -> None:
        """Keep `in_flight` calls in flight until `until_s`, a time on the event loop's clock."""
        clock = asyncio.get_running_loop().time

        async def one_after_another() -> None:
            while clock() < until_s:
                await self.send(clock())

        async with asyncio.TaskGroup() as tasks:
            for _ in range(in_flight):
                tasks.create_task(one_after_another())

    async def send(self, due_s: float) -> None:
        """Send the call that is due at this time."""
        clock = asyncio.get_running_loop().time
        items = [next(self.items) for _ in range(self.batch)]
        counts = self.counts
        counts.due += 1
        counts.sent_items += len(items)
        counts.repeated += sum(each.repeated for each in items)
        counts.lag_s.append(clock() - due_s)
        try:
            result = await self.caller.call([each.item for each in items])
        except asyncio.CancelledError:
            counts.codes[STOPPED] += 1
            raise
        now_s = clock()
        counts.count(result, items=len(items), latency_s=now_s - due_s, in_time=now_s <= self.in_time_until_s)
