"""Measure how many calls a server scores when calls with one cold item each arrive at multiples of its capacity.

Capacity is the rate of a closed loop in the same run; the generator shares the machine's cores in both phases. A call
is scored if its result is OK within its deadline.
"""

import argparse
import asyncio
import os
import time
from typing import Final

import numpy as np
from benchmarks.common.measurements import Measurement
from benchmarks.common.servers import Server, whole_cpu_s
from benchmarks.load.command import run_with_server
from benchmarks.load.generator import Generator, Tally, percentiles_ms

_IN_FLIGHT: Final = 24


def measurements_of(multiple: float, tally: Tally, share: float, recovery_s: float) -> list[Measurement]:
    """Return the values for the promises on overload."""

    def figure(name: str, value: float, unit: str, bound: str) -> Measurement:
        return Measurement(
            "overload", f"{multiple:g}x: {name}", value, unit, bound, "python -m benchmarks.load.overload"
        )

    otherwise = tally.sent - tally.ends["STATUS_OK"] - len(tally.refused_s)
    found = [
        figure("scored within the deadline, of capacity", share * 100, "%", ">= 85"),
        figure("ended otherwise than OK or RESOURCE_EXHAUSTED", otherwise, f"of {tally.sent} calls", "== 0"),
        figure("refused without a hint", len(tally.refused_s) - tally.hinted, "", "== 0"),
        figure("until a single call is as fast as before", recovery_s, "s", "< 1"),
    ]
    if tally.scored_s:
        found.append(figure("p99 of scored calls", float(np.percentile(tally.scored_s, 99)) * 1e3, "ms", "<= 1500"))
    if tally.refused_s:
        found.append(figure("p99 of refusals", float(np.percentile(tally.refused_s, 99)) * 1e3, "ms", "<= 50"))
    return found


async def measure(server: Server, options: argparse.Namespace) -> list[Measurement]:
    """Run all phases; return the promised values."""
    measurements: list[Measurement] = []
    generator = await Generator.open(server.address, options.connections, options.deadline_s)
    await generator.closed_loop(3.0, _IN_FLIGHT)
    alone = await generator.closed_loop(1.0, 1)
    usual_s = float(np.median(alone.scored_s))
    before = await generator.closed_loop(options.capacity_s, _IN_FLIGHT)
    capacity = len(before.scored_s) / options.capacity_s
    latency = percentiles_ms(before.scored_s)
    print(f"alone p50 {usual_s * 1e3:.1f} ms; capacity {capacity:.0f} items/s, p50 / p99 {latency} ms")
    heads = ("offered", "scored of capacity", "scored p50 / p99 ms", "refused p50 / p99 ms", "with hint", "ends")
    print(f"| {' | '.join((*heads, 'recovery s', 'server CPU', 'load'))} |\n{'|---' * 9}|")
    for multiple in options.multiples:
        cpu_s = whole_cpu_s(server.process.pid)
        began_s = time.monotonic()
        tally = await generator.open_loop(options.duration_s, multiple * capacity)
        took_s = generator.ended_s - began_s
        used_s = whole_cpu_s(server.process.pid) - cpu_s
        share = len(tally.scored_s) / took_s / capacity
        await asyncio.sleep(0)
        recovery_s = await generator.recovery_s(usual_s)
        print(
            f"| {multiple:g}x | {share:.1%} | {percentiles_ms(tally.scored_s)} | {percentiles_ms(tally.refused_s)} "
            f"| {tally.hinted} of {len(tally.refused_s)} | {dict(tally.ends)} | {recovery_s:.2f} "
            f"| {used_s / took_s:.0%} | {os.getloadavg()[0]:.1f} |",
            flush=True,
        )
        measurements += measurements_of(multiple, tally, share, recovery_s)
    generator.close()
    return measurements


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--duration-s", type=float, default=60)
    parser.add_argument("--capacity-s", type=float, default=10)
    parser.add_argument("--deadline-s", type=float, default=5)
    parser.add_argument("--connections", type=int, default=8, help="number of connections for the calls")
    parser.add_argument("--multiples", type=float, nargs="+", default=[2, 5])


if __name__ == "__main__":
    run_with_server(__doc__, _options, measure)
