"""Start a gradewire server, and several client processes because a single client is slower than a GPU."""

import asyncio
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from threading import Barrier, Timer
from typing import Any, Final

from gradewire import AsyncClient

START_S: Final = 120
STOP_S: Final = 30
ITEMS_A_CALL: Final = 256
WORDS: Final = ("red", "dog", "house", "seven", "paris", "runs", "under", "blue", "river", "green", "walks", "stone")
_MEET_S: Final = 60
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


def call_for(
    address: str, seconds: float, *, callers: int, clients: int = 1, items: int = ITEMS_A_CALL
) -> dict[str, Any]:
    """Let a server score new answers, and return a row for the report.

    New calls start for `seconds`. The total number of concurrent calls, `callers`, must be a multiple of `clients`, the
    number of processes.

    Raises:
        GradewireError: The server does not answer.
    """
    asyncio.run(_warm_up(address))
    context = get_context("spawn")
    barrier = context.Barrier(clients)
    with ProcessPoolExecutor(clients, mp_context=context, initializer=_meet_at, initargs=(barrier,)) as pool:
        each_callers = callers // clients
        calling = [pool.submit(_call, address, seconds, each_callers, items, number) for number in range(clients)]
        called = [each.result() for each in calling]
    return {
        "calls at a time": callers,
        "client processes": clients,
        "items/s": round(sum(each.scored for each in called) / max(each.seconds for each in called)),
        "failed": sum(each.failed for each in called),
        # If this is near 1, the client is the bottleneck.
        "cores of the busiest client": round(max(each.cpu_s / each.seconds for each in called), 2),
    }


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


def _meet_at(barrier: Barrier) -> None:
    global _barrier  # noqa: PLW0603 - a process of the pool receives the barrier only at its start
    _barrier = barrier


def _call(address: str, seconds: float, callers: int, items: int, client: int) -> Called:
    if _barrier is not None:
        _barrier.wait(_MEET_S)
    return asyncio.run(_measure(address, seconds, callers, items, f"client {client}"))


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
