"""Processes that call a server for a while: one client in Python would be slower than a GPU."""

import asyncio
import random
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from threading import Barrier
from typing import Any, Final

from gradewire import AsyncClient

ITEMS_A_CALL: Final = 256
WORDS: Final = ("red", "dog", "house", "seven", "paris", "runs", "under", "blue", "river", "green", "walks", "stone")
_MEET_S: Final = 60
_barrier: Barrier | None = None


@dataclass(frozen=True, slots=True)
class Called:
    """What one process did.

    Attributes:
        scored: Items.
        failed: Items.
        seconds: From its first call to the end of its last one.
        cpu_s: That it computed meanwhile.
    """

    scored: int
    failed: int
    seconds: float
    cpu_s: float


def call_for(
    address: str, seconds: float, *, callers: int, clients: int = 1, items: int = ITEMS_A_CALL
) -> dict[str, Any]:
    """Has a server score answers that it has never seen; a row of the report.

    Args:
        address: HOST:PORT of the server.
        seconds: For which calls are begun.
        callers: Calls at a time, of all processes together; a multiple of `clients`.
        clients: Processes that call.
        items: Of a call.

    Raises:
        GradewireError: The server answers nothing.
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
        # Near 1 the client was the bottleneck.
        "cores of the busiest client": round(max(each.cpu_s / each.seconds for each in called), 2),
    }


def items_of(seed: str, count: int) -> list[dict[str, Any]]:
    """Items that nobody has seen; a seed gives the same ones again."""
    rng = random.Random(seed)  # noqa: S311 - texts, no secrets
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
    global _barrier  # noqa: PLW0603 - a process of the pool gets it when it starts, and in no other way
    _barrier = barrier


def _call(address: str, seconds: float, callers: int, items: int, client: int) -> Called:
    if _barrier is not None:
        _barrier.wait(_MEET_S)  # processes start one after the other, and are counted as one
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
