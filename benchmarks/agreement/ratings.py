"""Rank EVOUNA's five models with several judges of pairs, and compare the leaderboards with annotators' labels.

Runs `gradewire leaderboard` with the options after `--`. Judged pairs are stored in `--kept` and reused.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.common.rows import DEFAULT_DATA, Row, read_lines
from benchmarks.common.servers import run_gradewire

if TYPE_CHECKING:
    from collections.abc import Iterable


def by_question(rows: Iterable[Row], questions: int) -> list[dict[str, Row]]:
    """Return the first `questions` questions, each with its answers by model."""
    found: defaultdict[tuple[str, str], dict[str, Row]] = defaultdict(dict)
    for row in rows:
        found[row["dataset"], row["question"]][row["model"]] = row
    return list(found.values())[:questions]


def write_files(asked: list[dict[str, Row]], answers: Path, votes: Path) -> None:
    """Write the answers, and a vote for each pair of models."""
    with answers.open("w") as answer_lines, votes.open("w") as vote_lines:
        for number, models in enumerate(asked):
            for row in models.values():
                kept = {name: row[name] for name in ("question", "references", "prediction", "model")}
                answer_lines.write(json.dumps({"question_id": f"q{number}", "group": row["dataset"], **kept}) + "\n")
            for one, other in itertools.combinations(sorted(models), 2):
                ahead = models[one]["label"] - models[other]["label"]
                winner = "tie" if not ahead else "model_a" if ahead > 0 else "model_b"
                pair = {"instruction_id": f"q{number}", "model_a": one, "model_b": other, "winner": winner}
                vote_lines.write(json.dumps(pair) + "\n")


def main() -> None:
    """Write the files, and run the command with each judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--by", nargs="+", default=["smile", "correctness", "rouge_l?measure=recall", "exact_match"])
    parser.add_argument("--kept", type=Path, default=Path(".leaderboards"), help="folder of files and judged pairs")
    parser.add_argument("further", nargs="*", help="options for the command, after --")
    options = parser.parse_args()
    asked = by_question(read_lines(options.data), options.questions)
    options.kept.mkdir(exist_ok=True)
    answers, votes = (options.kept / f"{name}-{len(asked)}.jsonl" for name in ("answers", "votes"))
    write_files(asked, answers, votes)
    for by in options.by:
        name = "".join(letter if letter.isalnum() else "-" for letter in by)
        out = options.kept / f"{name}-{len(asked)}.pairs.jsonl"
        print(f"--by {by}; load {' '.join(f'{each:.1f}' for each in os.getloadavg())} on {os.cpu_count()} cores")
        run_gradewire(
            *("leaderboard", answers, "--by", by, "--human", votes, "--out", out, "--resume", "--quiet"),
            *options.further,
        )


if __name__ == "__main__":
    main()
