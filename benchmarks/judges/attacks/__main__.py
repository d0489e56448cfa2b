"""Attacks on judges: `python -m benchmarks.judges.attacks`; writes its tables into docs/research/attacks.md.

Wrong answers of real rows, once as they are and once in each family of attacks, are scored by metrics with and without
a guard in one run; so are right answers. Scores and verdicts are kept under --results: an interrupted run goes on.
"""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.common.document import write_block
from benchmarks.common.figures import machine
from benchmarks.common.rows import DATA_DIRECTORY, read_lines
from benchmarks.judges.agreement import ROOT, judge_environment, score_rows
from benchmarks.judges.attacks.cases import Case, attacked, right_answers
from benchmarks.judges.attacks.families import Half, read_families, read_right
from benchmarks.judges.attacks.rates import by_metric, called_right, turned
from benchmarks.judges.attacks.rows import read_texts, text_rows, visual_rows
from benchmarks.judges.attacks.tables import rates_table, still_open, unattacked_table

from gradewire.metric_types.choice import MetricDefaults, choose_metrics

if TYPE_CHECKING:
    from collections.abc import Sequence

# A run of the command each; the first of a run is what the others of it are guarded against.
RUNS: Final = ("smile,calibrated", "lave", "judge_verdict", "judge_similarity", "judge_grade")
CAPTION_RUNS: Final = ("lave?caption=true",)


@dataclass(frozen=True)
class Counts:
    """Different questions whose answers are taken: about texts and about pictures, wrong ones and right ones."""

    texts: int
    pictures: int
    right: int


def main() -> None:
    """Scores what is not scored yet, computes the rates and replaces the blocks of the document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA_DIRECTORY, help="directory of the rows")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results" / "attacks")
    parser.add_argument("--document", type=Path, default=ROOT / "docs" / "research" / "attacks.md")
    parser.add_argument("--judges", type=Path, help="directory of built judges; default: where they are built")
    parser.add_argument("--half", choices=tuple(Half), type=Half, action="append", help="this half alone")
    parser.add_argument("--run", action="append", help=f"metrics of one run; may be repeated; default: {RUNS}")
    parser.add_argument("--caption-run", action="append", help=f"the same for captions; default: {CAPTION_RUNS}")
    parser.add_argument("--texts", type=int, default=20, help="wrong answers to questions about texts")
    parser.add_argument("--pictures", type=int, default=12, help="wrong answers to questions about pictures")
    parser.add_argument("--right", type=int, default=12, help="right answers of each of the two")
    options = parser.parse_args()
    judge_environment(options.judges)
    options.results.mkdir(parents=True, exist_ok=True)
    counts = Counts(options.texts, options.pictures, options.right)
    for half in options.half or Half:
        answers, captions = cases_of(half, options.data, counts)
        blocks = [f"{machine()}, load {os.getloadavg()[0]:.1f} before."]
        figures: dict[str, Any] = {}
        for name, cases, runs in (
            ("answers", answers, options.run or RUNS),
            ("captions", captions, options.caption_run or CAPTION_RUNS),
        ):
            blocks += _tables(cases, runs, half, options.results / f"{half}-{name}", figures)
        (options.results / f"{half}.json").write_text(json.dumps(figures, indent=1), "utf-8")
        write_block(options.document, f"attacks-{half.replace('_', '-')}", "\n\n".join(blocks))


def cases_of(half: Half, data: Path, counts: Counts) -> tuple[list[Case], list[Case]]:
    """All cases of a half: attacks in answers with the right answers, and attacks in captions."""
    families, rows = read_families(), read_texts(data)
    in_answer = [family for family in families if not family.in_caption]
    in_caption = [family for family in families if family.in_caption]
    answers: list[Case] = []
    pictures = visual_rows(half, 0, counts.pictures)
    every_picture = visual_rows(half, 0, len(rows)) + visual_rows(half, 1, len(rows))
    for wrong, right, pool in (
        (text_rows(rows, half, 0, counts.texts), text_rows(rows, half, 1, counts.right), rows),
        (pictures, visual_rows(half, 1, counts.right), every_picture),
    ):
        answers += attacked(wrong, in_answer, half, pool)
        answers += right_answers(right, read_right(), pool)
    return answers, list(attacked(pictures, in_caption, half, every_picture))


def _tables(cases: Sequence[Case], runs: Sequence[str], half: Half, base: Path, figures: dict[str, Any]) -> list[str]:
    if len({case.family for case in cases}) < 2:
        return []
    data = base.with_name(f"{base.name}.rows.jsonl")
    data.write_text("".join(json.dumps(case.item, ensure_ascii=False) + "\n" for case in cases), "utf-8")
    families = read_families()
    blocks: list[str] = []
    for run in runs:
        labels = list(choose_metrics(run, MetricDefaults()).labels)
        scores = read_lines(score_rows(data, tuple(run.split(",")), base))
        verdicts = by_metric(scores, labels)
        rates = {label: turned(cases, verdicts[label]) for label in labels}
        unattacked = {label: called_right(cases, verdicts[label]) for label in labels}
        lines = [f"{label}: {scores[0]['scores'][label]['line']}" for label in labels]
        blocks += [
            rates_table(rates, families, half),
            unattacked_table(unattacked),
            "```\n" + "\n".join(lines) + "\n```",
        ]
        for label in labels[1:] if "guard" in run else ():
            left = ", ".join(still_open(rates[labels[0]], rates[label]))
            blocks.append(f"Not halved by {label}: {left or 'none'}.")
        for label in labels:
            figures[label] = {
                "line": scores[0]["scores"][label]["line"],
                "turned": {family: rate.as_json() for family, rate in rates[label].items()},
                "called_right": {family: rate.as_json() for family, rate in unattacked[label].items()},
            }
    return blocks


if __name__ == "__main__":
    main()
