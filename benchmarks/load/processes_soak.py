"""Run several server processes under load for half an hour and kill one of them every few minutes.

The Python client sends calls and streams on a schedule. The program compares every score with the score from a single
undisturbed process. Half of a call's rows repeat a few rows; the other half is drawn from far more rows than the memory
cache holds. Each minute and each kill adds a JSON line to --out.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TextIO

import psutil
from benchmarks.common.servers import Server, start_engine
from benchmarks.load.generator import even_times
from benchmarks.load.memory import WORDS
from typing_extensions import override

from gradewire import AsyncClient
from gradewire._transports.grpc_transport import GrpcTransport
from gradewire.errors import GradewireError
from gradewire.results import ItemScores
from gradewire.transport import SCORE, SCORE_STREAM, Endpoint, Q, R, RpcMethod
from gradewire_cli.bench.load.calls import open_loop

METRICS: Final = "smile:fast,exact_match"
_TOLERANCE: Final = 2e-4
_OFTEN: Final = 256
_MAX_OPEN: Final = 64
_STREAMS: Final = 0.2
_DEADLINE_S: Final = 60.0
_READY_WITHIN_S: Final = 120.0
_GROWTH_GOAL: Final = 0.05

Row = dict[str, Any]
Scores = tuple[float | None, ...]


class CountedTransport(GrpcTransport):
    """A transport that counts attempts of `score` and `score_stream`, with failures by gRPC code."""

    def __init__(self, address: str) -> None:
        super().__init__(Endpoint(address))
        self.attempts = 0
        self.failed: Counter[str] = Counter()
        self.said: dict[str, str] = {}

    @override
    async def unary(self, method: RpcMethod[Q, R], request: Q, *, timeout_s: float) -> R:
        if method != SCORE:
            return await super().unary(method, request, timeout_s=timeout_s)
        self.attempts += 1
        try:
            return await super().unary(method, request, timeout_s=timeout_s)
        except GradewireError as error:
            self._count(error)
            raise

    @override
    async def stream(
        self, method: RpcMethod[Q, R], sent: Q | AsyncIterator[Q], *, timeout_s: float | None = None
    ) -> AsyncGenerator[R]:
        is_counted = method == SCORE_STREAM
        self.attempts += is_counted
        try:
            async for reply in super().stream(method, sent, timeout_s=timeout_s):
                yield reply
        except GradewireError as error:
            if is_counted:
                self._count(error)
            raise

    def _count(self, error: GradewireError) -> None:
        status = getattr(error.__cause__, "code", None)
        code = type(error).__name__ if status is None else status().name
        self.failed[code] += 1
        self.said.setdefault(code, str(error))


def make_rows(count: int, seed: int = 0) -> list[Row]:
    """Return distinct rows with a question, two references, and an answer of 3 to 12 words."""
    source = random.Random(seed)  # noqa: S311 - no secret
    rows = []
    for number in range(count):
        words = source.choices(WORDS, k=source.randint(2, 11))
        references = [f"{source.choice(WORDS)} {number}", " ".join(words[:2])]
        rows.append(
            {"question": "what is it?", "references": references, "prediction": " ".join([*words, str(number)])}
        )
    return rows


def scores_of(item: ItemScores) -> Scores:
    """Return the scores of all metrics, with None for a missing score."""
    return tuple(each.score for each in item.scores.values())


@dataclass
class Tally:
    """Counts of results.

    Attributes:
        wrong: Descriptions of items with a wrong or missing score.
        lost: Messages of calls that failed despite retries.
    """

    right: int = 0
    wrong: list[str] = field(default_factory=list)
    calls: int = 0
    lost: list[str] = field(default_factory=list)
    longest_s: float = 0.0


class Soak:
    """A run against a running server; `out` gets a line for every minute and kill."""

    def __init__(self, server: Server, rows: Sequence[Row], truth: Sequence[Scores], out: TextIO) -> None:
        self._server = server
        self._rows = rows
        self._truth = truth
        self._out = out
        self._source = random.Random(1)  # noqa: S311 - no secret
        self._began_s = time.monotonic()
        self.transport = CountedTransport(server.address)
        self.tally = Tally()
        self.lives: list[tuple[float, float]] = []
        self.ready_after_s: list[float] = []
        self.supervisor_mib: list[float] = []
        self.client_mib: list[float] = []
        self.killed_cpu_s = 0.0

    async def warm_up(self) -> None:
        """Score all rows once, so that the store has their texts."""
        async with AsyncClient(self._server.address, deadline_s=600) as client:
            await client.score(self._rows, METRICS)

    async def run(self, duration_s: float, calls_per_s: float, items: int, kill_every_s: float) -> None:
        """Send calls for `duration_s` and kill a process every `kill_every_s`."""
        loop = asyncio.get_running_loop()
        room = asyncio.Semaphore(_MAX_OPEN)
        async with AsyncClient(transport=self.transport, deadline_s=_DEADLINE_S) as client:

            async def send(due_s: float) -> None:
                async with room:
                    await self._send(client, items)
                self.tally.longest_s = max(self.tally.longest_s, loop.time() - due_s)

            watching = [asyncio.create_task(self._minutes()), asyncio.create_task(self._kills(kill_every_s))]
            try:
                await open_loop(even_times(calls_per_s, duration_s), send)
            finally:
                for task in watching:
                    task.cancel()
                await asyncio.wait(watching)
        for task in watching:
            if not task.cancelled() and (error := task.exception()) is not None:
                raise error
        self._note("end", {})

    async def _send(self, client: AsyncClient, items: int) -> None:
        often = self._source.choices(range(_OFTEN), k=items // 2)
        chosen = [*often, *self._source.choices(range(len(self._rows)), k=items - items // 2)]
        rows = [self._rows[index] for index in chosen]
        try:
            if self._source.random() < _STREAMS:
                found = [item async for item in client.score_stream(rows, METRICS)]
            else:
                found = list(await client.score(rows, METRICS))
        except GradewireError as error:
            self.tally.lost.append(f"{type(error).__name__}: {error}")
            return
        finally:
            self.tally.calls += 1
        if len(found) != len(rows):
            self.tally.wrong.append(f"{len(found)} results of {len(rows)} items")
        for item in found:
            got, wanted = scores_of(item), self._truth[chosen[item.index]]
            if all(_agree(one, other) for one, other in zip(got, wanted, strict=True)):
                self.tally.right += 1
            else:
                states = ", ".join(f"{score.status} {score.message}" for score in item.scores.values())
                self.tally.wrong.append(f"{got} instead of {wanted}: {states}")

    async def _minutes(self) -> None:
        while True:
            await asyncio.sleep(60)
            self._note("minute", {})

    async def _kills(self, every_s: float) -> None:
        while True:
            await asyncio.sleep(every_s)
            oldest = min(self._server.process.children(), key=psutil.Process.create_time)
            age_s, mib = time.time() - oldest.create_time(), anonymous_mib(oldest.pid)
            self.killed_cpu_s += sum(oldest.cpu_times()[:2])
            os.kill(oldest.pid, signal.SIGKILL)
            self.lives.append((age_s, mib))
            killed_s = time.monotonic()
            await asyncio.to_thread(self._wait_until_ready, oldest, killed_s + _READY_WITHIN_S)
            self.ready_after_s.append(time.monotonic() - killed_s)
            said = {"age_s": round(age_s), "mib": round(mib, 1), "ready_after_s": round(self.ready_after_s[-1], 1)}
            self._note("kill", said)

    def _wait_until_ready(self, killed: psutil.Process, give_up_s: float) -> None:
        noticed = False
        while not (noticed and self._ready()):
            if time.monotonic() > give_up_s:
                raise TimeoutError("the supervisor did not replace the killed process")
            time.sleep(0.1)
            noticed = noticed or not (killed.is_running() or self._ready())

    def _ready(self) -> bool:
        with urllib.request.urlopen(f"{self._server.http}/healthz", timeout=30) as reply:  # noqa: S310 - our own
            processes = json.load(reply)["processes"]
        return bool(processes["ready"] == processes["wanted"])

    def _note(self, what: str, more: Mapping[str, Any]) -> None:
        self.supervisor_mib.append(anonymous_mib(self._server.process.pid))
        self.client_mib.append(anonymous_mib(os.getpid()))
        line = {
            "what": what,
            "at_s": round(time.monotonic() - self._began_s),
            "right": self.tally.right,
            "wrong": len(self.tally.wrong),
            "calls": self.tally.calls,
            "lost": len(self.tally.lost),
            "attempts": self.transport.attempts,
            "failed_attempts": dict(self.transport.failed),
            "longest_s": round(self.tally.longest_s, 1),
            "supervisor_mib": round(self.supervisor_mib[-1], 1),
            "processes_mib": [round(anonymous_mib(each.pid), 1) for each in self._server.process.children()],
            "client_mib": round(self.client_mib[-1], 1),
            "load": round(os.getloadavg()[0], 1),
            **more,
        }
        for text in (*self.tally.wrong[:3], *self.tally.lost[:3]):
            sys.stderr.write(f"{text}\n")
        self._out.write(json.dumps(line) + "\n")
        self._out.flush()


def anonymous_mib(pid: int) -> float:
    """Return a process's memory in MiB, without mapped files such as the store's."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(status.partition("RssAnon:")[2].split()[0]) / 1024


