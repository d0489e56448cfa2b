"""Run a server at 70 % of capacity for half an hour; record errors, latency and resident memory.

Half of each request's texts are new. The in-process cache is full before the baseline is measured, so it causes no
later growth. Capacity is the rate of a closed loop, measured again twice a minute. Each stretch adds a JSON line to
--out. The cache on disk is off because its map would count as resident.
"""

import argparse
import asyncio
import json
import os
import random
import sys
import time
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import grpc
import numpy as np
import psutil
from benchmarks.common.servers import ENGINES, Server, start_engine
from benchmarks.load.generator import even_times
from benchmarks.load.memory import WORDS

from gradewire_cli.bench.load.calls import open_loop
from gradewire_proto.v1 import scoring_pb2, scoring_pb2_grpc, types_pb2

ITEMS = 32
MAX_OPEN = 32
DEADLINE_S = 60.0
_RECENT = 2_000
_METRICS = (types_pb2.MetricSpec(sbert=types_pb2.SbertParameters()),)
_IN_FLIGHT = 8
_PROBE_S = 5.0
_GROWTH_GOAL = 0.02


class Requests:
    """An endless source of requests with texts of 1 to 24 words; allocators grow with the variety of shapes."""

    def __init__(self, seed: int = 0) -> None:
        self._source = random.Random(seed)  # noqa: S311 - no secret
        self._recent: deque[str] = deque(maxlen=_RECENT)
        self._made = 0

    def next(self) -> scoring_pb2.ScoreRequest:
        """Return the next request; half of its items are new."""
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
    """The results of a stretch's requests: errors by message, and latencies from the scheduled time."""

    items: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    latency_s: list[float] = field(default_factory=list)

    def error(self, what: str) -> None:
        """Count an error."""
        self.errors[what] = self.errors.get(what, 0) + 1


