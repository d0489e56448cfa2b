"""Measure the latency of embedding metrics with a busy and with an idle judge.

The judge's worker has one core; the server and this program share the other. Busy and idle blocks alternate, so that
changes in the machine's load affect both. Requests leave on a schedule (open loop). Busy blocks also fill the judge's
queue with new items.
"""

import argparse
import asyncio
import itertools
import os
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from pathlib import Path

import grpc
import numpy as np
import psutil
from benchmarks.common.rows import DEFAULT_DATA, Row, read_rows, sample_rows
from benchmarks.common.servers import start_engine
from benchmarks.latency.payloads import score_request

from gradewire_proto.v1 import scoring_pb2, scoring_pb2_grpc, types_pb2

STATES = ("idle", "busy")
Score = Callable[..., Awaitable[scoring_pb2.ScoreResponse]]
_JUDGED_AT_ONCE = 24
_SETTLE_S = 1.0


def judge_request(row: Row, number: int) -> scoring_pb2.ScoreRequest:
    """Return a new short item for `lave`; its question contains `number`."""
    item = types_pb2.Item(
        question=f"{row['question']} ({number})", references=row["references"][:3], prediction=row["prediction"][:200]
    )
    return scoring_pb2.ScoreRequest(items=[item], metrics=[types_pb2.MetricSpec(lave=types_pb2.LaveParameters())])


class Load:
    """A sender of requests for the encoder and the judge that records the encoder's latencies.

    Every row is sent cold once, at intervals of `interval_s`.
    """

    def __init__(self, score: Score, rows: list[Row], interval_s: float) -> None:
        self._score = score
        self._warm, *cold = rows
        self._cold = iter(cold)
        self._judged = itertools.cycle(rows)
        self._numbers = itertools.count()
        self._interval_s = interval_s
        self.latency_s: dict[tuple[str, str], list[float]] = defaultdict(list)
        self.verdicts = 0

    async def block(self, state: str, requests: int) -> None:
        """Send `requests` warm and `requests` cold requests, with the judge idle or busy."""
        judging = [asyncio.create_task(self._judge()) for _ in range(_JUDGED_AT_ONCE * (state == "busy"))]
        await asyncio.sleep(_SETTLE_S)
        pending, due_s = [], time.perf_counter()
        for _ in range(requests):
            for kind, row in (("warm", self._warm), ("cold", next(self._cold))):
                await asyncio.sleep(max(0.0, due_s - time.perf_counter()))
                pending.append(asyncio.create_task(self._timed(kind, state, due_s, row)))
                due_s += self._interval_s
        await asyncio.gather(*pending)
        for task in judging:
            task.cancel()
        await asyncio.gather(*judging, return_exceptions=True)
        await asyncio.sleep(_SETTLE_S)

    async def _timed(self, kind: str, state: str, due_s: float, row: Row) -> None:
        reply = await self._score(score_request(row, "v1"))
        self.latency_s[kind, state].append(time.perf_counter() - due_s)
        assert reply.items[0].results[0].status == types_pb2.STATUS_OK

    async def _judge(self) -> None:
        while True:
            reply = await self._score(judge_request(next(self._judged), next(self._numbers)))
            self.verdicts += reply.items[0].results[0].status == types_pb2.STATUS_OK

    async def wake(self) -> None:
        """Make the server load encoder and judge, and cache the warm item."""
        reply = await self._score(judge_request(self._warm, next(self._numbers)), timeout=300)
        result = reply.items[0].results[0]
        if result.status != types_pb2.STATUS_OK:
            raise SystemExit(f"the judge does not answer: {result.message}")
        await self._score(score_request(self._warm, "v1"))


async def measure(address: str, rows: list[Row], arguments: argparse.Namespace, server: psutil.Process) -> Load:
    """Load the models, pin the judge's worker to its core, and run the blocks."""
    async with grpc.aio.insecure_channel(address) as channel:
        load = Load(scoring_pb2_grpc.ScoringStub(channel).Score, rows, arguments.interval_ms / 1000)
        await load.wake()
        workers = server.children(recursive=True)
        assert workers, "the judge has no process"
        for worker in workers:
            worker.cpu_affinity([arguments.judge_core])
        for _ in range(arguments.blocks):
            for state in STATES:
                await load.block(state, arguments.requests)
    return load


def report(load: Load, load_before: float) -> None:
    """Print both states' percentiles and their ratios."""
    print(
        f"load average before {load_before:.2f}, after {os.getloadavg()[0]:.2f}; {load.verdicts} verdicts meanwhile\n"
    )
    print("| request | n each | p50 idle ms | p50 busy ms | ratio | p99 idle ms | p99 busy ms | ratio (goal <= 1.5) |")
    print("|---|---|---|---|---|---|---|---|")
    for kind in ("warm", "cold"):
        idle, busy = (np.array(load.latency_s[kind, state]) * 1e3 for state in STATES)
        p50, p99 = ([float(np.percentile(each, q)) for each in (idle, busy)] for q in (50, 99))
        cells = [*(f"{value:.1f}" for value in p50), f"{p50[1] / p50[0]:.2f}"]
        cells += [*(f"{value:.1f}" for value in p99), f"{p99[1] / p99[0]:.2f}"]
        print(f"| {kind} | {len(idle)} | {' | '.join(cells)} |")


def main() -> None:
    """Start the server, measure, print, and stop the server."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA)
    parser.add_argument("--judge", default="", help="name of the judge; empty means the default judge")
    parser.add_argument("--blocks", type=int, default=5, help="blocks of each state")
    parser.add_argument("--requests", type=int, default=50, help="warm requests per block, and as many cold ones")
    parser.add_argument("--interval-ms", type=float, default=150, help="time between two requests of the schedule")
    parser.add_argument("--server-core", type=int, default=0, help="core of the server and of this program")
    parser.add_argument("--judge-core", type=int, default=1)
    arguments = parser.parse_args()
    rows = sample_rows(read_rows(arguments.data), 1 + 2 * arguments.blocks * arguments.requests, seed=5)
    load_before = os.getloadavg()[0]
    os.sched_setaffinity(0, {arguments.server_core})  # the server inherits this core
    options = {"judge-threads": "1", "workers": "1", "lone-run-threads": "1"}
    if arguments.judge:
        options["judge-model"] = arguments.judge
    with start_engine("embedded", options) as server:
        load = asyncio.run(measure(server.address, rows, arguments, server.process))
    report(load, load_before)


if __name__ == "__main__":
    main()
