"""Compare metrics with the labels in examples/visual_questions.jsonl; write benchmarks/results/visual-questions.md.

Judges see either the annotators' votes, or every distinct answer once, as in data sets without votes. Scores are stored
in --results, so an interrupted run resumes.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.common.measurements import write_block
from benchmarks.common.rows import Row, read_lines
from benchmarks.common.servers import run_gradewire
from benchmarks.judges.agreement import ROOT, judge_environment, score_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ROWS: Final = ROOT / "examples" / "visual_questions.jsonl"
HALVES: Final = {"held_out": "The half for reports", "development": "The half for choices"}
PLAIN: Final = (
    *("smile:v1", "smile:fast", "correctness", "sbert", "bertscore", "rouge_l", "exact_match", "easy_match"),
    *("vqa_accuracy", "vqa_accuracy?normalise=always", "soft_vqa_accuracy"),
)
# The tables compare all metrics with the first. Each metric is one run of the command, so that metrics do not evict
# each other's prefixes and an interruption loses little.
JUDGED: Final = (
    *("lave", "lave:paper", "lave?caption=true", "lave:paper?caption=true"),
    *("judge_verdict", "judge_verdict?caption=true", "judge_grade", "judge_similarity"),
)
CHOSEN: Final = ("lave?shots=0", "lave?binary=judge", "lave?reference_filter=0", "lave?reference_filter=1")
CHOICES: Final = ("auto", "closest", "all")
ALIASES: Final = tuple(f"{metric}?references={choice}" for metric in ("lave", "judge_verdict") for choice in CHOICES)
BY_GROUP: Final = ("smile", "correctness", "lave", "lave:paper", "judge_verdict")
COMPARED: Final = ("auc", "accuracy")


def main() -> None:
    """Score missing rows, compute the tables and replace the document's blocks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results" / "visual")
    parser.add_argument("--document", type=Path, default=ROOT / "benchmarks" / "results" / "visual-questions.md")
    parser.add_argument("--judges", type=Path, help="directory of built judges; default: the usual one")
    parser.add_argument("--half", choices=tuple(HALVES), action="append", help="use only this half; may be repeated")
    options = parser.parse_args()
    judge_environment(options.judges)
    options.results.mkdir(parents=True, exist_ok=True)
    load = os.getloadavg()[0]
    for half in options.half or HALVES:
        rows = [row for row in read_lines(ROWS) if row["half"] == half]
        blocks = [f"{HALVES[half]}: {len(rows)} answers; 2 cores, load {load:.1f} before."]
        judged = JUDGED if half == "held_out" else JUDGED + CHOSEN
        blocks += _with_votes(rows, judged, options.results / half)
        blocks += _with_aliases(rows, options.results / half)
        write_block(options.document, f"visual-{half.replace('_', '-')}", "\n\n".join(blocks))


def _with_votes(rows: Sequence[Row], judged: Sequence[str], base: Path) -> Iterable[str]:
    """Yield tables of all metrics compared with `lave`, and of accuracy by failure mode."""
    data = _written(rows, base.with_name(f"{base.name}.rows.jsonl"))
    scores = [score_rows(data, metrics, base) for metrics in (PLAIN, *((metric,) for metric in judged))]
    pairs = [(metric, judged[0]) for metric in (*judged[1:], "smile")]
    found, table = _agreement(data, scores, pairs, base)
    return [table, _by_group(found)]


def _with_aliases(rows: Sequence[Row], base: Path) -> Iterable[str]:
    """Yield a table of the ways to show references, with every distinct answer once."""
    base = base.with_name(f"{base.name}-aliases")
    data = _written([{**row, "references": distinct(row["references"])} for row in rows], base.with_suffix(".jsonl"))
    pairs = [(metric, ALIASES[place - place % 3]) for place, metric in enumerate(ALIASES) if place % 3]
    _, table = _agreement(data, [score_rows(data, (metric,), base) for metric in ALIASES], pairs, base)
    return ["The same answers, every distinct reference once, so that there are no votes:", table]


def distinct(references: Iterable[str]) -> list[str]:
    """Return each text once, in its first spelling; ignore case and white space."""
    first: dict[str, str] = {}
    for text in references:
        first.setdefault(" ".join(text.casefold().split()), text)
    return list(first.values())


def _agreement(
    data: Path, scores: Sequence[Path], pairs: Iterable[tuple[str, str]], base: Path
) -> tuple[dict[str, Any], str]:
    """Return the result of `gradewire agree` as JSON, and its tables as Markdown."""
    result = base.with_name(f"{base.name}.agree.json")
    markdown = result.with_suffix(".md")
    compared = [word for pair in pairs for word in ("--compare", *pair)]
    run_gradewire(
        *("agree", data, *(f"--scores={path}" for path in scores), "--statistics", "auc,pearson,accuracy"),
        *(*compared, "--compare-statistics", ",".join(COMPARED), "--group-by", "group"),
        *("--json", result, "--markdown", markdown),
    )
    found: dict[str, Any] = json.loads(result.read_text("utf-8"))
    sections = markdown.read_text("utf-8").split("**")
    # After an empty first part, titles and bodies alternate.
    told = dict(zip(sections[1::2], sections[2::2], strict=True))
    shown = [title for title in told if title.startswith(("All rows", "Paired differences"))]
    return found, "\n\n".join(f"**{title}**{told[title].split('```')[0].rstrip()}" for title in shown)


def _by_group(found: dict[str, Any]) -> str:
    shares: dict[str, dict[str, float]] = {}
    for metric in BY_GROUP:
        for cell in found["metrics"][metric]["cells"]:
            if cell["level"] == "cell":
                shares.setdefault(cell["dataset"], {})[metric] = cell["accuracy"]["value"]
    lines = [f"| failure mode | {' | '.join(BY_GROUP)} |", f"|---|{'---:|' * len(BY_GROUP)}"]
    for group, row in sorted(shares.items()):
        lines.append(f"| {group.replace('_', ' ')} | {' | '.join(f'{row[metric]:.2f}' for metric in BY_GROUP)} |")
    return "\n".join(["**Accuracy by failure mode, 20 answers each**", "", *lines])


def _written(rows: Iterable[Row], path: Path) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return path


if __name__ == "__main__":
    main()
