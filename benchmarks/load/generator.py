"""Sends calls of one cold item each, as fast as they are answered or on a schedule, and tells how they ended."""

import asyncio
import os
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Self

import numpy as np
from benchmarks.load.frames import Ended, FramedConnection
from benchmarks.load.memory import WORDS
from benchmarks.load.schedule import even_times

from gradewire_cli.bench.load.calls import open_loop
from gradewire_proto.v1 import scoring_pb2, types_pb2

SCORE: Final = "/gradewire.v1.Scoring/Score"
_OK: Final = types_pb2.STATUS_OK


class Texts:
    """Requests of one item whose answer was never sent before, ready for the wire."""

    def __init__(self, seed: int = 0) -> None:
        self._source = random.Random(seed)  # noqa: S311 - test data, not a secret
        self._made = 0

    def next(self) -> bytes:
        """The next request."""
        self._made += 1
        words = self._source.choices(WORDS, k=4)
        item = types_pb2.Item(
            question="what is on the table?",
            references=["a bowl of fruit"],
            prediction=f"{' '.join(words)} {self._made}",
        )
        metric = types_pb2.MetricSpec(smile=types_pb2.SmileParameters())
        return scoring_pb2.ScoreRequest(items=[item], metrics=[metric], omit_diagnostics=True).SerializeToString()


@dataclass
class Tally:
    """How the calls of one phase ended; seconds.

    Attributes:
        scored_s: Latency of those that were scored, from when they were due.
        refused_s: Latency of those that were refused, from when they left.
        hinted: How many refusals said when to come back.
        ends: How many ended how.
        sent: All.
    """

    scored_s: list[float] = field(default_factory=list)
    refused_s: list[float] = field(default_factory=list)
    hinted: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    sent: int = 0

    def count(self, ended: Ended, due_s: float, left_s: float) -> None:
        """Counts one that was due and left at these times."""
        if ended.code != "OK":
            self.ends[ended.code] += 1
            if ended.code == "RESOURCE_EXHAUSTED":
                self.refused_s.append(time.monotonic() - left_s)
                self.hinted += ended.hinted
            return
        status = scoring_pb2.ScoreResponse.FromString(ended.data).items[0].results[0].status
        self.ends[types_pb2.Status.Name(status)] += 1
        if status == _OK:
            self.scored_s.append(time.monotonic() - due_s)


class Generator:
    """Sends calls over a few connections, without retries."""

    def __init__(self, connections: Sequence[FramedConnection]) -> None:
        self._connections = connections
        self._texts = Texts(seed=os.getpid())

    @classmethod
    async def open(cls, address: str, connections: int, deadline_s: float) -> Self:
        """Connects."""
        return cls([await FramedConnection.open(SCORE, address, deadline_s) for _ in range(connections)])

    def close(self) -> None:
        """Ends the connections."""
        for connection in self._connections:
            connection.close()

    def send(self, tally: Tally, due_s: float) -> asyncio.Future[Ended]:
        """One call; done when it is counted."""
        tally.sent += 1
        left_s = time.monotonic()
        answer = self._connections[tally.sent % len(self._connections)].call(self._texts.next())
        answer.add_done_callback(lambda done: tally.count(done.result(), due_s, left_s))
        return answer

    async def closed_loop(self, duration_s: float, in_flight: int) -> Tally:
        """`in_flight` calls at any time."""
        tally, end_s = Tally(), time.monotonic() + duration_s

        async def one_after_another() -> None:
            while time.monotonic() < end_s:
                await self.send(tally, time.monotonic())

        await asyncio.gather(*(one_after_another() for _ in range(in_flight)))
        return tally

    async def open_loop(self, duration_s: float, calls_per_s: float) -> Tally:
        """Calls on a schedule, however many are open."""
        tally = Tally()

        async def send(due_s: float) -> None:
            self.ended_s = time.monotonic()
            await self.send(tally, due_s)

        await open_loop(even_times(calls_per_s, duration_s), send)
        return tally

    async def recovery_s(self, usual_s: float) -> float:
        """Seconds from the end of a flood until one call alone is scored within three times its usual time."""
        while True:
            tally, began_s = Tally(), time.monotonic()
            await self.send(tally, began_s)
            if tally.scored_s and tally.scored_s[0] <= 3 * usual_s:
                return began_s - self.ended_s
            if began_s - self.ended_s > 60:
                return float("inf")


def percentiles_ms(seconds: Sequence[float]) -> str:
    """p50 / p99 in ms."""
    return " / ".join(f"{np.percentile(seconds, q) * 1e3:.0f}" for q in (50, 99)) if seconds else "-"
