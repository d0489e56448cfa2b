"""What an answer costs a server's processors, for `gradewire bench capacity`.

Starts a server of its own for each step and puts fixed rates of short and verbose, new and repeated answers on it, in
calls of one and of many. Writes the points that come with gradewire (--write), and prints how far the model is off.
"""

import argparse
import json
import os
import textwrap
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.common.document import write_block
from benchmarks.common.figures import machine
from benchmarks.common.servers import start_engine
from benchmarks.load.commands import bench_load
from gradewire_cli.load.capacity.costs import Costs, Measured, read_measurements

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = ROOT / "docs/operate/capacity.md"
SHIPPED: Final = ROOT / "client/src/gradewire/load_testing/capacity/measured.json"


_CLIENT_PROCESSES: Final = (1, 2, 4)
"""Of one try after the other: on a busy machine a client that is alone comes too late."""
_COSTS: Final = tuple(each.name for each in fields(Costs))


class Load(NamedTuple):
    """A step: answers of so many words in calls of `batch`, so many calls a second, a share of them repeated."""

    name: str
    words: int
    repeat_share: float
    batch: int
    calls_per_s: float


LOADS: Final = (
    Load("short new", 4, 0.0, 1, 60),
    Load("short half", 4, 0.5, 1, 100),
    Load("short warm", 4, 1.0, 1, 200),
    Load("short warm, calls of 32", 4, 1.0, 32, 30),
    Load("20 words new", 20, 0.0, 1, 20),
    Load("20 words warm", 20, 1.0, 1, 150),
    Load("verbose new", 50, 0.0, 1, 10),
    Load("verbose half", 50, 0.5, 1, 15),
    Load("verbose warm", 50, 1.0, 1, 100),
    Load("verbose warm, calls of 32", 50, 1.0, 32, 10),
)


def file_of(load: Load, options: argparse.Namespace) -> Path:
    """Where its figures go."""
    path: Path = options.out / f"{load.name.replace(' ', '-').replace(',', '')}.json"
    return path


def measure(load: Load, options: argparse.Namespace) -> Path:
    """The JSON of one step that held; tried again where a busy machine made it miss."""
    path = file_of(load, options)
    for processes in _CLIENT_PROCESSES:
        # A server for each: what it has cached of one would make another cheaper.
        with start_engine("embedded", {"log-request-share": "0"}) as server:
            bench_load(
                server,
                *("--quiet", "--metrics", options.metrics, "--words", load.words, "--repeat-share", load.repeat_share),
                *("--batch", load.batch, "--rate", load.calls_per_s, "--duration", options.duration_s),
                # A busy machine makes an answer late; it costs the same.
                *("--slo-s", 20, "--deadline-s", 20, "--client-processes", processes, "--json", path),
            )
        if json.loads(path.read_text(encoding="utf-8"))["steps"][0]["outcome"] == "holds":
            return path
    raise SystemExit(
        f"{load.name}: the server did not keep up in {len(_CLIENT_PROCESSES)} tries: the machine is too busy"
    )


def document(measured: Measured, told: str, load: float) -> dict[str, Any]:
    """What comes with gradewire; `load` is the machine's, of which a warning is made where it was busy."""
    points = [
        {
            "words": each.words,
            "hit_rate": each.hit_rate,
            "batch": each.batch,
            "cpu_s": each.cpu_s,
            "source": each.source,
        }
        for each in measured.points
    ]
    return {
        "told": told,
        "load": round(load, 1),
        "cores": os.cpu_count() or 1,
        "metrics": list(measured.metrics),
        "points": points,
    }


def table(measured: Measured, costs: Costs, told: str) -> str:
    """Markdown: the costs, then a line for each step with the model's error."""
    errors = costs.errors(measured.points)
    parts = ", ".join(
        f"{name.removesuffix('_s').replace('_', ' ')} {getattr(costs, name) * 1e3:.3g}" for name in _COSTS
    )
    said = f"{told}: the largest error is {max(map(abs, errors)):.0%}. Costs in ms: {parts}."
    lines = [
        textwrap.fill(said[0].upper() + said[1:], 120, break_on_hyphens=False),
        "",
        "| step | words | seen before | answers a call | CPU ms an answer | the model | off by |",
        "|---" * 7 + "|",
    ]
    for point, error in zip(measured.points, errors, strict=True):
        lines.append(
            f"| {point.source} | {point.words:.0f} | {point.hit_rate:.0%} | {point.batch} | {point.cpu_s * 1e3:.3f} "
            f"| {point.cpu_s * (1 + error) * 1e3:.3f} | {error:+.0%} |"
        )
    return "\n".join(lines)


def measured_where(options: argparse.Namespace, load: float) -> str:
    """When, where and how, in words."""
    return (
        f"measured {datetime.now(UTC).date().isoformat()} on {machine()}, embedded engine, one process, load average "
        f"of at most {load:.1f}, python -m benchmarks.load.costs --duration-s {options.duration_s:g}"
    )


def main() -> None:
    """Measures, prints the points with the model's errors, and the costs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--metrics", default="smile:fast")
    parser.add_argument("--duration-s", type=float, default=12)
    parser.add_argument("--out", type=Path, default=Path(".costs"), help="folder of the runs' files")
    parser.add_argument("--write", action="store_true", help="write them where gradewire reads them, and into the page")
    parser.add_argument("--measured", action="store_true", help="take what lies in --out, and measure nothing")
    options = parser.parse_args()
    if options.write and options.measured:
        parser.error("--write: leave out --measured, whose runs are of another time")
    options.out.mkdir(parents=True, exist_ok=True)
    paths = [file_of(load, options) if options.measured else measure(load, options) for load in LOADS]
    measured = read_measurements(paths)
    load = max(step["load"] for path in paths for step in json.loads(path.read_text(encoding="utf-8"))["steps"])
    told = measured_where(options, load)
    text = table(measured, Costs.fitted(measured.points), told)
    print(text)
    if options.write:
        SHIPPED.write_text(json.dumps(document(measured, told, load), indent=2) + "\n", encoding="utf-8")
        write_block(PAGE, "costs", text)


if __name__ == "__main__":
    main()
