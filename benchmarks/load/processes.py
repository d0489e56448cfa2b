"""Warm items a second and the server's CPU for each, of one process and of several, which take turns.

Each round starts one server after the other, on a store of their own, and calls it over connections from processes of
their own. Where the machine has no cores to spare, calls a second mean little, and CPU for each item says what a
process gets through on a core of its own.
"""

import argparse
import asyncio
import multiprocessing
import os
import statistics
import time
from tempfile import TemporaryDirectory

import psutil
from benchmarks.common.servers import Server, start_engine

from gradewire import AsyncClient

_ROWS = [{"references": ["a cat", f"{row} cats"], "prediction": f"{row} small cats"} for row in range(64)]
_WARM_UP_S = 3.0


async def _call(address: str, duration_s: float, in_flight: int) -> int:
    """Items scored in the time."""
    scored = 0
    async with AsyncClient(address) as client:
        end_s = time.monotonic() + duration_s

        async def one_after_another() -> None:
            nonlocal scored
            while time.monotonic() < end_s:
                report = await client.score(_ROWS, "smile")
                scored += len(report.items)

        await asyncio.gather(*(one_after_another() for _ in range(in_flight)))
    return scored


def _calls(address: str, duration_s: float, in_flight: int) -> int:
    return asyncio.run(_call(address, duration_s, in_flight))


def _family(server: Server) -> list[psutil.Process]:
    return [server.process, *server.process.children(recursive=True)]


def _cpu_s(server: Server) -> float:
    return sum(sum(each.cpu_times()[:2]) for each in _family(server))


def measure(processes: int, duration_s: float, callers: int) -> tuple[float, float, float]:
    """Items a second, CPU microseconds of the server an item, and MiB that are not shared, of one server."""
    with TemporaryDirectory() as store:
        options = {
            "processes": str(processes),
            "judge-backend": "none",
            "disk-directory": store,
            "log-request-share": "0",
        }
        with start_engine("embedded", options) as server, multiprocessing.get_context("spawn").Pool(callers) as pool:
            pool.starmap(_calls, [(server.address, _WARM_UP_S, 4)] * callers)
            before_s, began_s = _cpu_s(server), time.monotonic()
            items = sum(pool.starmap(_calls, [(server.address, duration_s, 4)] * callers))
            took_s, cpu_s = time.monotonic() - began_s, _cpu_s(server) - before_s
            unshared = sum(each.memory_full_info().uss for each in _family(server))
    return items / took_s, cpu_s / items * 1e6, unshared / 2**20


def main() -> None:
    """Prints a row for each server, and the ratios of the medians to those of one process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--duration-s", type=float, default=10)
    parser.add_argument("--callers", type=int, default=2, help="processes that call")
    options = parser.parse_args()
    found: dict[int, list[tuple[float, float, float]]] = {count: [] for count in options.processes}
    print("| round | processes | items/s | server CPU, µs an item | MiB | load |\n|---|---|---|---|---|---|")
    for number in range(options.rounds):
        for count in options.processes:
            rate, cpu_us, mib = measure(count, options.duration_s, options.callers)
            found[count].append((rate, cpu_us, mib))
            print(
                f"| {number} | {count} | {rate:.0f} | {cpu_us:.0f} | {mib:.0f} | {os.getloadavg()[0]:.1f} |", flush=True
            )
    first = [statistics.median(values) for values in zip(*found[options.processes[0]], strict=True)]
    for count, rows in found.items():
        medians = [statistics.median(values) for values in zip(*rows, strict=True)]
        rate, cpu, mib = (value / base for value, base in zip(medians, first, strict=True))
        print(f"{count} processes: {rate:.2f} x items/s, {cpu:.2f} x CPU an item, {mib:.2f} x memory")


if __name__ == "__main__":
    main()
