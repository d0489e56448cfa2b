"""Measure how far one server process fills a simulated GPU (`fake_device`), and how long single answers wait meanwhile.

Bulk callers in a process of their own send new items for some seconds. Another client sends one new answer after
the other, at first alone, then beside the bulk calls. Clients and server share the machine's cores.
"""

import argparse
import asyncio
import os
import statistics
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Final

from benchmarks.common.servers import Server, cpu_s, start_engine
from benchmarks.gpu.calling import items_of

from gradewire import AsyncClient, Status

_FAKE: Final = (sys.executable, "-m", "benchmarks.gpu.fake_device")
_BUSY: Final = "gradewire_engine_gpu_busy_seconds_total"
_ITEMS_A_CALL: Final = 256
_PAUSE_S: Final = 0.005
"""Seconds between a single answer and the next one."""


@dataclass(frozen=True)
class Window:
    """The result of bulk callers. Times are in `time.monotonic()` seconds, which all processes share."""

    items: int
    began_s: float
    ended_s: float


@dataclass(frozen=True)
class Filled:
    """One measurement.

    Attributes:
        busy: The share of the time in which the card computed.
        card_us: The card's microseconds per item.
        item_us: The server's CPU microseconds per item.
        waits_s: Seconds for single answers beside the bulk calls.
    """

    calls: int
    items_per_s: float
    busy: float
    card_us: float
    item_us: float
    waits_s: Sequence[float]


async def _send(address: str, seconds: float, calls: int, metric: str) -> Window:
    async with AsyncClient(address) as client:
        # The first large call also asks for the server's limits.
        await client.score(items_of("warm up", _ITEMS_A_CALL), metric)
        began_s = time.monotonic()

        async def send(caller: int) -> int:
            scored = number = 0
            while time.monotonic() < began_s + seconds:
                report = await client.score(items_of(f"{caller} {number}", _ITEMS_A_CALL), metric)
                scored += sum(item.scores[metric].status is Status.OK for item in report)
                number += 1
            return scored

        items = sum(await asyncio.gather(*map(send, range(calls))))
        return Window(items, began_s, time.monotonic())


def send_bulk(address: str, seconds: float, calls: int, metric: str) -> Window:
    """Send new items in `calls` calls at a time, and count those that were scored."""
    return asyncio.run(_send(address, seconds, calls, metric))


async def _single(address: str, metric: str, seed: str, count: int, until: Future[Window] | None) -> list[list[float]]:
    async with AsyncClient(address) as client:
        await client.score(items_of("warm up", 8), metric)
        times = []
        number = 0
        while number < count if until is None else not until.done():
            (item,) = items_of(f"{seed} {number}", 1)
            began_s = time.monotonic()
            await client.score([item], metric)
            times.append([began_s, time.monotonic()])
            number += 1
            await asyncio.sleep(_PAUSE_S)
        return times


def single_answers(
    address: str, metric: str, seed: str, *, count: int = 0, until: Future[Window] | None = None
) -> list[list[float]]:
    """Score one new answer after the other, `count` times or until a future is done.

    Returns:
        Each call's begin and end in `time.monotonic()` seconds.
    """
    return asyncio.run(_single(address, metric, seed, count, until))


def fill(server: Server, pool: ProcessPoolExecutor, calls: int, seconds: float, metric: str) -> Filled:
    """Measure one load on a running server."""
    cpu_before_s, busy_before_s = cpu_s(server.process.pid), server.metric(_BUSY)
    sending = pool.submit(send_bulk, server.address, seconds, calls, metric)
    singles = single_answers(server.address, metric, f"beside {calls}", until=sending)
    window = sending.result()
    took_s = window.ended_s - window.began_s
    items = window.items + len(singles)
    busy_s = server.metric(_BUSY) - busy_before_s
    within = [end - begin for begin, end in singles if begin > window.began_s and end < window.ended_s]
    return Filled(
        calls,
        window.items / took_s,
        busy_s / took_s,
        busy_s / items * 1e6,
        (cpu_s(server.process.pid) - cpu_before_s) / items * 1e6,
        within,
    )


def quantiles_ms(waits_s: Sequence[float]) -> str:
    """Return the median and the 99th percentile in milliseconds, as text."""
    ordered = sorted(waits_s)
    if not ordered:
        return "none ended"
    return (
        f"{1e3 * statistics.median(ordered):.1f} / {1e3 * ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)]:.1f}"
    )


def main() -> None:
    """Measure all loads and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=4.0, help="seconds for each load (default: %(default)s)")
    parser.add_argument("--loads", type=int, nargs="+", default=[1, 8], help="bulk calls at a time")
    parser.add_argument("--metric", default="sbert")
    arguments = parser.parse_args()
    metric = arguments.metric
    options = {"judge-backend": "none", "log-level": "error", "device": "cuda", "processes": "1"}
    load_before = os.getloadavg()[0]
    with (
        start_engine("embedded", options, command=_FAKE) as server,
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool,
    ):
        pool.submit(send_bulk, server.address, 0.5, 1, metric).result()  # import, connect and warm up
        alone = single_answers(server.address, metric, "alone", count=200)
        filled = [fill(server, pool, calls, arguments.seconds, metric) for calls in arguments.loads]
    print(
        f"`{metric}`, {_ITEMS_A_CALL} new items a call, one server process, {os.cpu_count()} cores for server and "
        f"clients; load average before {load_before:.2f}, after {os.getloadavg()[0]:.2f}\n"
    )
    print(f"One new answer alone, p50 / p99: {quantiles_ms([end - begin for begin, end in alone])} ms\n")
    print(
        "| bulk calls at a time | items/s | share of the card's time | server CPU, µs/item | one answer, p50 / p99 ms |"
    )
    print("|---:|---:|---:|---:|---:|")
    for each in filled:
        print(
            f"| {each.calls} | {each.items_per_s:,.0f} | {each.busy:.2f} | {each.card_us:.0f} "
            f"| {each.item_us:.0f} | {quantiles_ms(each.waits_s)} |"
        )


if __name__ == "__main__":
    main()
