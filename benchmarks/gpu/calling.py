"""Start a gradewire server, and several client processes because a single client is slower than a GPU."""

import asyncio
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from threading import Barrier, Timer
from typing import Any, Final, TypeVar

from gradewire import AsyncClient, Client

START_S: Final = 120
STOP_S: Final = 30
ITEMS_A_CALL: Final = 256
WORDS: Final = ("red", "dog", "house", "seven", "paris", "runs", "under", "blue", "river", "green", "walks", "stone")
_MEET_S: Final = 60
_DEADLINE_S: Final = 300.0
Item = dict[str, Any]
Result = TypeVar("Result")
_barrier: Barrier | None = None


@contextmanager
def serving(repository: Path, flags: Mapping[str, str], *, start_s: float = START_S) -> Iterator[str]:
    """Start a server with `flags`, yield its HOST:PORT, and stop the server.

    Raises:
        RuntimeError: The server did not start in `start_s`; the message contains the end of its log.
    """
    with tempfile.TemporaryDirectory() as store:
        several = int(flags.get("processes", "1")) > 1
        every = {
            "port": "0",
            "http-port": "0",
            "disk-directory": store if several else "",
            "drain-s": "0",
            "judge-backend": "none",
            "model-repository": str(repository),
        }
        command = [sys.executable, "-c", "from gradewire_cli import main; main()", "serve"]
        command += [text for name, value in {**every, **flags}.items() for text in (f"--{name}", value)]
        with (
            tempfile.TemporaryFile("w+") as log,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as server,
        ):
            too_late = Timer(start_s, server.kill)
            too_late.start()
            try:
                assert server.stdout is not None
                line = server.stdout.readline()
                too_late.cancel()
                if not line:
                    server.wait(STOP_S)
                    log.seek(0)
                    raise RuntimeError(f"the server did not start: {log.read()[-300:]}")
                yield f"127.0.0.1:{line.rsplit(':', 1)[1].split()[0]}"
            finally:
                too_late.cancel()
                server.terminate()
                try:
                    server.wait(STOP_S)
                except subprocess.TimeoutExpired:
                    server.kill()


@dataclass(frozen=True, slots=True)
class Called:
    """The result of a calling process; seconds count from the first call's start to the last call's end."""

    scored: int
    failed: int
    seconds: float
    cpu_s: float


