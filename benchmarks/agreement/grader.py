"""Compare `grader` with `lave`, `smile` and an earlier grader in quality and cost; write benchmarks/results/grader.md.

Only half b is used, because the grader was trained on half a. `correctness` is left out, because its fits used half b;
for held-out values, see benchmarks.agreement.with_grader. Cost is a command's CPU seconds, with child processes, on a
few rows minus its seconds on one row. Scores are stored in --results, so an interrupted run resumes. The block
grader-judge also needs grader-base. The earlier grader must be built under its name, from its folder in
gradewire_train.recipes:

    gradewire models build --adapter FOLDER/grader-start --name grader-start all-MiniLM-L6-v2

The block grader-base reads --logits, which a training on a GPU wrote with --score for the same rows: the larger grader
would take long on a processor.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
from benchmarks.agreement.correctness import FILES, PUPILS
from benchmarks.agreement.travel import CHANGES, ReadSet, Way, changes_table
from benchmarks.common.measurements import write_block
from benchmarks.common.rows import DATA_DIRECTORY, Row, read_lines, read_rows
from benchmarks.common.servers import run_gradewire
from benchmarks.judges.agreement import judge_environment, score_rows, test_rows

from gradewire_stats.calibration.labelled_rows import half_of, question_key

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROOT = Path(__file__).resolve().parents[2]
MODELS = ("fid", "gpt35", "gpt4")
WITHOUT_JUDGE = ("smile:v1", "grader")
BESIDE_JUDGE = (*WITHOUT_JUDGE, "grader?model=grader-base")
JUDGE = "lave?value=expected"
GRADERS = ("grader?model=grader-start", "grader")
COST_ROUNDS = 3
# Compute only features: the trees cost almost nothing, and a fit may be missing.
COST_ROWS = {
    "smile:v1": 150,
    "correctness?features_only=true&grader=none": 150,
    "correctness?features_only=true": 150,
    "grader": 150,
    JUDGE: 12,
}


def main() -> None:
    """Score missing rows, measure costs, and replace the document's blocks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA_DIRECTORY, help="directory of the rows")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results" / "grader")
    parser.add_argument("--document", type=Path, default=ROOT / "benchmarks" / "results" / "grader.md")
    parser.add_argument("--judges", type=Path, help="directory of built judges; default: the usual one")
    parser.add_argument("--logits", type=Path, help="logits.jsonl of grader-base's training, for block grader-base")
    blocks = ["grader-judge", "grader-half-b", "grader-before", "grader-base", "grader-cost"]
    parser.add_argument("--only", action="append", choices=blocks)
    options = parser.parse_args()
    judge_environment(options.judges)
    options.results.mkdir(parents=True, exist_ok=True)
    rows = read_rows(options.data / "evouna_dev.jsonl", MODELS)
    judged = held_out(test_rows(rows))
    tables: dict[str, Callable[[], str]] = {
        "grader-judge": lambda: agreement("grader-judge", judged, ((JUDGE,), BESIDE_JUDGE), options.results),
        "grader-half-b": lambda: agreement("grader-half-b", held_out(rows), (WITHOUT_JUDGE,), options.results),
        "grader-before": lambda: compared(options.data, options.results, GRADERS),
        "grader-base": lambda: compared(options.data, options.results, GRADERS[1:], options.logits),
        "grader-cost": lambda: cost_table(judged, options.results),
    }
    if options.logits is None:
        if "grader-base" in (options.only or ()):
            parser.error("--only grader-base needs --logits")
        del tables["grader-base"]
    for name, table in tables.items():
        if not options.only or name in options.only:
            write_block(options.document, name, table())


def held_out(rows: Sequence[Row]) -> list[Row]:
    """Return the rows in the held-out split."""
    return [row for row in rows if half_of(row["question"]) == "b"]


def unread(rows: Sequence[Row], evouna: Sequence[Row]) -> list[Row]:
    """Return the rows whose question is none of EVOUNA's half a, which the graders were trained on."""
    read = {question_key(row["question"]) for row in evouna if half_of(row["question"]) == "a"}
    return [row for row in rows if question_key(row["question"]) not in read]


