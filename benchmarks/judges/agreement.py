"""Measure how the judge's metrics agree with human labels; write benchmarks/results/judge.md.

Every run uses the same 600 rows, 100 for each data set and model. Choose prompts and thresholds only on
`development_rows`, which have other questions. Scores are stored in --results, so an interrupted run resumes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import subprocess
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.common.measurements import write_block
from benchmarks.common.rows import DATA_DIRECTORY, Row, read_rows, resume_or_overwrite
from benchmarks.common.servers import GRADEWIRE, run_gradewire
from benchmarks.judges.binary import binary_table

from gradewire.metrics.choice import MetricDefaults, choose_metrics

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parents[2]
PROMPTS = ROOT / "server" / "src" / "gradewire_server" / "metrics" / "prompts"
BINARY_ROWS = ROOT / "examples" / "binary_questions.jsonl"
MODELS = ("fid", "gpt35", "gpt4")
ROWS_OF_A_CELL = 100
# Every sixth row is also judged with a reason.
EVERY = 6

# Each group is one run of the command, so that an interruption loses little. smile is first because the tables compare
# all other metrics with it.
BESIDE = (("smile:v1", "rouge_l?measure=recall", "exact_match"),)
DIRECT = (
    ("lave?value=expected", "lave?value=most_probable"),
    ("judge_verdict",),
    ("judge_grade?value=expected", "judge_grade?value=most_probable"),
    ("judge_similarity",),
)
# Run these together with the metrics without a reason, for unique names.
REASONED = (
    *("lave?mode=rationale&value=expected", "judge_verdict?style=reasons", "judge_verdict?style=step_by_step"),
    "judge_grade?style=extract&value=expected",
)
GUARDED = ("lave", "lave?guard=other_key")
SYNTHETIC = ("smile:v1?synthetic=none", "smile:v1?synthetic=prepared")
# Use only every third row and its first references, because synthetic answers take long.
EVERY_WRITTEN = 3
WRITTEN = 3
BINARY = tuple(
    f"{metric}{'&' if '?' in metric else '?'}binary={who}"
    for metric in ("lave?value=expected", "judge_grade?value=expected", "judge_verdict")
    for who in ("judge", "rule")
)


def test_rows(rows: Sequence[Row]) -> list[Row]:
    """Return the 600 rows for reports, 100 from each cell, drawn independently of the labels."""
    chosen: list[Row] = []
    for (dataset, model), cell in _cells(rows).items():
        draw = random.Random(f"gradewire judge {dataset} {model}")  # noqa: S311 - no secret
        chosen += draw.sample(cell, ROWS_OF_A_CELL)
    return chosen


def development_rows(rows: Sequence[Row], each: int = 16) -> list[Row]:
    """Return rows for choosing prompts and thresholds: `each` right and wrong rows per cell."""
    taken = {(row["dataset"], row["question"]) for row in test_rows(rows)}
    chosen: list[Row] = []
    for (dataset, model), cell in _cells(rows).items():
        for label in (0, 1):
            free = [row for row in cell if row["label"] == label and (dataset, row["question"]) not in taken]
            draw = random.Random(f"dev {dataset} {model} {label}")  # noqa: S311 - no secret
            # Always draw 64 rows, so that a larger `each` only adds rows.
            chosen += draw.sample(free, min(len(free), 64))[:each]
    return chosen


def _cells(rows: Sequence[Row]) -> dict[tuple[str, str], list[Row]]:
    cells: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        cells.setdefault((row["dataset"], row["model"]), []).append(row)
    return dict(sorted(cells.items()))


@dataclass(frozen=True)
class Task:
    """Rows to score, their metrics, and their block in the document."""

    name: str
    title: str
    rows: Sequence[Row]
    groups: Sequence[tuple[str, ...]]


def main() -> None:
    """Score missing rows, compute the tables and replace the document's blocks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA_DIRECTORY, help="directory of the rows")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results" / "judge")
    parser.add_argument("--document", type=Path, default=ROOT / "benchmarks" / "results" / "judge.md")
    parser.add_argument("--judges", type=Path, help="directory of built judges; default: the usual one")
    parser.add_argument("--only", action="append", help="write only this block; may be repeated")
    parser.add_argument("--development", type=Path, help="write only the development rows, to this file")
    options = parser.parse_args()
    rows = read_rows(options.data / "evouna_dev.jsonl", MODELS)
    if options.development:
        _write_rows(options.development, development_rows(rows))
        return
    chosen = test_rows(rows)
    reasoned = (*chain.from_iterable(DIRECT), *REASONED)
    few = [{**row, "references": row["references"][:WRITTEN]} for row in chosen[::EVERY_WRITTEN]]
    tasks = (
        Task("judge-600", "600 rows.", chosen, BESIDE + DIRECT),
        Task("judge-100", "100 of the 600 rows.", chosen[::EVERY], (*BESIDE, reasoned)),
        Task("judge-guard", "600 rows.", chosen, (GUARDED,)),
        Task(
            "judge-synthetic", f"{len(few)} of the 600 rows, with their first {WRITTEN} references.", few, (SYNTHETIC,)
        ),
    )
    judge_environment(options.judges)
    options.results.mkdir(parents=True, exist_ok=True)
    for task in tasks:
        if not options.only or task.name in options.only:
            write_block(options.document, task.name, _agreement(task, options.results))
    if not options.only or "judge-binary" in options.only:
        named = choose_metrics(",".join(BINARY), MetricDefaults()).labels
        scores = score_rows(BINARY_ROWS, BINARY, options.results / "judge-binary")
        write_block(options.document, "judge-binary", binary_table(BINARY_ROWS, scores, named))


