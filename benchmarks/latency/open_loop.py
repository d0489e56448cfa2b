"""Measure latency over a real socket in an open loop, which sends on a schedule without waiting for earlier replies.

The kinds of requests follow each other in a fixed rotation, so that the machine's load affects all alike. Each kind of
cold answers is compared with the bare forward, which runs the same texts in one batch in this process.
"""

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import numpy as np
from benchmarks.common.rows import DEFAULT_DATA
from benchmarks.common.servers import start_engine, started
from benchmarks.latency.payloads import (
    PRESETS,
    BareForward,
    Rows,
    cold_texts,
    pick_rows,
    prepare_request,
    score_request,
)

from gradewire_cli.bench.load.calls import open_loop
from gradewire_proto.v1 import references_pb2_grpc, scoring_pb2, scoring_pb2_grpc

STAGES = ("queue_s", "cache_s", "tokenize_s", "inference_s")
Call = Callable[[], Awaitable[Any]]


@dataclass
class Samples:
    """The latencies of a kind of request, in seconds."""

    latency: list[float] = field(default_factory=list)
    server: list[float] = field(default_factory=list)
    stages: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))


class OpenLoop:
    """A sender of calls on a schedule; times count from the moment when a call is due."""

    def __init__(self, interval_s: float) -> None:
        self.interval_s = interval_s
        self.samples: dict[str, Samples] = defaultdict(Samples)

    async def timed(self, kind: str, due: float, call: Call) -> None:
        """Make a call; measure its latency from `due`, even if the call starts late."""
        reply = await call()
        mine = self.samples[kind]
        mine.latency.append(asyncio.get_running_loop().time() - due)
        if isinstance(reply, scoring_pb2.ScoreResponse) and reply.items:
            mine.server.append(reply.server_s)
            for stage in STAGES:
                mine.stages[stage].append(getattr(reply.items[0].results[0].timing, stage))

    async def run(self, calls: list[tuple[str, Call]]) -> None:
        """Send all calls, one per interval."""
        following, begin_s = iter(calls), asyncio.get_running_loop().time() + 0.1

        async def send(due_s: float) -> None:
            kind, call = next(following)
            await self.timed(kind, due_s, call)

        await open_loop((begin_s + number * self.interval_s for number in range(len(calls))), send)


@dataclass(frozen=True)
class Targets:
    """The calls to both servers and to the bare forward."""

    score: Callable[[scoring_pb2.ScoreRequest], Awaitable[scoring_pb2.ScoreResponse]]
    echo: Callable[[bytes], Awaitable[bytes]]
    bare: BareForward

    def fixed(self, rows: Rows) -> list[tuple[str, Call]]:
        """Return repeatable calls: an echo, an empty request, and a cached item."""
        return [
            ("echo", lambda: self.echo(b"")),
            ("empty", lambda: self.score(scoring_pb2.ScoreRequest())),
            *((f"warm {preset}", self.scoring(rows.warm, preset)) for preset in PRESETS),
        ]

    def cold(self, rows: Rows, number: int) -> list[tuple[str, Call]]:
        """Return a rotation: every pool with both presets, each followed by the bare forward."""
        calls: list[tuple[str, Call]] = []
        for name, pool in rows.cold.items():
            for offset, preset in enumerate(PRESETS):
                row = pool[2 * number + offset]
                calls.append((f"{name} {preset}", self.scoring(row, preset)))
                calls.append((f"{name} {preset}, bare forward", self.forward(cold_texts(row, preset))))
        return calls

    def scoring(self, row: dict[str, Any], preset: str) -> Call:
        """Return a Score call with one row."""
        return lambda: self.score(score_request(row, preset))

    def forward(self, texts: list[str]) -> Call:
        """Return a call that runs the bare forward outside this event loop."""
        return lambda: asyncio.to_thread(self.bare.run, texts)


