"""What `soak` sends: requests half of whose texts were never sent before, at full speed or on a schedule."""

import asyncio
import random
import time
from collections import deque
from dataclasses import dataclass, field

import grpc
from benchmarks.load.memory import WORDS
from benchmarks.load.schedule import even_times

from gradewire_cli.bench.load.calls import open_loop
from gradewire_proto.v1 import scoring_pb2, scoring_pb2_grpc, types_pb2

ITEMS = 32
MAX_OPEN = 32
DEADLINE_S = 60.0
_RECENT = 2_000
_METRICS = (types_pb2.MetricSpec(sbert=types_pb2.SbertParameters()),)


class Requests:
    """An endless supply of requests. Texts have 1 to 24 words, since allocators grow with the variety of shapes.

    Args:
        seed: Of the random choices; the running number alone makes a text new.
    """

    def __init__(self, seed: int = 0) -> None:
        self._source = random.Random(seed)  # noqa: S311 - test data, not a secret
        self._recent: deque[str] = deque(maxlen=_RECENT)
        self._made = 0

    def next(self) -> scoring_pb2.ScoreRequest:
        """Half of the items are new, the other half was sent not long ago (none at the very beginning)."""
        new = [self._text() for _ in range(ITEMS // 2)]
        seen = self._source.sample(self._recent, ITEMS // 2) if len(self._recent) == _RECENT else []
        self._recent.extend(new)
        items = [
            types_pb2.Item(id=str(number), references=["a reference"], prediction=text)
            for number, text in enumerate([*new, *seen])
        ]
        return scoring_pb2.ScoreRequest(items=items, metrics=_METRICS)

    def _text(self) -> str:
        self._made += 1
        return " ".join([*self._source.choices(WORDS, k=self._source.randint(0, 23)), str(self._made)])


@dataclass
class Tally:
    """The results of the requests of one stretch.

    Attributes:
        items: Items that came back with a score.
        errors: Calls and items that did not, by what they said.
        latency_s: Of each call, from when it was due.
    """

    items: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    latency_s: list[float] = field(default_factory=list)

    def error(self, what: str) -> None:
        """Counts one error."""
        self.errors[what] = self.errors.get(what, 0) + 1


class Sender:
    """Sends requests over one channel, without retries: an error is an error."""

    def __init__(self, channel: grpc.aio.Channel, requests: Requests) -> None:
        self._score = scoring_pb2_grpc.ScoringStub(channel).Score
        self._requests = requests

    async def closed_loop(self, duration_s: float, in_flight: int) -> Tally:
        """`in_flight` calls at any time: what comes back per second is the capacity."""
        tally, end_s = Tally(), time.monotonic() + duration_s

        async def one_after_another() -> None:
            while time.monotonic() < end_s:
                await self._send(tally, time.monotonic())

        await asyncio.gather(*(one_after_another() for _ in range(in_flight)))
        return tally

    async def open_loop(self, duration_s: float, requests_per_s: float) -> Tally:
        """One request per interval, whether or not earlier ones are back, and MAX_OPEN calls at most.

        Where a busy machine falls behind, what is late waits here, as at a sensible caller, and latency says so.
        """
        tally, room = Tally(), asyncio.Semaphore(MAX_OPEN)

        async def send(due_s: float) -> None:
            async with room:
                await self._send(tally, due_s)

        await open_loop(even_times(requests_per_s, duration_s), send)
        return tally

    async def _send(self, tally: Tally, due_s: float) -> None:
        try:
            reply = await self._score(self._requests.next(), timeout=DEADLINE_S)
        except grpc.aio.AioRpcError as error:
            tally.error(f"{error.code().name}: {error.details()}")
            return
        tally.latency_s.append(time.monotonic() - due_s)
        for item in reply.items:
            result = item.results[0]
            if result.status == types_pb2.STATUS_OK and result.HasField("score"):
                tally.items += 1
            else:
                tally.error(f"{types_pb2.Status.Name(result.status)}: {result.message}")
