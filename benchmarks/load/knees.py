"""Measure the highest load that a server handles (the knee) and double that load, for every mix and engine.

The program runs `gradewire bench load` for each mix, and prints a table, which --write writes into
benchmarks/results/load.md. Server and client share the machine's cores. The JSON, page and manifest of each run are
stored in --out.
"""

import argparse
import json
import sys
import textwrap
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from benchmarks.common.measurements import machine, write_block
from benchmarks.common.servers import ENGINES, start_engine
from benchmarks.load.command import bench_load

PAGE: Final = Path(__file__).resolve().parents[2] / "benchmarks/results/load.md"
BLOCK: Final = "knees"
MIXES: Final = ("short", "verbose", "repeats")
_MOST_CLIENT_PROCESSES: Final = 4
_HEADS: Final = (
    "engine", "mix", "knee, answers/s", "p50 ms", "p95 ms", "p99 ms", "CPU ms an answer",
    "at twice the knee: p99 ms", "refused", "broken there", "load",
)  # fmt: skip


def measure(engine: str, mix: str, options: argparse.Namespace) -> dict[str, Any]:
    """Return a run's JSON; repeat the run with more client processes if the client was late."""
    processes: int = options.client_processes
    while True:
        document = measure_with(processes, engine, mix, options)
        if not is_client_late(document) or processes >= _MOST_CLIENT_PROCESSES:
            return document
        processes = min(2 * processes, _MOST_CLIENT_PROCESSES)
        sys.stderr.write(f"the client was late; retrying with {processes} client processes\n")


def measure_with(processes: int, engine: str, mix: str, options: argparse.Namespace) -> dict[str, Any]:
    """Return a run's JSON with `processes` client processes on a new server."""
    stem = options.out / f"{engine}-{mix}"
    sys.stderr.write(f"{engine}, {mix}\n")
    duration = ("--duration", options.duration_s) if options.duration_s else ()
    with start_engine(engine, {"log-level": "warning"}) as server:
        bench_load(
            server,
            *("--mix", mix, "--metrics", options.metrics, *duration),
            *("--slo-s", options.slo_s, "--client-processes", processes),
            *("--json", f"{stem}.json", "--html", f"{stem}.html"),
        )
    document: dict[str, Any] = json.loads(stem.with_suffix(".json").read_text(encoding="utf-8"))
    return document


def is_client_late(document: dict[str, Any]) -> bool:
    """Return True if the client was the bottleneck."""
    over = (step for step in document["steps"] if step["over_knee"])
    return bool(document["knee"]["client_limited"]) or any(step["outcome"] == "void" for step in over)


def row(engine: str, mix: str, document: dict[str, Any]) -> list[str]:
    """Return a run's row in the table."""
    rate = document["knee"]["calls_per_s"]
    held = [step for step in document["steps"] if step["rate_per_s"] == rate and step["outcome"] == "holds"]
    if document["knee"]["lost"]:
        return [engine, mix, "no result: the server went away", *["-"] * 8]
    if not held or document["knee"]["client_limited"]:
        return [engine, mix, "no result: the client was the bottleneck" if held else "none", *["-"] * 8]
    knee = held[-1]
    latency = {name: f"{value * 1e3:.0f}" for name, value in knee["latency_s"].items()}
    cells = [engine, mix, f"{rate:.0f}", latency["p50"], latency["p95"], latency["p99"]]
    cells.append(f"{knee['server_cpu_s_per_item'] * 1e3:.2f}")
    over = next((step for step in document["steps"] if step["over_knee"]), None)
    if over is None:
        return [*cells, "-", "-", "not tried", f"{knee['load']:.1f}"]
    broken = "; ".join(check["name"] for check in document["checks"] if check["holds"] is False)
    unknown = "; ".join(f"not measured: {check['name']}" for check in document["checks"] if check["holds"] is None)
    p99 = f"{over['latency_s']['p99'] * 1e3:.0f}"
    return [*cells, p99, f"{over['refused_share']:.0%}", broken or unknown or "nothing", f"{over['load']:.1f}"]


def table(rows: Sequence[Sequence[str]], options: argparse.Namespace) -> str:
    """Return Markdown with date, machine, settings and a row for each run."""
    steps = f"{options.duration_s:g} s" if options.duration_s else "10 s or 500 calls"
    said = (
        f"{datetime.now(UTC).date().isoformat()}, {machine()}, server and client on the same cores, "
        f"`{options.metrics}`, "
        f"steps of {steps}, p99 of at most {options.slo_s * 1e3:g} ms, "
        f"{options.client_processes} client process{'es' * (options.client_processes > 1)}, "
        f"up to {_MOST_CLIENT_PROCESSES} if the client was late."
    )
    lines = [f"| {' | '.join(cells)} |" for cells in (_HEADS, ["---"] * len(_HEADS), *rows)]
    return "\n".join((textwrap.fill(said, 120), "", *lines))


def main() -> None:
    """Start the servers one after the other, measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", choices=ENGINES, nargs="+", default=list(ENGINES))
    parser.add_argument("--mixes", nargs="+", default=list(MIXES), help="mixes of gradewire bench load")
    parser.add_argument("--metrics", default="smile:fast")
    parser.add_argument("--duration-s", type=float, default=0, help="seconds of a step; 0 means 10 s or 500 calls")
    parser.add_argument("--slo-s", type=float, default=0.25)
    parser.add_argument("--client-processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path(".knees"), help="folder for the runs' files")
    parser.add_argument("--write", action="store_true", help=f"write the table into {PAGE.name}")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    rows = [row(engine, mix, measure(engine, mix, options)) for engine in options.engines for mix in options.mixes]
    text = table(rows, options)
    print(text)
    if options.write:
        write_block(PAGE, BLOCK, text)


if __name__ == "__main__":
    main()
