"""What a row costs on Ray, against the plain engine: `gradewire bulk` and `gradewire score`, interleaved in one run.

    .venv-ray/bin/python -m benchmarks.bulk.throughput --data .data/evouna_dev.jsonl --json throughput.json

Each round runs both over a few rows and over many, from empty caches and over rows of their own. The difference between
many and few is what rows cost once all is started; with all starts, which take as long for any number of rows, it is
told as well.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.bulk.kills import METRICS
from benchmarks.bulk.rows import write_rows
from benchmarks.bulk.watched import GRADEWIRE, run
from benchmarks.common.rows import DEFAULT_DATA

if TYPE_CHECKING:
    from collections.abc import Callable

PART_ROWS = 256
"""Few rows are some parts for each worker too, so that all of them have started when the rest is measured."""


@dataclass(frozen=True)
class Cost:
    """What a command took.

    Attributes:
        wall_s: Seconds.
        cpu_s: CPU seconds of all of its processes.
        by_kind: The same by what they do.
    """

    wall_s: float
    cpu_s: float
    by_kind: dict[str, float]


def measured(command: str, folder: Path, rows: int, first: int, given: argparse.Namespace) -> Cost:
    """Runs `score` or `bulk` over so many rows that nobody scored before."""
    source, output = folder / f"{command}-{first}.jsonl", folder / f"{command}-{first}.out.jsonl"
    write_rows(source, given.data, rows, first=first)
    options: list[str | Path] = ["--metrics", METRICS, "--cache-dir", folder / f"cache-{command}-{first}", "--quiet"]
    to: list[str | Path] = ["--out", output] if command == "score" else [output, "--part-rows", str(PART_ROWS)]
    found = run([*GRADEWIRE, command, source, *to, *options], folder / f"{command}-{first}.log")
    if len(output.read_text(encoding="utf-8").splitlines()) != rows:
        raise SystemExit(f"{command} gave another number of results than {rows}")
    kinds = {kind: round(seconds, 1) for kind, seconds in found.cpu_by_kind().items()}
    return Cost(found.wall_s, sum(found.cpu_s.values()), kinds)


def measured_round(number: int, folder: Path, given: argparse.Namespace) -> dict[str, Any]:
    """Both commands over few and many rows; every second round begins with bulk."""
    found: dict[str, dict[str, Cost]] = {"score": {}, "bulk": {}}
    commands = ("score", "bulk") if number % 2 == 0 else ("bulk", "score")
    for name, rows in (("few", given.few), ("many", given.many)):
        for command in commands:
            # Rows of other numbers are other predictions; the references are the same for both commands.
            found[command][name] = measured(command, folder, rows, 1_000_000 * number + rows, given)
    return {
        command: {
            "few": vars(costs["few"]),
            "many": vars(costs["many"]),
            "row_wall_ms": 1e3 * (costs["many"].wall_s - costs["few"].wall_s) / (given.many - given.few),
            "row_cpu_ms": 1e3 * (costs["many"].cpu_s - costs["few"].cpu_s) / (given.many - given.few),
        }
        for command, costs in found.items()
    }


def ratios(rounds: list[dict[str, Any]]) -> dict[str, float]:
    """The plain engine's cost over bulk's, the median of the rounds: 1 is the same throughput, less is slower."""
    names: dict[str, Callable[[dict[str, Any]], float]] = {
        "clock, once started": lambda each: each["row_wall_ms"],
        "CPU, once started": lambda each: each["row_cpu_ms"],
        "clock, many rows with all starts": lambda each: each["many"]["wall_s"],
        "CPU, many rows with all starts": lambda each: each["many"]["cpu_s"],
    }
    return {
        name: round(statistics.median(value(each["score"]) / value(each["bulk"]) for each in rounds), 3)
        for name, value in names.items()
    }


def main() -> None:
    """Runs it and prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA)
    parser.add_argument("--few", type=int, default=2_000)
    parser.add_argument("--many", type=int, default=8_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the figures here")
    given = parser.parse_args()
    rounds, loads = [], [round(os.getloadavg()[0], 1)]
    with tempfile.TemporaryDirectory(prefix="gradewire-bulk-throughput-") as folder:
        for number in range(given.rounds):
            rounds.append(measured_round(number, Path(folder), given))
            loads.append(round(os.getloadavg()[0], 1))
            sys.stderr.write(f"round {number + 1}: {json.dumps(rounds[-1])}; load {loads[-1]}\n")
    figures = {"rows": [given.few, given.many], "plain over bulk": ratios(rounds), "rounds": rounds, "load": loads}
    text = json.dumps(figures, indent=2)
    sys.stdout.write(text + "\n")
    if given.json is not None:
        given.json.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
