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
from typing import Final

import grpc
import numpy as np
from benchmarks.common.servers import Server, start_engine
from benchmarks.load.memory import WORDS

from gradewire_proto.conventions.metadata import PUSHBACK_KEY
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


class Generator:
    """Sends calls over a few channels, without retries."""

    def __init__(self, channels: Sequence[grpc.aio.Channel], deadline_s: float) -> None:
        self._calls: list[grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]] = [
            channel.unary_unary(_SCORE) for channel in channels
        ]
        self._deadline_s = deadline_s
        self._texts = Texts(seed=os.getpid())

    async def send(self, tally: Tally, due_s: float) -> None:
        """One call."""
        request = self._texts.next()
        tally.sent += 1
        left_s = time.monotonic()
        try:
            data = await self._calls[tally.sent % len(self._calls)](request, timeout=self._deadline_s)
        except grpc.aio.AioRpcError as error:
            tally.ends[error.code().name] += 1
            if error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED:
                tally.refused_s.append(time.monotonic() - left_s)
                tally.hinted += any(key == PUSHBACK_KEY for key, _ in error.trailing_metadata() or ())
            return
        status = scoring_pb2.ScoreResponse.FromString(data).items[0].results[0].status
        tally.ends[types_pb2.Status.Name(status)] += 1
        if status == _OK:
            tally.scored_s.append(time.monotonic() - due_s)

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
        pending: set[asyncio.Task[None]] = set()
        end_s = due_s + duration_s
        while due_s < end_s:
            ahead_s = due_s - time.monotonic()
            if ahead_s > 0:
                await asyncio.sleep(ahead_s)
            task = asyncio.create_task(self.send(tally, due_s))
            pending.add(task)
            task.add_done_callback(pending.discard)
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


async def measure(server: Server, options: argparse.Namespace) -> None:
    """All phases."""
    channel_options = [("grpc.use_local_subchannel_pool", 1)]
    channels = [grpc.aio.insecure_channel(server.address, options=channel_options) for _ in range(options.channels)]
    generator = Generator(channels, options.deadline_s)
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
    for channel in channels:
        await channel.close()


def main() -> None:
    """Starts a server, or takes one that is up, and measures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--duration-s", type=float, default=60)
    parser.add_argument("--capacity-s", type=float, default=10)
    parser.add_argument("--deadline-s", type=float, default=5)
    parser.add_argument("--channels", type=int, default=4, help="connections that the calls are spread over")
    parser.add_argument("--multiples", type=float, nargs="+", default=[2, 5])
    parser.add_argument("--server", nargs="*", default=[], help="flags of the server, NAME=VALUE")
    options = parser.parse_args()
    with start_engine("embedded", dict(flag.split("=", 1) for flag in options.server)) as server:
        asyncio.run(measure(server, options))


if __name__ == "__main__":
    main()