def call_for(  # noqa: PLR0913 - keyword options with defaults
    address: str, seconds: float, *, callers: int, clients: int = 1, items: int = ITEMS_A_CALL, seed: str = ""
) -> dict[str, Any]:
    """Let a server score new answers by `sbert`, and return a row for the report.

    New calls start for `seconds`. The total number of concurrent calls, `callers`, must be a multiple of `clients`, the
    number of processes. Another `seed` gives other answers.

    Raises:
        GradewireError: The server does not answer.
    """
    asyncio.run(_warm_up(address))
    shares = [(address, seconds, callers // clients, items, f"{seed} {number}") for number in range(clients)]
    called = _in_processes(_call, shares)
    return {
        "calls at a time": callers,
        "client processes": clients,
        "items/s": round(sum(each.scored for each in called) / max(each.seconds for each in called)),
        "failed": sum(each.failed for each in called),
        # If this is near 1, the client is the bottleneck.
        "cores of the busiest client": round(max(each.cpu_s / each.seconds for each in called), 2),
    }


def score_twice(address: str, rows: Sequence[Item], metric: str, *, clients: int) -> dict[str, Any]:
    """Let client processes score their shares of the rows, and the same rows again; return a row for the report.

    Raises:
        GradewireError: The server does not answer.
    """
    asyncio.run(_warm_up(address))
    shares = [(address, rows[number::clients], metric) for number in range(clients)]
    passes = _in_processes(_score_twice, shares)
    cold_s, warm_s = (max(each[number] for each in passes) for number in (0, 1))
    return {
        "client processes": clients,
        "cold rows/s": round(len(rows) / cold_s, 1),
        "warm rows/s": round(len(rows) / warm_s, 1),
        "failed": int(sum(each[2] for each in passes)),
    }


def scores_of(address: str, rows: Sequence[Item], metric: str) -> list[float]:
    """Return a score for each row.

    Raises:
        GradewireError: The server does not answer.
        RuntimeError: A row has no score.
    """
    with Client(address, deadline_s=_DEADLINE_S) as client:
        results = [item.scores[metric] for item in client.score(rows, metric)]
    scores = [result.score for result in results if result.score is not None]
    if len(scores) < len(rows):
        failed = next(result for result in results if result.score is None)
        raise RuntimeError(f"{len(rows) - len(scores)} rows have no score: {failed.status.name}: {failed.message}")
    return scores


def latencies_s(address: str, rows: Sequence[Item], metric: str) -> list[float]:
    """Return the seconds of calls with one row each, one after another.

    Raises:
        GradewireError: The server does not answer.
    """
    taken_s = []
    with Client(address, deadline_s=_DEADLINE_S) as client:
        for row in rows:
            began_s = time.perf_counter()
            client.score([row], metric)
            taken_s.append(time.perf_counter() - began_s)
    return taken_s


def items_of(seed: str, count: int) -> list[dict[str, Any]]:
    """Return new items; the same seed gives the same items."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    return [
        {
            "question": "what is it?",
            "references": [" ".join(rng.choices(WORDS, k=3)) + f" {seed} {number}"],
            "prediction": " ".join(rng.choices(WORDS, k=20)) + f" {seed} {number}",
        }
        for number in range(count)
    ]


async def _warm_up(address: str) -> None:
    async with AsyncClient(address) as client:
        await client.score(items_of("warm up", 8), "sbert")


def _in_processes(work: Callable[[Any], Result], shares: Sequence[Any]) -> list[Result]:
    """Call `work` with each share in a process of its own; the processes begin together."""
    context = get_context("spawn")
    barrier = context.Barrier(len(shares))
    with ProcessPoolExecutor(len(shares), mp_context=context, initializer=_meet_at, initargs=(barrier,)) as pool:
        return list(pool.map(work, shares))


def _score_twice(share: tuple[str, Sequence[Item], str]) -> tuple[float, float, int]:
    address, rows, metric = share
    taken_s, failed = [], 0
    with Client(address, deadline_s=_DEADLINE_S) as client:
        for _ in range(2):
            _meet()
            began_s = time.perf_counter()
            report = client.score(rows, metric)
            taken_s.append(time.perf_counter() - began_s)
            failed += sum(item.scores[metric].score is None for item in report)
    return taken_s[0], taken_s[1], failed


def _meet_at(barrier: Barrier) -> None:
    global _barrier  # noqa: PLW0603 - a process of the pool receives the barrier only at its start
    _barrier = barrier


def _meet() -> None:
    if _barrier is not None:
        _barrier.wait(_MEET_S)


def _call(share: tuple[str, float, int, int, str]) -> Called:
    _meet()
    return asyncio.run(_measure(*share))


async def _measure(address: str, seconds: float, callers: int, items: int, seed: str) -> Called:
    scored = failed = 0
    async with AsyncClient(address) as client:
        began_s, began_cpu_s = time.perf_counter(), time.process_time()

        async def call_on(caller: int) -> None:
            nonlocal scored, failed
            calls = 0
            while time.perf_counter() < began_s + seconds:
                report = await client.score(items_of(f"{seed} {caller} {calls}", items), "sbert")
                good = sum(item.scores["sbert"].score is not None for item in report)
                scored += good
                failed += items - good
                calls += 1

        await asyncio.gather(*(call_on(caller) for caller in range(callers)))
        return Called(scored, failed, time.perf_counter() - began_s, time.process_time() - began_cpu_s)
