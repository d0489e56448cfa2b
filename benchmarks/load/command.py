"""Run a benchmark from the command line: start a server, load it, and measure."""

import argparse
import asyncio
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from benchmarks.common.measurements import Measurement, show
from benchmarks.common.servers import GRADEWIRE, Server, start_engine
from benchmarks.load.generator import ask_for_short_slices

# Exit code 4 means that the server missed a promise at twice the knee, or the client was the bottleneck; see the JSON.
_FOUND: Final = {0, 4}


def bench_load(server: Server, *arguments: object) -> None:
    """Run `gradewire bench load`; if the command cannot measure, exit with its code."""
    at = ("--server", server.address, "--metrics-url", f"{server.http}/metrics")
    code = subprocess.run([GRADEWIRE, "bench", "load", *at, *map(str, arguments)], check=False).returncode
    if code not in _FOUND:
        raise SystemExit(code)


def run_with_server(
    description: str | None,
    add_options: Callable[[argparse.ArgumentParser], None],
    measure: Callable[[Server, argparse.Namespace], Awaitable[list[Measurement]]],
) -> None:
    """Read the options, start a server, call `measure` and print the returned values."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    parser.add_argument("--server", nargs="*", default=[], help="flags for the server, NAME=VALUE")
    parser.add_argument("--figures", type=Path, metavar="FILE", help="append the promised values to FILE as JSON lines")
    options = parser.parse_args()

    async def run(server: Server) -> list[Measurement]:
        ask_for_short_slices()  # affects only the clients, because the server is already running
        return await measure(server, options)

    with start_engine("embedded", dict(flag.split("=", 1) for flag in options.server)) as server:
        measurements = asyncio.run(run(server))
    show(measurements, options.figures)