class Sender:
    """A sender of requests over one channel, without retries, so that every error counts."""

    def __init__(self, channel: grpc.aio.Channel, requests: Requests) -> None:
        self._score = scoring_pb2_grpc.ScoringStub(channel).Score
        self._requests = requests

    async def closed_loop(self, duration_s: float, in_flight: int) -> Tally:
        """Keep `in_flight` calls open for `duration_s`, to measure capacity."""
        tally, end_s = Tally(), time.monotonic() + duration_s

        async def one_after_another() -> None:
            while time.monotonic() < end_s:
                await self._send(tally, time.monotonic())

        await asyncio.gather(*(one_after_another() for _ in range(in_flight)))
        return tally

    async def open_loop(self, duration_s: float, requests_per_s: float) -> Tally:
        """Send one request per interval without waiting for earlier replies, with at most MAX_OPEN open calls.

        On a busy machine, late requests wait here, and the wait counts as latency.
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


def resident_bytes(roots: Sequence[psutil.Process]) -> int:
    """Return the resident bytes of processes and all their children."""
    family = [member for root in roots for member in (root, *root.children(recursive=True))]
    return sum(member.memory_info().rss for member in family)


class Soak:
    """A run against running servers."""

    def __init__(self, server: Server, sender: Sender, out: TextIO) -> None:
        self._server = server
        self._sender = sender
        self._out = out
        self._started_s = time.monotonic()
        self.lines: list[dict[str, Any]] = []

    async def fill(self, deadline_s: float) -> None:
        """Send new texts until the in-process cache evicts entries, then send as many again."""
        end_s = time.monotonic() + deadline_s
        while not self._server.metric("gradewire_engine_memory_evictions_total"):
            if time.monotonic() > end_s:
                raise TimeoutError(
                    "the cache is not full yet. Use a smaller value of --memory-mib or a longer --fill-s"
                )
            self._note("fill", await self._sender.closed_loop(5.0, _IN_FLIGHT))
        self._note("fill", await self._sender.closed_loop(time.monotonic() - self._started_s, _IN_FLIGHT))

    async def capacity(self) -> float:
        """Measure and return the current items per second of a closed loop."""
        tally = await self._sender.closed_loop(_PROBE_S, _IN_FLIGHT)
        self._note("capacity", tally)
        return tally.items / _PROBE_S

    async def soak(self, minutes: float, share: float, renew_s: float) -> None:
        """Send `share` of capacity for `minutes`; measure capacity in separate phases."""
        end_s = time.monotonic() + 60 * minutes
        while (left_s := end_s - time.monotonic()) > 1:
            rate = share * await self.capacity() / ITEMS
            stretch_end_s = time.monotonic() + min(renew_s, left_s)
            while (left_s := stretch_end_s - time.monotonic()) > 1:
                self._note("soak", await self._sender.open_loop(min(60.0, left_s), rate), rate * ITEMS)

    def _note(self, phase: str, tally: Tally, rate: float | None = None) -> None:
        latency = np.array(tally.latency_s or [np.nan])
        line: dict[str, Any] = {
            "phase": phase,
            "at_s": round(time.monotonic() - self._started_s, 1),
            "items": tally.items,
            "wanted_items_per_s": rate and round(rate, 1),
            "errors": tally.errors,
            "p50_ms": round(float(np.percentile(latency, 50)) * 1e3, 1),
            "p99_ms": round(float(np.percentile(latency, 99)) * 1e3, 1),
            "server_bytes": resident_bytes([self._server.process]),
            "triton_bytes": resident_bytes(self._server.triton),
            "load": round(os.getloadavg()[0], 2),
        }
        self.lines.append(line)
        self._out.write(json.dumps(line) + "\n")
        self._out.flush()
        sys.stderr.write(
            f"{line['at_s']:7.0f} s  {phase:<8}  {tally.items:>8,} items  p99 {line['p99_ms']:7.1f} ms  "
            f"server {line['server_bytes'] / 2**20:7.1f} MiB  triton {line['triton_bytes'] / 2**20:7.1f} MiB  "
            f"load {line['load']:.1f}  errors {sum(tally.errors.values())}\n"
        )


def report(lines: list[dict[str, Any]]) -> bool:
    """Print the summary; return True if both goals were reached."""
    first = next(number for number, line in enumerate(lines) if line["phase"] == "soak")
    after = lines[first - 1 :]  # the baseline is the capacity probe before the first stretch
    soaked = [line for line in after if line["phase"] == "soak"]
    errors: dict[str, int] = {}
    for line in lines:
        for what, count in line["errors"].items():
            errors[what] = errors.get(what, 0) + count
    good = not errors
    print(f"{sum(line['items'] for line in lines):,} items, {sum(line['items'] for line in soaked):,} in the soak")
    print(f"errors: {errors or 0} (goal: 0)")
    p50_ms, p99_ms = np.median([line["p50_ms"] for line in soaked]), max(line["p99_ms"] for line in soaked)
    print(f"p50 {p50_ms:.1f} ms, p99 of the worst stretch {p99_ms:.1f} ms")
    for who in ("server_bytes", "triton_bytes"):
        sizes = [line[who] for line in after]
        if not sizes[0]:
            continue
        growth = sizes[-1] / sizes[0] - 1
        largest = max(sizes) / sizes[0] - 1
        good = good and abs(growth) <= _GROWTH_GOAL
        print(
            f"{who.removesuffix('_bytes')}: {sizes[0] / 2**20:.1f} -> {sizes[-1] / 2**20:.1f} MiB, "
            f"{growth:+.2%} at the end, {largest:+.2%} at most (goal: within {_GROWTH_GOAL:.0%})"
        )
    print(f"load average {min(line['load'] for line in soaked)} to {max(line['load'] for line in soaked)}")
    return good


async def run(server: Server, arguments: argparse.Namespace, out: TextIO) -> list[dict[str, Any]]:
    """Fill the cache, then load the server; return the written lines."""
    async with grpc.aio.insecure_channel(server.address) as channel:
        soak = Soak(server, Sender(channel, Requests()), out)
        await soak.fill(arguments.fill_s)
        await soak.soak(arguments.minutes, arguments.share, arguments.renew_s)
    return soak.lines


def main() -> int:
    """Run the soak and print the summary; return 1 if a goal was missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=ENGINES, default="embedded")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--share", type=float, default=0.7, help="load relative to capacity")
    parser.add_argument("--memory-mib", type=int, default=16, help="size of the in-process cache")
    parser.add_argument("--fill-s", type=float, default=600, help="maximum seconds to fill the cache")
    parser.add_argument("--renew-s", type=float, default=30, help="seconds between measurements of capacity")
    parser.add_argument("--out", type=Path, default=Path("soak.jsonl"), help="file for a line per stretch")
    arguments = parser.parse_args()
    with ExitStack() as stack:
        out = stack.enter_context(arguments.out.open("w", encoding="utf-8"))
        options = {"memory-max-bytes": str(arguments.memory_mib << 20), "log-level": "warning"}
        server = stack.enter_context(start_engine(arguments.engine, options))
        lines = asyncio.run(run(server, arguments, out))
    return 0 if report(lines) else 1


if __name__ == "__main__":
    sys.exit(main())
