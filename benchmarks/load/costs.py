"""What an answer costs a server's processors, for `gradewire bench capacity`.

Starts a server of its own for each step and puts fixed rates of short and verbose, new and repeated answers on it, in
calls of one and of many. Writes the points that come with gradewire (--write), and prints how far the model is off.
"""

import argparse
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.common.figures import machine
from benchmarks.common.servers import start_engine
from benchmarks.load.commands import bench_load

from gradewire.load_testing.capacity.costs import Costs, Measured, read_measurements

SHIPPED: Final = Path(__file__).resolve().parents[2] / "client/src/gradewire/load_testing/capacity/measured.json"


_TRIES: Final = 3


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


def measure(load: Load, options: argparse.Namespace) -> Path:
    """The JSON of one step that held; tried again where a busy machine made it miss."""
    path: Path = options.out / f"{load.name.replace(' ', '-').replace(',', '')}.json"
    for _ in range(_TRIES):
        # A server for each: what it has cached of one would make another cheaper.
        with start_engine("embedded", {"log-request-share": "0"}) as server:
            bench_load(
                server,
                *("--quiet", "--metrics", options.metrics, "--words", load.words, "--repeat-share", load.repeat_share),
                *("--batch", load.batch, "--rate", load.calls_per_s, "--duration", options.duration_s),
                # A busy machine makes an answer late; it costs the same.
                *("--slo-s", 20, "--deadline-s", 20, "--json", path),
            )
        if json.loads(path.read_text(encoding="utf-8"))["steps"][0]["outcome"] == "holds":
            return path
    raise SystemExit(f"{load.name}: the server did not keep up in {_TRIES} tries: the machine is too busy")


def document(measured: Measured, options: argparse.Namespace) -> dict[str, Any]:
    """What comes with gradewire."""
    told = (
        f"measured {datetime.now(UTC).date().isoformat()} on {machine()}, embedded engine, one process, load average "
        f"{os.getloadavg()[0]:.1f} at the end, python -m benchmarks.load.costs --duration-s {options.duration_s:g}"
    )
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
    return {"told": told, "metrics": list(measured.metrics), "points": points}


def main() -> None:
    """Measures, prints the points with the model's errors, and the costs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--metrics", default="smile:fast")
    parser.add_argument("--duration-s", type=float, default=20)
    parser.add_argument("--out", type=Path, default=Path(".costs"), help="folder of the runs' files")
    parser.add_argument("--write", action="store_true", help="write them where gradewire reads them")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    measured = read_measurements([measure(load, options) for load in LOADS])
    costs = Costs.fitted(measured.points)
    print(
        "| step | words | seen before | answers a call | CPU ms an answer | the model | off by |\n" + "|---" * 7 + "|"
    )
    for point, error in zip(measured.points, costs.errors(measured.points), strict=True):
        print(
            f"| {point.source} | {point.words:.0f} | {point.hit_rate:.0%} | {point.batch} | {point.cpu_s * 1e3:.3f} "
            f"| {point.cpu_s * (1 + error) * 1e3:.3f} | {error:+.0%} |"
        )
    print(costs)
    if options.write:
        SHIPPED.write_text(json.dumps(document(measured, options), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