def _write_rows(path: Path, rows: Sequence[Row]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")


def judge_environment(judges: Path | None) -> None:
    """Set the environment variables for the judge's backend and directory."""
    os.environ.setdefault("GRADEWIRE_JUDGE_BACKEND", "embedded")
    if judges is not None:
        os.environ["GRADEWIRE_JUDGE_REPOSITORY"] = str(judges)


def _agreement(task: Task, results: Path) -> str:
    data = results / f"{task.name}.rows.jsonl"
    _write_rows(data, task.rows)
    written = _written(data, results) if SYNTHETIC in task.groups else ()
    scores = [score_rows(data, metrics, results / task.name, *written) for metrics in task.groups]
    report = results / f"{task.name}.md"
    run_gradewire(
        *("agree", data, *(f"--scores={path}" for path in scores), "--statistics", "auc,pearson,accuracy"),
        *("--compare-all", "--compare-statistics", "auc,pearson"),
        *("--markdown", report, "--json", report.with_suffix(".json")),
    )
    return f"{task.title}\n\n{report.read_text('utf-8')}"


def _written(data: Path, results: Path) -> tuple[str, str]:
    """Let the judge write all synthetic answers once; return the option for their reference set."""
    command = (GRADEWIRE, "prepare", data, "--embedded", "--generate", "--quiet", "--disk-directory", results / "store")
    done = subprocess.run(list(map(str, command)), check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(done.returncode)
    return "--reference-set", done.stdout.strip()


def score_rows(data: Path, metrics: tuple[str, ...], base: Path, *more: str) -> Path:
    """Score the rows, and return the file with the scores; resume a run of the same code, otherwise start again.

    The store keeps the judge's answers, so a new start takes seconds.
    """
    wanted = ",".join(metrics)
    # Different metrics or prompts get a different file; otherwise, --resume refuses to mix scores.
    asked = wanted.encode() + b"".join(path.read_bytes() for path in sorted(PROMPTS.glob("*.toml")))
    out = base.with_name(f"{base.name}-{hashlib.blake2b(asked, digest_size=4).hexdigest()}.jsonl")
    run_gradewire(
        *("score", data, "--embedded", "--metrics", wanted, "--out", out, "--fail-on", "never", "--quiet", *more),
        *("--deadline-s", "3600", "--disk-directory", base.parent / "store", resume_or_overwrite(out)),
    )
    return out


if __name__ == "__main__":
    main()