def agreement(name: str, rows: Sequence[Row], groups: Sequence[tuple[str, ...]], results: Path) -> str:
    """Return the output of `gradewire agree` in Markdown."""
    data = write_rows(results / f"{name}.rows.jsonl", rows)
    scores = [score_rows(data, metrics, results / name) for metrics in groups]
    report = results / f"{name}.md"
    run_gradewire(
        *("agree", data, *(f"--scores={path}" for path in scores), "--statistics", "auc,pearson,accuracy"),
        *("--compare-all", "--compare-statistics", "auc,pearson"),
        *("--markdown", report, "--json", report.with_suffix(".json")),
    )
    return f"{len(rows)} rows of half b.\n\n{report.read_text('utf-8')}"


def compared(data: Path, results: Path, graders: Sequence[str], logits: Path | None = None) -> str:
    """Return the graders' AUC, accuracy and Pearson on rows that none has read, and the differences from the first.

    `logits` is a file with grader-base's logits by row ID, or None to leave this grader out.
    """
    of_base = {row["id"]: row["logit"] for row in read_lines(logits)} if logits else {}
    pupils, nq301 = (read_lines(data / name) for name in (PUPILS, FILES["nq301"]))
    evouna = read_lines(data / FILES["evouna"])
    named = (
        ("EVOUNA, half b", "evouna", held_out(evouna)),
        ("NQ301, other questions", "nq301", unread(nq301, evouna)),
        ("pupils' answers, half b", "pupils", held_out(pupils)),
    )
    sets = []
    for name, short, rows in named:
        stem = f"before-{short}"
        scored = read_lines(score_rows(write_rows(results / f"{stem}.rows.jsonl", rows), GRADERS, results / stem))
        found = {metric: [each["scores"][metric]["score"] for each in scored] for metric in graders}
        if of_base:
            found["grader?model=grader-base"] = [1 / (1 + np.exp(-of_base[row["id"]])) for row in rows]
        ways = [Way(metric, np.array(scores), np.zeros(len(rows), np.bool_)) for metric, scores in found.items()]
        right = np.array([row["label"] > 0 for row in rows])
        sets.append(ReadSet(name, right, [question_key(row["question"]) for row in rows], ways))
    lines = [f"| | | {' | '.join(CHANGES)} |", f"|---|---|{'---:|' * len(CHANGES)}"]
    for each in sets:
        for way in each.ways:
            told = " | ".join(f"{statistic(way.found, each.right):.3f}" for statistic in CHANGES.values())
            lines.append(f"| {each.name}, {len(each.right)} rows | `{way.name}` | {told} |")
    return "\n".join([*lines, "", changes_table(sets)])


def cost_table(rows: Sequence[Row], results: Path) -> str:
    """Return each metric's CPU seconds per row with an empty store."""
    load = os.getloadavg()[0]
    least = dict.fromkeys(COST_ROWS, float("inf"))
    for number in range(COST_ROUNDS):
        for metric, count in COST_ROWS.items():
            few, one = (write_rows(results / f"cost-{size}.jsonl", rows[:size]) for size in (count, 1))
            spent = (cpu_seconds(few, metric, results) - cpu_seconds(one, metric, results)) / (count - 1)
            least[metric] = min(least[metric], spent)
            sys.stderr.write(f"round {number + 1}: {metric} {spent:.4f} s a row\n")
    base = least["grader"]
    lines = [f"| {metric} | {1000 * spent:.1f} | {spent / base:.2f} |" for metric, spent in least.items()]
    head = ["| metric | CPU ms a row | to `grader` |", "|---|---|---|"]
    told = f"Minimum of {COST_ROUNDS} rounds; load average {load:.1f} before, {os.getloadavg()[0]:.1f} after."
    return "\n".join([told, "", *head, *lines])


def cpu_seconds(data: Path, metric: str, results: Path) -> float:
    """Return the CPU seconds for scoring a file with an empty store, with child processes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with TemporaryDirectory(dir=results) as empty:
        run_gradewire(
            *("score", data, "--embedded", "--metrics", metric, "--out", results / "cost.out.jsonl", "--overwrite"),
            *("--fail-on", "never", "--quiet", "--disk-directory", empty, "--deadline-s", "3600"),
        )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def write_rows(path: Path, rows: Sequence[Row]) -> Path:
    """Write rows as JSON lines; return the path."""
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return path


if __name__ == "__main__":
    main()