async def measure(arguments: argparse.Namespace, gradewire: str, echo: str) -> dict[str, Samples]:
    """Prepare the references, warm up, then send all calls on schedule."""
    rows = pick_rows(arguments.data, arguments.samples)
    loop = OpenLoop(arguments.interval_ms / 1000)
    async with grpc.aio.insecure_channel(gradewire) as channel, grpc.aio.insecure_channel(echo) as echo_channel:
        prepare = references_pb2_grpc.ReferencesStub(channel).Prepare
        for batch in ([rows.warm], *rows.cold.values()):
            async for _ in prepare(prepare_request(batch)):
                pass
        call_echo: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = echo_channel.unary_unary("/bench.Echo/Echo")
        targets = Targets(scoring_pb2_grpc.ScoringStub(channel).Score, call_echo, BareForward(arguments.threads))
        await loop.run(targets.fixed(rows) * 20)
        loop.samples.clear()
        await loop.run(
            [
                call
                for number in range(arguments.samples)
                for call in [*targets.fixed(rows), *targets.cold(rows, number)]
            ]
        )
    return loop.samples


def report(samples: dict[str, Samples], load_before: float) -> None:
    """Print p50 and p99, each stage's time, and the promised ratios."""
    p50 = {kind: statistics.median(mine.latency) for kind, mine in samples.items()}
    print(f"load average before {load_before:.2f}, after {os.getloadavg()[0]:.2f}\n")
    print("| kind | n | p50 ms | p99 ms | in the server ms | queue | cache | tokenize | inference |")
    print("|---|---|---|---|---|---|---|---|---|")
    for kind, mine in samples.items():
        server = statistics.median(mine.server) if mine.server else None
        cells = [
            kind,
            str(len(mine.latency)),
            f"{p50[kind] * 1e3:.2f}",
            f"{float(np.percentile(mine.latency, 99)) * 1e3:.2f}",
            f"{server * 1e3:.2f}" if server else "-",
            *(f"{statistics.median(mine.stages[stage]) / server:.0%}" if server else "-" for stage in STAGES),
        ]
        print(f"| {' | '.join(cells)} |")
    print("\n| ratio of p50 | value | goal |\n|---|---|---|")
    ratios = [
        ("empty call over bare echo", p50["empty"] / p50["echo"], "<= 1.5"),
        ("warm item, v1, over empty call", p50["warm v1"] / p50["empty"], "<= 3"),
        ("warm item, fast, over empty call", p50["warm fast"] / p50["empty"], "<= 3"),
        ("40 words, fast over v1", p50["40 words fast"] / p50["40 words v1"], "<= 0.4"),
    ]
    for kind in [kind for kind in p50 if kind.endswith(tuple(PRESETS)) and "words" in kind]:
        floor = p50[f"{kind}, bare forward"] + p50["empty"]
        ratios.append((f"{kind}, cold, over bare forward + empty call", p50[kind] / floor, "<= 1.5"))
    for name, value, goal in ratios:
        print(f"| {name} | {value:.2f} | {goal} |")


def main() -> None:
    """Start both servers, measure, print, and stop them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA)
    parser.add_argument("--samples", type=int, default=90, help="requests of each kind")
    parser.add_argument("--interval-ms", type=float, default=130, help="time between two requests of the schedule")
    parser.add_argument("--threads", type=int, default=2, help="threads of the bare forward")
    arguments = parser.parse_args()
    pick_rows(arguments.data, arguments.samples)
    load_before = os.getloadavg()[0]
    with (
        tempfile.TemporaryDirectory() as cache,
        start_engine("embedded", {"disk-directory": cache}) as gradewire,
        started([sys.executable, "-m", "benchmarks.latency.echo_server"]) as (_, echo_port),
    ):
        samples = asyncio.run(measure(arguments, gradewire.address, f"127.0.0.1:{echo_port.strip()}"))
    report(samples, load_before)


if __name__ == "__main__":
    main()
