"""What memory caches that are kept apart cost: hits and CPU of one process and of several, half the answers repeated.

Every answer is new, or one of the last `--recent` at even odds: labelled rows with their questions and references. The
servers take turns with the same calls on stores of their own, empty at the beginning, with the same memory in all: one
process has all of it, each of several its share. What one process finds in memory is the upper bound for caches that
are partitioned by key; what such a cache costs beside is the hop, measured by itself: CPU of both ends of a socket of
this machine, with asyncio on both, for one exchange of as many vectors as a call of these looks for elsewhere. Nothing
is parsed, checked or waited for there, so that a real one costs more.
"""

import argparse
import asyncio
import multiprocessing
import os
import random
import resource
import statistics
import tempfile
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import psutil
from benchmarks.common.rows import DEFAULT_DATA, Row, items_of, read_rows
from benchmarks.common.servers import start_engine

from gradewire import AsyncClient

_IN_FLIGHT: Final = 8
_REPEATED: Final = 0.5
_KEY_BYTES: Final = 16
_VECTOR_BYTES: Final = 2 * 384
_WHERE: Final = ("memory", "joined", "disk", "computed")


@dataclass(frozen=True, slots=True)
class Cost:
    """What a server spent.

    Attributes:
        cpu_ms: Of all its processes, for an item.
        texts: Looked for, for an item; results that are remembered look for none.
        shares: Of the texts, by where they were found.
    """

    cpu_ms: float
    texts: float
    shares: dict[str, float]


def make_calls(rows: Sequence[Row], count: int, items: int, recent: int, seed: int) -> list[list[Row]]:
    """Calls of so many items; raises ValueError where there are too few rows for them."""
    source = random.Random(seed)  # noqa: S311 - test data, not a secret
    if len(rows) < count * items:
        raise ValueError(f"{count * items} rows are needed at most, {len(rows)} are there: give fewer --calls")
    new = iter(source.sample(rows, len(rows)))
    answers: deque[Row] = deque(maxlen=recent)

    def row() -> Row:
        if answers and source.random() < _REPEATED:
            return source.choice(answers)
        answers.append(next(new))
        return answers[-1]

    return [[row() for _ in range(items)] for _ in range(count)]


async def send(address: str, calls: Sequence[Sequence[Row]], metric: str) -> Counter[str]:
    """Sends the calls in order, several in flight; returns where texts were found."""
    found: Counter[str] = Counter()
    left = iter(calls)
    async with AsyncClient(address, deadline_s=300) as client:

        async def caller() -> None:
            for rows in left:
                for item in await client.score(list(rows), metric):
                    for score in item.scores.values():
                        if score.score is None:
                            raise RuntimeError(f"{score.status}: {score.message}")
                        found.update({where: getattr(score.cache_hits, where) for where in _WHERE})

        await asyncio.gather(*(caller() for _ in range(_IN_FLIGHT)))
    return found


def measure(processes: int, calls: Sequence[Sequence[Row]], options: argparse.Namespace) -> Cost:
    """The cost of the second half of the calls; the first one fills the caches."""
    half = len(calls) // 2
    with TemporaryDirectory() as store:
        flags = {
            "processes": str(processes),
            "judge-backend": "none",
            "disk-directory": store,
            "log-request-share": "0",
            "memory-max-bytes": str(options.memory_mib << 20),
            "remembered-results-max-bytes": str(options.results_mib << 20),
        }
        with start_engine("embedded", flags) as server:
            family = [server.process, *server.process.children(recursive=True)]
            asyncio.run(send(server.address, calls[:half], options.metric))
            before_s = sum(map(_cpu_s, family))
            found = asyncio.run(send(server.address, calls[half:], options.metric))
            spent_s = sum(map(_cpu_s, family)) - before_s
    items, texts = sum(map(len, calls[half:])), max(1, found.total())
    return Cost(spent_s / items * 1e3, texts / items, {where: found[where] / texts for where in _WHERE})


def _cpu_s(process: psutil.Process) -> float:
    return sum(process.cpu_times()[:2])


