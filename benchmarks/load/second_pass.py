"""Compare passes over the same rows, of servers with one process and with several.

    python -m benchmarks.load.second_pass --processes 1 2 4 --metrics smile

For each number of processes, an empty server scores the rows:
- first: new rows, through one client;
- second: the same rows, through the same client;
- new client: the same rows, through a client that has not seen them;
- replaced: the same rows, after one process was killed and its successor serves. Without several processes, this pass
  is left out.

The program prints rows per second, the CPU time of all server processes per row, and the texts that encoders computed.
The passes after the first take less than a second, so each is repeated, and the best rate counts. With --damage, a
thread flips bits of the processes' shared memory during all passes. Rates then mean nothing, but scores stay equal.
"""

import argparse
import math
import mmap
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import psutil
from benchmarks.common.rows import DEFAULT_DATA, Row, items_of, read_rows, sample_rows
from benchmarks.common.servers import Server, start_engine, whole_cpu_s

import gradewire

_COMPUTED: Final = "gradewire_engine_texts_total"
_READY: Final = "gradewire_processes_ready"
_READY_S: Final = 60.0
_SEED: Final = 17
_DEADLINE_S: Final = 550.0
_FAULTS: Final = frozenset({"UNAVAILABLE", "TIMEOUT", "INTERNAL", "MODEL_UNAVAILABLE"})
_TOLERANCE: Final = 2e-4
_EMPTIED_SHARE: Final = 0.001


@dataclass(frozen=True, slots=True)
class Pass:
    """A pass over all rows: rows per second, CPU µs of the server per row, and texts that were computed."""

    rows_per_s: float
    cpu_us: float
    computed: int


class Subject:
    """A running server with `processes` processes.

    Attributes:
        scores: The scores of the last pass.
    """

    def __init__(self, server: Server, processes: int, rows: Sequence[Row], metrics: str) -> None:
        self._server = server
        self._processes = processes
        self._rows = rows
        self._metrics = metrics
        self.scores: list[float | None] = []

    def measure(self, client: gradewire.Client) -> Pass:
        """Score all rows once."""
        computed, cpu_s, began_s = self._computed(), whole_cpu_s(self._server.process.pid), time.perf_counter()
        report = client.score(self._rows, self._metrics)
        took_s = time.perf_counter() - began_s
        spent_s = whole_cpu_s(self._server.process.pid) - cpu_s
        results = [result for row in report for result in row.scores.values()]
        if failed := [result for result in results if result.status in _FAULTS]:
            raise RuntimeError(f"{len(failed)} results failed: {failed[0].message}")
        self.scores = [result.score for result in results]
        count = len(self._rows)
        return Pass(count / took_s, spent_s / count * 1e6, int(self._computed() - computed))

    def best_of(self, client: gradewire.Client, repeats: int) -> Pass:
        """Score all rows `repeats` times; return the fastest pass, with the texts that all passes computed."""
        found = [self.measure(client) for _ in range(repeats)]
        best = max(found, key=lambda each: each.rows_per_s)
        return Pass(best.rows_per_s, best.cpu_us, sum(each.computed for each in found))

    def client(self) -> gradewire.Client:
        """Return a new client."""
        return gradewire.Client(self._server.address, deadline_s=_DEADLINE_S)

    def kill_one(self) -> None:
        """Kill the server process with the most memory, and wait until its successor serves."""
        servers = [each for each in self._server.process.children(recursive=True) if _is_server(each)]
        max(servers, key=lambda each: each.memory_info().rss).send_signal(signal.SIGKILL)
        ends_s = time.monotonic() + _READY_S
        down = False
        while not (down and self._server.metric(_READY) == self._processes):
            down = down or self._server.metric(_READY) < self._processes
            if time.monotonic() > ends_s:
                raise RuntimeError("no successor became ready")
            time.sleep(0.05)

    def _computed(self) -> float:
        return self._server.metric(_COMPUTED, source="computed")


@contextmanager
def damaged(supervisor: int) -> Iterator[None]:
    """Flip bits of the memory that a supervisor's processes share, and sometimes empty it, until the context exits."""
    descriptors = Path(f"/proc/{supervisor}/fd").iterdir()
    found = [each for each in descriptors if "memfd:gradewire-shared" in os.path.realpath(each)]
    chance = random.Random(_SEED)  # noqa: S311 - no secret
    ended = threading.Event()

    def damage() -> None:
        with found[0].open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
            while not ended.wait(0.01):
                for _ in range(len(memory) >> 18):
                    memory[chance.randrange(len(memory))] ^= 1 << chance.randrange(8)
                if chance.random() < _EMPTIED_SHARE:
                    memory[:] = bytes(len(memory))

    thread = threading.Thread(target=damage if found else ended.wait)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _is_server(process: psutil.Process) -> bool:
    return "gradewire_server.server_child" in process.cmdline()


@contextmanager
def started(processes: int, rows: Sequence[Row], options: argparse.Namespace) -> Iterator[Subject]:
    """Start a server with an empty store, and stop it at the end."""
    with TemporaryDirectory() as store:
        flags = {"processes": str(processes), "judge-backend": "none", "disk-directory": store, "log-level": "warning"}
        flags |= dict(flag.split("=", 1) for flag in options.flags)
        with (
            start_engine("embedded", flags) as server,
            damaged(server.process.pid) if options.damage else nullcontext(),
        ):
            yield Subject(server, processes, rows, options.metrics)


def passes(subject: Subject, processes: int, repeats: int) -> Iterator[tuple[str, Pass]]:
    """Measure all passes, in order."""
    with subject.client() as client:
        yield "first", subject.measure(client)
        yield "second", subject.measure(client)
        yield "later", subject.best_of(client, repeats)
        with subject.client() as another:
            yield "new client", subject.best_of(another, repeats)
        if processes > 1:
            subject.kill_one()
            yield "replaced", subject.measure(client)


def main() -> None:
    """Print a row for each pass, and exit with code 1 if servers gave different scores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--metrics", default="smile")
    parser.add_argument("--repeats", type=int, default=3, help="passes of which the fastest counts")
    parser.add_argument("--flags", nargs="*", default=[], metavar="NAME=VALUE", help="further flags of the server")
    parser.add_argument("--damage", action="store_true", help="damage the shared memory during all passes")
    options = parser.parse_args()
    rows = items_of(sample_rows(read_rows(options.data), options.rows, _SEED))
    rates: dict[str, float] = {}
    scores: list[float | None] = []
    furthest = 0.0
    print("| processes | pass | rows/s | of the first server | CPU, µs a row | texts computed | load |")
    print("|---|---|---|---|---|---|---|")
    for processes in options.processes:
        with started(processes, rows, options) as subject:
            for name, found in passes(subject, processes, options.repeats):
                ratio = found.rows_per_s / rates.setdefault("second" if name == "replaced" else name, found.rows_per_s)
                print(
                    f"| {processes} | {name} | {found.rows_per_s:.0f} | {ratio:.2f} | {found.cpu_us:.0f} | "
                    f"{found.computed} | {os.getloadavg()[0]:.1f} |",
                    flush=True,
                )
                scores = scores or subject.scores
                furthest = max(furthest, *map(difference, scores, subject.scores))
    print(f"largest difference of a score: {furthest:.1e}")
    if furthest > _TOLERANCE:
        sys.exit(1)


def difference(one: float | None, other: float | None) -> float:
    """Return the difference of two scores. It is infinite if only one of two results has a score."""
    if one is None or other is None:
        return 0.0 if one is other else math.inf
    return abs(one - other)


if __name__ == "__main__":
    main()
