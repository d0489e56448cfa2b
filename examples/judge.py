"""Grade the examples by SMILE and by a judge; print the judge's cost and where the two disagree.

Build a judge first (`gradewire models build qwen2.5-coder-1.5b-instruct`), then run `python examples/judge.py`. To use
a server's judge instead, add `--server HOST:PORT`.
"""

import argparse
import json
from pathlib import Path

from rich.console import Console
from rich.table import Table

from gradewire import Client, ItemScores, JudgeParts, Scorer, Status

ROWS = Path(__file__).with_name("answers.jsonl")
METRICS = "smile,lave"


def parse_arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", metavar="HOST:PORT", help="server to score on; default: this process")
    parser.add_argument("--judge", metavar="NAME", help="name of the judge; default: the default judge")
    parser.add_argument("--rows", type=int, default=None, help="number of rows, from the first; default: all")
    return parser.parse_args()


def disagreement(item: ItemScores) -> float:
    """Return the distance between the two scores, or 0 if a score is missing."""
    smile, lave = (item.scores[name].score for name in ("smile", "lave"))
    return abs(smile - lave) if smile is not None and lave is not None else 0.0


def cost(items: list[ItemScores]) -> str:
    """Return a line about the judge's calls and tokens."""
    parts = [item.scores["lave"].parts for item in items]
    judged = [each for each in parts if isinstance(each, JudgeParts) and each.decided_by == "judge"]
    read, written = (sum(getattr(each, f"{kind}_tokens") for each in judged) for kind in ("prompt", "generated"))
    return f"{len(judged)} of {len(items)} rows judged, {read} tokens read (most of them once), {written} written"


def main() -> None:
    """Score, then print the ten rows with the largest differences."""
    console = Console()
    arguments = parse_arguments()
    rows = [json.loads(line) for line in ROWS.read_text(encoding="utf-8").splitlines()][: arguments.rows]
    with Client(arguments.server) if arguments.server else Scorer.embedded() as scoring:
        for metric in scoring.models().metrics:
            if metric.name == "lave" and metric.advice:
                console.print(f"lave: {metric.advice}")
        items = sorted(scoring.score_stream(rows, METRICS, judge=arguments.judge), key=disagreement, reverse=True)
    table = Table("answer", "smile", "lave", "label", "rating")
    for item in items[:10]:
        smile, lave = item.scores["smile"], item.scores["lave"]
        rating = lave.parts.value if isinstance(lave.parts, JudgeParts) else None
        shown = [f"{each.score:.2f}" if each.status is Status.OK else str(each.status) for each in (smile, lave)]
        row = rows[item.index]
        table.add_row(row["prediction"][:60], *shown, str(row["label"]), "-" if rating is None else f"{rating:.2f}")
    console.print(table)
    console.print(cost(items))


if __name__ == "__main__":
    main()
