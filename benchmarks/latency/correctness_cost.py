"""Compare the cost of `correctness` and `smile` on the rows of the speed benchmark, cold and warm, in one process.

Blocks of rows go to the scorers in turns, forwards and backwards, so that the machine's load affects all alike. The
load changes wall-clock seconds, but hardly the process's CPU seconds. `without` is `correctness` without a grader, and
`features` is `without` without a fit; the difference is the cost of the trees. `sfve-mini` is `correctness` with this
encoder, and `grader-base` with this grader; they must be built first.
"""

import argparse
import os
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from benchmarks.common.rows import DEFAULT_DATA, WARM_UP, Row, items_of, read_rows, sample_rows

from gradewire import Scorer, Status
from gradewire.results import ScoreReport

WAYS = {
    "smile": "smile",
    "features": "correctness?features_only=true&grader=none",
    "without": "correctness?grader=none",
    "correctness": "correctness",
    "both": "smile,correctness",
    "sfve-mini": "correctness?model=sfve-mini",
    "grader-base": "correctness?grader=grader-base",
}
BUILT_BY_DEFAULT = [way for way in WAYS if way not in {"sfve-mini", "grader-base"}]


class Way:
    """A metric, its scorer, and its total times so far."""

    def __init__(self, metrics: str, scorer: Scorer) -> None:
        self.metrics = metrics
        self.scorer = scorer
        self.wall_s = self.cpu_s = self.warm_cpu_s = 0.0
        self.texts = 0
        self.failed = 0
        scorer.score([WARM_UP], metrics)

    def run(self, rows: list[Row]) -> None:
        """Score a block cold and then warm, and add up the times."""
        items = items_of(rows)
        wall, cpu = time.perf_counter(), time.process_time()
        report = self.scorer.score(items, self.metrics)
        self.wall_s += time.perf_counter() - wall
        self.cpu_s += time.process_time() - cpu
        self._count(report)
        cpu = time.process_time()
        self.scorer.score(items, self.metrics)
        self.warm_cpu_s += time.process_time() - cpu

    def _count(self, report: ScoreReport) -> None:
        for item in report:
            results = item.scores.values()
            self.failed += any(result.status is not Status.OK for result in results)
            self.texts += max(result.cache_hits.computed for result in results)


def main() -> None:
    """Run all metrics over the sampled rows and print the times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA)
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--blocks", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--model-repository", type=Path)
    parser.add_argument("--ways", default=",".join(BUILT_BY_DEFAULT), help=f"comma-separated, of {', '.join(WAYS)}")
    arguments = parser.parse_args()
    rows = sample_rows(read_rows(arguments.data), arguments.rows, arguments.seed)
    options = {"workers": arguments.workers}
    if arguments.model_repository:
        options["model_repository"] = arguments.model_repository
    load_before = os.getloadavg()
    with ExitStack() as stack:
        ways = {
            name: Way(WAYS[name], stack.enter_context(Scorer.embedded(disk_directory="", **options)))
            for name in arguments.ways.split(",")
        }
        size = -(-len(rows) // arguments.blocks)
        for number, start in enumerate(range(0, len(rows), size)):
            for name in list(ways)[:: 1 if number % 2 == 0 else -1]:
                ways[name].run(rows[start : start + size])
            sys.stderr.write(f"block {number + 1} of {arguments.blocks}\n")
    report(ways, len(rows), load_before)


def report(ways: dict[str, Way], rows: int, load_before: tuple[float, float, float]) -> None:
    """Print the table, with costs relative to `smile`."""
    base = ways["smile"]
    print(f"{rows} rows; load average before {load_before[0]:.2f}, after {os.getloadavg()[0]:.2f}\n")
    print("| way | texts | cold, wall s | cold, CPU s | to smile | warm, CPU s | to smile | rows failed |")
    print("|---|---|---|---|---|---|---|---|")
    for name, way in ways.items():
        print(
            f"| {name} | {way.texts} | {way.wall_s:.2f} | {way.cpu_s:.2f} | {way.cpu_s / base.cpu_s:.3f} "
            f"| {way.warm_cpu_s:.3f} | {way.warm_cpu_s / base.warm_cpu_s:.2f} | {way.failed} |"
        )


if __name__ == "__main__":
    main()