def _agree(got: float | None, wanted: float | None) -> bool:
    if got is None or wanted is None:
        return got is wanted
    return abs(got - wanted) <= _TOLERANCE


def report(soak: Soak, restarts: float) -> bool:
    """Print the summary; return True if all goals were reached."""
    tally, failed = soak.tally, soak.transport.failed
    print(f"{tally.calls:,} calls and streams, {tally.right:,} right scores, {len(tally.wrong)} wrong (goal: 0)")
    print(
        f"{soak.transport.attempts:,} attempts; failed: {dict(failed) or 0} (goal: only UNAVAILABLE); "
        f"calls failed despite retries: {len(tally.lost)} (goal: 0); longest call {tally.longest_s:.1f} s"
    )
    for code, said in soak.transport.said.items():
        print(f"  {code}: {said}")
    ages = ", ".join(f"{mib:.0f} MiB at {age_s:.0f} s" for age_s, mib in soak.lives)
    print(
        f"{len(soak.lives)} kills, {restarts:.0f} restarts counted; serving again after "
        f"{min(soak.ready_after_s, default=0):.1f} to {max(soak.ready_after_s, default=0):.1f} s"
    )
    print(f"memory of the killed processes: {ages}")
    good = not tally.wrong and not tally.lost and set(failed) <= {"UNAVAILABLE"} and restarts == len(soak.lives)
    lives = [mib for _, mib in soak.lives[2:]]  # the first two processes ran for a shorter time
    for who, sizes in (("processes", lives), ("supervisor", soak.supervisor_mib[2:])):
        if len(sizes) > 1:
            growth = sizes[-1] / sizes[0] - 1
            good = good and growth <= _GROWTH_GOAL
            print(f"{who}: {sizes[0]:.1f} -> {sizes[-1]:.1f} MiB, {growth:+.1%} (goal: at most {_GROWTH_GOAL:+.0%})")
    print(f"this program and the client: {soak.client_mib[0]:.1f} -> {soak.client_mib[-1]:.1f} MiB")
    return good