def hop_us(vectors: int, exchanges: int = 3000) -> float:
    """CPU microseconds of both ends of one exchange: keys there, vectors back."""
    with tempfile.TemporaryDirectory() as directory:
        path = str(Path(directory) / "hop")
        ours, theirs = multiprocessing.Pipe()
        context = multiprocessing.get_context("spawn")
        peer = context.Process(target=_answer_hops, args=(path, vectors, theirs))
        peer.start()
        ours.recv()
        before = resource.getrusage(resource.RUSAGE_SELF)
        asyncio.run(_ask_hops(path, vectors, exchanges))
        after = resource.getrusage(resource.RUSAGE_SELF)
        peer_s = float(ours.recv())
        peer.join()
    own_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return (own_s + peer_s) / exchanges * 1e6


async def _ask_hops(path: str, vectors: int, exchanges: int) -> None:
    reader, writer = await asyncio.open_unix_connection(path)
    for _ in range(exchanges):
        writer.write(bytes(vectors * _KEY_BYTES))
        await reader.readexactly(vectors * _VECTOR_BYTES)
    writer.close()
    await writer.wait_closed()


def _answer_hops(path: str, vectors: int, told: Any) -> None:
    async def answer() -> None:
        ended = asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            answered = bytes(vectors * _VECTOR_BYTES)
            while await reader.read(vectors * _KEY_BYTES):
                writer.write(answered)
                await writer.drain()
            writer.close()
            ended.set()

        async with await asyncio.start_unix_server(serve, path):
            told.send("listening")
            before = resource.getrusage(resource.RUSAGE_SELF)
            await ended.wait()
            after = resource.getrusage(resource.RUSAGE_SELF)
        told.send(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)

    asyncio.run(answer())


def main() -> None:
    """Prints a row for each server and round, the medians, and the cost of a hop."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="labelled rows")
    parser.add_argument("--metric", default="smile:fast")
    parser.add_argument("--calls", type=int, default=200, help="the first half fills the caches")
    parser.add_argument("--items", type=int, default=8, help="of a call")
    parser.add_argument("--recent", type=int, default=1000, help="answers that may be repeated")
    parser.add_argument("--memory-mib", type=int, default=64, help="memory_max_bytes of all processes together")
    parser.add_argument("--results-mib", type=int, default=32, help="remembered results of all together")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    rows = items_of(read_rows(options.data))
    print(f"{options.metric}, {options.items} items a call")
    print(f"{options.memory_mib} MiB of vectors and {options.results_mib} MiB of results, of all processes together")
    print("| processes | CPU, ms an item | texts an item | memory | joined | disk | computed | load |")
    print("|---|---|---|---|---|---|---|---|")
    found: dict[int, list[Cost]] = {count: [] for count in options.processes}
    for number in range(options.rounds):
        calls = make_calls(rows, options.calls, options.items, options.recent, number)
        for count, costs in found.items():
            costs.append(measure(count, calls, options))
            _print(str(count), costs[-1])
    medians = {count: _median(costs) for count, costs in found.items()}
    for count, cost in medians.items():
        _print(f"**{count}, median**", cost)
    first, *others = medians.values()
    for count, cost in zip(options.processes[1:], others, strict=True):
        here = first.shares["memory"] + first.shares["joined"]
        elsewhere = max(1, round(first.texts * options.items * here * (1 - 1 / count)))
        hop = hop_us(elsewhere) * (count - 1) / options.items / 1e3
        print(f"{count} processes: {cost.cpu_ms / first.cpu_ms:.2f} x the CPU of one.")
        print(
            f"Partitioned by key: {first.cpu_ms:.3f} ms as one process, and {hop:.3f} ms for the hop of {elsewhere} "
            f"vectors of a call to {count - 1} others: {(first.cpu_ms + hop) / first.cpu_ms:.2f} x at least"
        )


def _median(costs: Sequence[Cost]) -> Cost:
    rows = [(cost.cpu_ms, cost.texts, *cost.shares.values()) for cost in costs]
    cpu_ms, texts, *shares = (statistics.median(column) for column in zip(*rows, strict=True))
    return Cost(cpu_ms, texts, dict(zip(_WHERE, shares, strict=True)))


def _print(begin: str, cost: Cost) -> None:
    shares = " | ".join(f"{cost.shares[where]:.1%}" for where in _WHERE)
    print(f"| {begin} | {cost.cpu_ms:.3f} | {cost.texts:.1f} | {shares} | {os.getloadavg()[0]:.1f} |", flush=True)


if __name__ == "__main__":
    main()
