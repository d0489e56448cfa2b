"""Measure how other callers' bulk streams affect a caller's latency, and how the calls affect the streams.

The program sends single cold items on a schedule, first alone, then while a different process sends 1, 8 and 33 streams
of cold items.
"""

import argparse
import asyncio
import multiprocessing
import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import grpc
import numpy as np
from benchmarks.common.measurements import Measurement
from benchmarks.common.servers import Server, whole_cpu_s
from benchmarks.load.command import run_with_server
from benchmarks.load.generator import Generator, Tally, Texts, percentiles_ms

from gradewire_proto.v1 import scoring_pb2, scoring_pb2_grpc

if TYPE_CHECKING:
    from multiprocessing.sharedctypes import Synchronized

_ITEMS = 128


@contextmanager
def streaming(address: str, count: int) -> "Iterator[Synchronized[int]]":
    """Run endless streams in a separate process; yield the number of scored items."""
    context = multiprocessing.get_context("spawn")
    scored: Synchronized[int] = context.Value("q", 0)
    process = context.Process(target=_send_streams, args=(address, count, scored), daemon=True)
    process.start()
    try:
        yield scored
    finally:
        process.terminate()
        process.join()


def _send_streams(address: str, count: int, scored: "Synchronized[int]") -> None:
    async def send() -> None:
        await asyncio.gather(*(_send(address, number, scored) for number in range(count)))

    asyncio.run(send())


async def _send(address: str, number: int, scored: "Synchronized[int]") -> None:
    texts = Texts(seed=1000 + number)

    async def requests() -> AsyncIterator[scoring_pb2.ScoreStreamRequest]:
        first = scoring_pb2.ScoreRequest.FromString(texts.next())
        yield scoring_pb2.ScoreStreamRequest(config=scoring_pb2.ScoreStreamConfig(metrics=first.metrics))
        while True:
            items = [scoring_pb2.ScoreRequest.FromString(texts.next()).items[0] for _ in range(_ITEMS)]
            for item in items:
                item.prediction += f" {number}"
            yield scoring_pb2.ScoreStreamRequest(items=scoring_pb2.ScoreStreamItems(items=items))

    async with grpc.aio.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
        async for reply in scoring_pb2_grpc.ScoringStub(channel).ScoreStream(requests()):
            with scored.get_lock():
                scored.value += sum(item.complete for item in reply.items)


def measurements_of(count: int, tally: Tally, alone_s: float, throughput: float) -> list[Measurement]:
    """Return the promised values for calls during `count` streams, and for the streams.

    `alone_s` is the p99 of calls without streams; `throughput` is the streams' throughput relative to no calls.
    """

    def figure(name: str, value: float, unit: str, bound: str) -> Measurement:
        name = f"{count} stream{'s' * (count > 1)}: {name}"
        return Measurement("fairness", name, value, unit, bound, "python -m benchmarks.load.fairness")

    found = [
        figure("calls that were not scored", tally.sent - tally.ends["STATUS_OK"], f"of {tally.sent}", "== 0"),
        figure("throughput of the streams beside the calls, of alone", throughput * 100, "%", ">= 90"),
    ]
    if tally.scored_s:
        p99_s = float(np.percentile(tally.scored_s, 99))
        found.append(figure("p99 of calls", p99_s * 1e3, "ms", ""))
        found.append(figure("p99 of calls, of that alone", p99_s / alone_s, "x", "<= 3"))
    return found


async def measure(server: Server, options: argparse.Namespace) -> list[Measurement]:
    """Measure each number of streams with and without calls."""
    measurements: list[Measurement] = []
    alone_s = float("nan")
    generator = await Generator.open(server.address, 1, options.deadline_s)
    await generator.closed_loop(3.0, 8)
    heads = ("streams", "calls p50 / p99 ms", "ends", "bulk items/s during calls", "without", "server CPU", "load")
    print(f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
    for count in (0, *options.streams):
        with streaming(server.address, count) as scored:
            await asyncio.sleep(5 if count else 0)
            before, began_s, cpu_s = scored.value, time.monotonic(), whole_cpu_s(server.process.pid)
            tally = await generator.open_loop(options.duration_s, options.calls_per_s)
            between, between_s = scored.value, time.monotonic()
            used_s = whole_cpu_s(server.process.pid) - cpu_s
            await asyncio.sleep(options.duration_s if count else 0)
            alone = (scored.value - between) / (time.monotonic() - between_s)
        beside = (between - before) / (between_s - began_s)
        print(
            f"| {count} | {percentiles_ms(tally.scored_s)} | {dict(tally.ends)} | {beside:.0f} | {alone:.0f} "
            f"| {used_s / (between_s - began_s):.0%} | {os.getloadavg()[0]:.1f} |",
            flush=True,
        )
        if count:
            measurements += measurements_of(count, tally, alone_s, beside / alone)
        else:
            alone_s = float(np.percentile(tally.scored_s, 99))
            source = "python -m benchmarks.load.fairness"
            measurements.append(Measurement("fairness", "no stream: p99 of calls", alone_s * 1e3, "ms", "", source))
    generator.close()
    return measurements


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--duration-s", type=float, default=20)
    parser.add_argument("--calls-per-s", type=float, default=10)
    parser.add_argument("--deadline-s", type=float, default=20)
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 8, 33])


if __name__ == "__main__":
    run_with_server(__doc__, _options, measure)
