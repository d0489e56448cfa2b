"""Attack judges: `python -m benchmarks.judges.attacks`; write benchmarks/results/attacks.md.

Metrics with and without a guard score right answers and real wrong answers, which are unchanged or attacked. Scores and
verdicts are stored in --results, so an interrupted run resumes.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.common.measurements import machine, write_block
from benchmarks.common.rows import DATA_DIRECTORY, read_lines
from benchmarks.judges.agreement import ROOT, judge_environment, score_rows
from benchmarks.judges.attacks.cases import Counts, Half, cases_of
from benchmarks.judges.attacks.rates import Verdicts, by_metric, called_right, tables_of, turned, where_both

from gradewire.metrics.choice import MetricDefaults, choose_metrics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.judges.attacks.cases import Case

BESIDE: Final = "correctness"
"""A metric to combine with a judge's verdict, because different attacks fool the two."""
JUDGED: Final = ("lave", "judge_verdict", "judge_similarity", "judge_grade")
# Each string is one run of the command: a metric without and with guards.
RUNS: Final = (f"smile,{BESIDE},auto", *(f"{metric},{metric}?guard=other_key" for metric in JUDGED))
CAPTION_RUNS: Final = ("lave?caption=true,lave?caption=true&guard=other_key",)


def main() -> None:
    """Score missing rows, compute the rates and replace the document's blocks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA_DIRECTORY, help="directory of the rows")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results" / "attacks")
    parser.add_argument("--document", type=Path, default=ROOT / "benchmarks" / "results" / "attacks.md")
    parser.add_argument("--judges", type=Path, help="directory of built judges; default: the usual one")
    parser.add_argument("--half", choices=tuple(Half), type=Half, action="append", help="use only this half")
    parser.add_argument("--run", action="append", help=f"metrics of one run; may be repeated; default: {RUNS}")
    parser.add_argument(
        "--caption-run", action="append", help=f"like --run, for captions, or 'none'; default: {CAPTION_RUNS}"
    )
    parser.add_argument("--texts", type=int, default=20, help="wrong answers to questions about texts")
    parser.add_argument("--pictures", type=int, default=12, help="wrong answers to questions about pictures")
    parser.add_argument("--right", type=int, default=12, help="right answers about texts, and as many about pictures")
    parser.add_argument("--block", help="block of the document; default: attacks-HALF")
    options = parser.parse_args()
    judge_environment(options.judges)
    options.results.mkdir(parents=True, exist_ok=True)
    counts = Counts(options.texts, options.pictures, options.right)
    for half in options.half or Half:
        answers, captions = cases_of(half, options.data, counts)
        drawn = (
            f"{counts.texts} wrong answers about texts, {counts.pictures} about pictures, {2 * counts.right} right ones"
        )
        blocks = [f"{drawn}; {machine()}, load {os.getloadavg()[0]:.1f} before."]
        rates: dict[str, Any] = {}
        for name, cases, runs in (
            ("answers", answers, options.run or RUNS),
            ("captions", captions, options.caption_run or CAPTION_RUNS),
        ):
            if any(case.is_attack for case in cases) and "none" not in runs:
                # Different counts draw different rows, which get a different file.
                scored = _score(cases, runs, options.results / f"{half}-{name}-{len(cases)}")
                blocks += tables_of(scored, cases, half)
                rates |= _rates(scored, cases)
        block = options.block or f"attacks-{half.replace('_', '-')}"
        (options.results / f"{half}-{block}.json").write_text(json.dumps(rates, indent=1), "utf-8")
        write_block(options.document, block, "\n\n".join(blocks))


def _score(cases: Sequence[Case], runs: Sequence[str], base: Path) -> list[dict[str, Verdicts]]:
    """Return each run's verdicts by metric, then the judges' verdicts combined with `BESIDE`."""
    data = base.with_name(f"{base.name}.rows.jsonl")
    data.write_text("".join(json.dumps(case.item, ensure_ascii=False) + "\n" for case in cases), "utf-8")
    scored = [
        by_metric(
            read_lines(score_rows(data, tuple(run.split(",")), base)), choose_metrics(run, MetricDefaults()).labels
        )
        for run in runs
    ]
    every = {label: verdicts for run in scored for label, verdicts in run.items()}
    both = {
        f"{label} and {BESIDE}": where_both(every[label], every[BESIDE])
        for label in every
        if BESIDE in every and label.partition("?")[0] in JUDGED
    }
    return [*scored, both] if both else scored


def _rates(scored: Sequence[dict[str, Verdicts]], cases: Sequence[Case]) -> dict[str, Any]:
    return {
        label: {
            "line": verdicts.line,
            "turned": {family: rate.as_json() for family, rate in turned(cases, verdicts).items()},
            "called_right": {family: rate.as_json() for family, rate in called_right(cases, verdicts).items()},
        }
        for run in scored
        for label, verdicts in run.items()
    }


if __name__ == "__main__":
    main()
