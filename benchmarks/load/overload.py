"""Goodput under overload: calls of one cold item each leave on a schedule, at multiples of what a server gets done.

Capacity is what a closed loop gets through in this same run; the generator shares the machine's cores, which both
phases pay for. A call is scored when its result is OK within its deadline. For each multiple: the share of capacity
that was scored, the codes of the others, how fast refusals came and whether they said when to come back, and how long
after the flood one call alone is scored as fast as before.
"""

import argparse
import asyncio
import os
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
from benchmarks.common.figures import Figure, show
from benchmarks.common.servers import Server, start_engine
from benchmarks.load.frames import Ended, FramedConnection
from benchmarks.load.memory import WORDS

from gradewire_proto.v1 import scoring_pb2, types_pb2

_SCORE: Final = "/gradewire.v1.Scoring/Score"
_IN_FLIGHT: Final = 24
_PROBES: Final = 20
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
    async def open(cls, address: str, connections: int, deadline_s: float) -> "Generator":
        """Connects."""
        return cls([await FramedConnection.open(_SCORE, address, deadline_s) for _ in range(connections)])

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
        tally, due_s = Tally(), time.monotonic()
        pending: set[asyncio.Future[Ended]] = set()
        end_s = due_s + duration_s
        while due_s < end_s:
            ahead_s = due_s - time.monotonic()
            if ahead_s > 0:
                await asyncio.sleep(ahead_s)
            call = self.send(tally, due_s)
            pending.add(call)
            call.add_done_callback(pending.discard)
            due_s += 1 / calls_per_s
        self.ended_s = time.monotonic()
        if pending:
            await asyncio.wait(pending)
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


def figures_of(multiple: float, tally: Tally, share: float, recovery_s: float) -> list[Figure]:
    """What is promised of overload, and what was measured of it."""

    def figure(name: str, value: float, unit: str, bound: str) -> Figure:
        return Figure("overload", f"{multiple:g}x: {name}", value, unit, bound, "python -m benchmarks.load.overload")

    otherwise = tally.sent - tally.ends["STATUS_OK"] - len(tally.refused_s)
    found = [
        figure("scored within the deadline, of capacity", share * 100, "%", ">= 85"),
        figure("ended otherwise than OK or RESOURCE_EXHAUSTED", otherwise, f"of {tally.sent} calls", "== 0"),
        figure("refused without a hint", len(tally.refused_s) - tally.hinted, "", "== 0"),
        figure("until a single call is as fast as before", recovery_s, "s", "< 1"),
    ]
    if tally.scored_s:
        found.append(figure("p99 of scored calls", float(np.percentile(tally.scored_s, 99)) * 1e3, "ms", "<= 1500"))
    if tally.refused_s:
        found.append(figure("p99 of refusals", float(np.percentile(tally.refused_s, 99)) * 1e3, "ms", "<= 50"))
    return found


async def measure(server: Server, options: argparse.Namespace) -> list[Figure]:
    """All phases; returns what was measured of what is promised."""
    figures: list[Figure] = []
    generator = await Generator.open(server.address, options.connections, options.deadline_s)
    await generator.closed_loop(3.0, _IN_FLIGHT)
    alone = await generator.closed_loop(1.0, 1)
    usual_s = float(np.median(alone.scored_s))
    before = await generator.closed_loop(options.capacity_s, _IN_FLIGHT)
    capacity = len(before.scored_s) / options.capacity_s
    latency = percentiles_ms(before.scored_s)
    print(f"alone p50 {usual_s * 1e3:.1f} ms; capacity {capacity:.0f} items/s, p50 / p99 {latency} ms")
    heads = ("offered", "scored of capacity", "scored p50 / p99 ms", "refused p50 / p99 ms", "with hint", "ends")
    print(f"| {' | '.join((*heads, 'recovery s', 'server CPU', 'load'))} |\n{'|---' * 9}|")
    for multiple in options.multiples:
        cpu = server.process.cpu_times()
        began_s = time.monotonic()
        tally = await generator.open_loop(options.duration_s, multiple * capacity)
        took_s = generator.ended_s - began_s
        now = server.process.cpu_times()
        share = len(tally.scored_s) / took_s / capacity
        await asyncio.sleep(0)
        recovery_s = await generator.recovery_s(usual_s)
        print(
            f"| {multiple:g}x | {share:.1%} | {percentiles_ms(tally.scored_s)} | {percentiles_ms(tally.refused_s)} "
            f"| {tally.hinted} of {len(tally.refused_s)} | {dict(tally.ends)} | {recovery_s:.2f} "
            f"| {(now.user + now.system - cpu.user - cpu.system) / took_s:.0%} | {os.getloadavg()[0]:.1f} |",
            flush=True,
        )
        figures += figures_of(multiple, tally, share, recovery_s)
    generator.close()
    return figures


def main() -> None:
    """Starts a server, or takes one that is up, and measures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--duration-s", type=float, default=60)
    parser.add_argument("--capacity-s", type=float, default=10)
    parser.add_argument("--deadline-s", type=float, default=5)
    parser.add_argument("--connections", type=int, default=8, help="connections that the calls are spread over")
    parser.add_argument("--multiples", type=float, nargs="+", default=[2, 5])
    parser.add_argument("--server", nargs="*", default=[], help="flags of the server, NAME=VALUE")
    parser.add_argument("--figures", type=Path, metavar="FILE", help="append what is promised to FILE, as JSON lines")
    options = parser.parse_args()
    with start_engine("embedded", dict(flag.split("=", 1) for flag in options.server)) as server:
        figures = asyncio.run(measure(server, options))
    show(figures, options.figures)


if __name__ == "__main__":
    main()
