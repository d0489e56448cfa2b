"""Measure the server's CPU time for an item when the encoder costs nothing: the product's own cost.

The server runs with drawn vectors instead of a model (`costless_server`), with the disk store. Each metric gets a fresh
server. The client sends all rows once, for the cold cost, and then several times, for the warm cost. Times are CPU time
of the server process, which hardly depends on the machine's load. Without the labelled rows, rows are drawn.
"""

import argparse
import os
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks.common.rows import DEFAULT_DATA, Row, items_of, read_rows, sample_rows
from benchmarks.common.servers import cpu_s, start_engine
from benchmarks.latency.costless_server import BATCHES_VARIABLE

from gradewire import Client, Status

METRICS: Final = ("sbert", "smile", "correctness")
_COSTLESS: Final = (sys.executable, "-m", "benchmarks.latency.costless_server")
_SYLLABLES: Final = ("ba", "ce", "di", "fo", "gu", "ha", "ke", "li", "mo", "nu", "pa", "re", "si", "to", "va", "ze")
_WARM_UP_ITEMS: Final = 64
_FIRST_MARKED: Final[Row] = {
    "id": "marked",
    "question": "What is 2 + 3?",
    "references": ["5"],
    "prediction": "2 + 3 is 4. No, wait: the answer is 5.",
}
"""A row that loads the search for final answers, which compiles its patterns once in .4 s of CPU time."""
_TEXTS: Final = "gradewire_engine_texts_total"


def drawn_rows(count: int, seed: int) -> list[Row]:
    """Return rows with made-up words, two for each question, with answers as long as those of language models."""
    generator = random.Random(seed)  # noqa: S311 - no secret

    def text(words: int) -> str:
        return " ".join("".join(generator.choices(_SYLLABLES, k=generator.randint(1, 4))) for _ in range(words))

    rows: list[Row] = []
    while len(rows) < count:
        question, reference = text(9), text(generator.randint(1, 3))
        for answer in (text(generator.randint(1, 12)), f"{text(generator.randint(5, 50))} {reference}."):
            rows.append({"id": str(len(rows)), "question": question, "references": [reference], "prediction": answer})
    return rows[:count]


@dataclass(frozen=True)
class Cost:
    """A metric's CPU microseconds for each item, cold and warm, and the texts computed for each item."""

    cold_us: float
    warm_us: float
    texts: float


def measure(metric: str, rows: Sequence[Row], arguments: argparse.Namespace) -> Cost:
    """Start a server, and measure one metric."""
    warm_up = [*drawn_rows(_WARM_UP_ITEMS, arguments.seed + 1), _FIRST_MARKED]
    # Drawn vectors do not resemble those of the 8-bit graph that chooses windows.
    options = {"judge-backend": "none", "log-level": "warning", "window-choice": "fp32"}
    with (
        TemporaryDirectory() as directory,
        start_engine("embedded", options | {"disk-directory": directory}, command=_COSTLESS) as server,
        Client(server.address) as client,
    ):

        def cost_us(passes: int) -> float:
            before_s = cpu_s(server.process.pid)
            for _ in range(passes):
                score(client, items_of(rows), metric)
            return (cpu_s(server.process.pid) - before_s) / len(rows) / passes * 1e6

        score(client, warm_up, metric)
        computed = server.metric(_TEXTS, source="computed")
        cold_us = cost_us(1)
        texts = (server.metric(_TEXTS, source="computed") - computed) / len(rows)
        return Cost(cold_us, cost_us(arguments.warm_passes), texts)


def score(client: Client, rows: Sequence[Row], metric: str) -> None:
    """Score rows; exit if a row fails."""
    for item in client.score(rows, metric, deadline_s=300):
        for result in item.scores.values():
            if result.status is not Status.OK:
                raise SystemExit(f"{item.id} was not scored: {result.status.name}: {result.message}")


def main() -> None:
    """Measure all metrics and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="labelled rows (default: %(default)s)")
    parser.add_argument("--rows", type=int, default=2500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--metrics", default=";".join(METRICS), help="metrics, with ';' between (default: %(default)s)")
    parser.add_argument("--warm-passes", type=int, default=8)
    parser.add_argument("--batches", choices=("cpu", "gpu"), default="gpu", help="form the batches of this device")
    arguments = parser.parse_args()
    os.environ[BATCHES_VARIABLE] = arguments.batches
    known = arguments.data.is_file()
    if known:
        rows = sample_rows(read_rows(arguments.data), arguments.rows, arguments.seed)
    else:
        rows = drawn_rows(arguments.rows, arguments.seed)
    load_before = os.getloadavg()[0]
    costs = {metric: measure(metric, rows, arguments) for metric in arguments.metrics.split(";")}
    print(
        f"{len(rows)} {'labelled' if known else 'drawn'} rows, one client, batches for a {arguments.batches.upper()}; "
        f"server CPU, µs; load average before {load_before:.2f}, after {os.getloadavg()[0]:.2f}\n"
    )
    report(costs)


def report(costs: dict[str, Cost]) -> None:
    """Print the table. The last column divides a metric's cost beyond the first metric's by its further texts."""
    base = next(iter(costs.values()))
    print("| metric | new item | repeated item | texts computed an item | a text beyond the first line's |")
    print("|---|---:|---:|---:|---:|")
    for metric, cost in costs.items():
        more = cost.texts - base.texts
        further = f"{(cost.cold_us - base.cold_us) / more:.0f}" if more > 0 else ""
        print(f"| `{metric}` | {cost.cold_us:.0f} | {cost.warm_us:.0f} | {cost.texts:.2f} | {further} |")


if __name__ == "__main__":
    main()
