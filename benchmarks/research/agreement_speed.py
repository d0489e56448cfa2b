"""How long `agree`'s bootstrap takes: 25 000 rows, 10 metrics, 5 000 draws, all 45 paired differences.

Scores are made up: labels with noise, and in each metric other rows failed, so that no two metrics share their rows and
every comparison is computed on its own. `--questions 25000` is the hardest case (every row a question of its own);
`--failed 0` the usual one. Prints time, peak memory and the machine's load.

  python -m benchmarks.research.agreement_speed
  python -m benchmarks.research.agreement_speed --statistics all --questions 5000 --failed 0
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from itertools import combinations

import numpy as np

from gradewire_stats.agreement import ALL_STATISTICS, JudgedRows, agreement


def made_up(rows: int, metrics: int, questions: int, failed: float) -> JudgedRows:
    """Labels and noisy scores; `failed` is the share of rows without a score, other rows in each metric."""
    random = np.random.default_rng(0)
    labels = (random.random(rows) < 0.6).astype(np.float64)
    scores = {f"metric {number}": labels * 0.3 + random.random(rows) * (0.5 + number / 20) for number in range(metrics)}
    for column in scores.values():
        column[random.random(rows) < failed] = np.nan
    return JudgedRows(
        scores=scores,
        verdicts={name: np.where(np.isnan(column), np.nan, column >= 0.5) for name, column in scores.items()},
        labels=labels,
        datasets=[("nq", "tq")[row % questions % 2] for row in range(rows)],
        models=[f"model {row * 5 // rows}" for row in range(rows)],
        questions=[f"question {row % questions}" for row in range(rows)],
    )


def main() -> None:
    """Times one report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=25_000)
    parser.add_argument("--metrics", type=int, default=10)
    parser.add_argument("--questions", type=int, default=25_000)
    parser.add_argument("--failed", type=float, default=0.02, help="share of rows that each metric failed on")
    parser.add_argument("--resamples", type=int, default=5000)
    parser.add_argument("--statistics", choices=["pearson", "all"], default="pearson")
    options = parser.parse_args()
    rows = made_up(options.rows, options.metrics, options.questions, options.failed)
    pairs = list(combinations(rows.scores, 2))
    chosen = {"statistics": ALL_STATISTICS} if options.statistics == "all" else {"statistics": ("pearson",)}
    if options.statistics == "pearson":
        chosen["compare_statistics"] = ("pearson",)
    began, processor = time.perf_counter(), time.process_time()
    report = agreement(rows, compare=pairs, resamples=options.resamples, **chosen)
    wall, processor = time.perf_counter() - began, time.process_time() - processor
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    load = " ".join(f"{figure:.1f}" for figure in os.getloadavg())
    print(
        f"{options.rows} rows, {options.questions} questions, {len(rows.scores)} metrics, {len(pairs)} pairs, "
        f"{len(report.metrics[0].cells)} lines each, {options.resamples} draws, {options.statistics}, "
        f"{options.failed:.0%} failed: {wall:.1f} s ({processor:.1f} s of processor), "
        f"{peak_mib:.0f} MiB; load {load} on {os.cpu_count()} cores"
    )


if __name__ == "__main__":
    main()