async def truths(rows: Sequence[Row]) -> list[Scores]:
    """Return the rows' scores from a single undisturbed process."""
    with TemporaryDirectory() as store, start_engine("embedded", _flags(store, 1)) as server:
        async with AsyncClient(server.address, deadline_s=600) as client:
            return [scores_of(item) for item in await client.score(rows, METRICS)]


def _flags(store: str, processes: int) -> dict[str, str]:
    return {
        "processes": str(processes),
        "judge-backend": "none",
        "disk-directory": store,
        "log-level": "warning",
        "memory-max-bytes": str(processes * (4 << 20)),
        "remembered-results-max-bytes": str(processes * (4 << 20)),
    }


def main() -> int:
    """Run the soak; return 1 if a goal was missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--kill-every-s", type=float, default=180)
    parser.add_argument("--calls-per-s", type=float, default=15, help="calls and streams")
    parser.add_argument("--items", type=int, default=16, help="number of items in a call")
    parser.add_argument("--rows", type=int, default=4000, help="number of distinct rows")
    parser.add_argument("--out", type=Path, default=Path("soak-processes.jsonl"), help="a line per minute and kill")
    options = parser.parse_args()
    rows = make_rows(options.rows)
    sys.stderr.write(f"scoring {options.rows} rows with one process …\n")
    truth = asyncio.run(truths(rows))
    with ExitStack() as stack:
        out = stack.enter_context(options.out.open("w", encoding="utf-8"))
        store = stack.enter_context(TemporaryDirectory())
        server = stack.enter_context(start_engine("embedded", _flags(store, options.processes)))

        async def run() -> tuple[Soak, float]:
            soak = Soak(server, rows, truth, out)
            await soak.warm_up()
            before_s = _cpu_s(server)
            await soak.run(60 * options.minutes, options.calls_per_s, options.items, options.kill_every_s)
            return soak, (_cpu_s(server) + soak.killed_cpu_s - before_s) / (60 * options.minutes)

        soak, cores = asyncio.run(run())
        good = report(soak, server.metric("gradewire_process_restarts_total"))
        print(f"the server took {cores:.2f} cores; load at the end {os.getloadavg()[0]:.1f}")
    return 0 if good else 1


def _cpu_s(server: Server) -> float:
    return sum(sum(each.cpu_times()[:2]) for each in (server.process, *server.process.children(recursive=True)))


if __name__ == "__main__":
    sys.exit(main())
