"""SMILE's keyword windows embedded alone (`v1`), shortlisted (`fast`) or seen in context only (`one_pass`).

`python -m benchmarks.research.window_vectors --data DIR --model NAME`, for any built encoder, prints agreement with
people (mean over data sets and models under test of Pearson's correlation, by split of the questions and for NQ301,
with paired bootstrap intervals over questions), how far the keyword term moves, and what a cold item costs; presets
take turns block by block.
"""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from benchmarks.common.rows import DATA_DIRECTORY, HEADLINE_MODELS, WARM_UP, Row, items_of, read_lines, sample_rows
from numpy.typing import NDArray

from gradewire import Scorer, SmileParts, Status
from gradewire_models.repository.built import default_repository
from gradewire_stats.agreement import JudgedRows, agreement
from gradewire_stats.calibration.labelled_rows import half_of, question_key

PRESETS = ("v1", "fast", "one_pass")
ROWS_AT_ONCE = 200
SAME_KEYWORD = 1e-3


@dataclass(frozen=True)
class Graded:
    """What one preset said of the rows.

    Attributes:
        scores: float64[rows].
        keywords: float64[rows], the keyword term of the reference that gave the score.
        verdicts: bool[rows].
    """

    scores: NDArray[np.float64]
    keywords: NDArray[np.float64]
    verdicts: NDArray[np.bool_]

    @classmethod
    def of(cls, rows: Sequence[Row], preset: str, scorer: Scorer, rows_at_once: int = ROWS_AT_ONCE) -> Self:
        """Scores the rows; ends the program where one fails."""
        scores, keywords, verdicts = [], [], []
        for start in range(0, len(rows), rows_at_once):
            for item in scorer.score(items_of(rows[start : start + rows_at_once]), f"smile:{preset}"):
                (result,) = item.scores.values()
                if result.status is not Status.OK or result.score is None:
                    raise SystemExit(f"{item.id}: {result.status.name} {result.message}")
                assert isinstance(result.parts, SmileParts)
                scores.append(result.score)
                keywords.append(result.parts.keyword)
                verdicts.append(bool(result.correct))
        return cls(np.array(scores), np.array(keywords), np.array(verdicts))


def print_tables(evouna: list[Row], others: list[Row], resamples: int, options: dict[str, object]) -> None:
    """Agreement of all presets on all rows, on either split of the questions, and on the other file's."""
    every = [*evouna, *others]
    graded = {}
    with Scorer.embedded(**options) as scorer:
        for preset in PRESETS:
            graded[preset] = Graded.of(every, preset, scorer)
            sys.stderr.write(f"{preset}: {len(every)} rows scored\n")
    halves = np.array([half_of(row["question"]) for row in every])
    from_evouna = np.arange(len(every)) < len(evouna)
    print("| rows | | preset | Pearson | minus `v1` | same keyword term | its mean move | same verdict | accuracy |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, chosen in (
        (f"EVOUNA dev, {' and '.join(HEADLINE_MODELS)}", from_evouna),
        ("its fit split", from_evouna & (halves == "a")),
        ("its held-out split", from_evouna & (halves == "b")),
        ("NQ301 without shared questions", ~from_evouna),
    ):
        rows = [row for row, wanted in zip(every, chosen, strict=True) if wanted]
        part = {
            preset: Graded(all_.scores[chosen], all_.keywords[chosen], all_.verdicts[chosen])
            for preset, all_ in graded.items()
        }
        print_agreement(name, rows, part, resamples)


def print_agreement(name: str, rows: Sequence[Row], graded: dict[str, Graded], resamples: int) -> None:
    """Prints a line for each preset on one set of rows."""
    first, *others = PRESETS
    labels = np.array([row["label"] for row in rows], float)
    report = agreement(
        JudgedRows(
            scores={preset: own.scores for preset, own in graded.items()},
            verdicts={preset: own.verdicts.astype(float) for preset, own in graded.items()},
            labels=labels,
            datasets=[row["dataset"] for row in rows],
            models=[row["model"] for row in rows],
            questions=[question_key(row["question"]) for row in rows],
        ),
        compare=[(preset, first) for preset in others],
        compare_statistics=("pearson",),
        statistics=("pearson",),
        resamples=resamples,
    )
    gains = {pair.metric: pair.mean_of_cells for pair in report.comparisons}
    base = graded[first]
    for metric in report.metrics:
        own, gain = graded[metric.metric], gains.get(metric.metric)
        gap = np.abs(own.keywords - base.keywords)
        print(
            f"| {name} | {len(rows)} | `{metric.metric}` | {metric.headline['pearson'].value:.4f} "
            f"| {f'{gain.value:+.4f} [{gain.low:+.4f}, {gain.high:+.4f}]' if gain else ''} "
            f"| {np.mean(gap < SAME_KEYWORD):.3f} | {gap.mean():.4f} "
            f"| {np.mean(own.verdicts == base.verdicts):.3f} | {np.mean(own.verdicts == (labels >= 0.5)):.3f} |",
            flush=True,
        )


def print_cost(rows: Sequence[Row], blocks: int, options: dict[str, object]) -> None:
    """Cold seconds and texts of every preset, with references that are new and with prepared ones."""
    load, size = os.getloadavg()[0], -(-len(rows) // blocks)
    ways = [Way(preset, prepared=prepared) for preset in PRESETS for prepared in (False, True)]
    with ExitStack() as scorers:
        fresh = [scorers.enter_context(Scorer.embedded(**options)) for _ in ways]
        for way, scorer in zip(ways, fresh, strict=True):
            scorer.score([WARM_UP], f"smile:{way.preset}")
        pairs = list(zip(ways, fresh, strict=True))
        for number, start in enumerate(range(0, len(rows), size)):
            for way, scorer in pairs if number % 2 == 0 else pairs[::-1]:
                way.run(rows[start : start + size], scorer)
    print(f"\n{len(rows)} rows, cold; load average before {load:.2f}, after {os.getloadavg()[0]:.2f}\n")
    print("| preset | references | texts | wall s | CPU s | CPU of `v1` over it |\n|---|---|---|---|---|---|")
    first = {way.prepared: way.cpu_s for way in ways if way.preset == PRESETS[0]}
    for way in sorted(ways, key=lambda way: way.prepared):
        print(
            f"| `{way.preset}` | {'prepared' if way.prepared else 'new'} | {way.texts} | {way.wall_s:.2f} "
            f"| {way.cpu_s:.2f} | {first[way.prepared] / way.cpu_s:.2f} |"
        )


class Way:
    """A preset and the time it has taken; with `prepared`, references have their vectors before the clock starts."""

    def __init__(self, preset: str, *, prepared: bool) -> None:
        self.preset, self.prepared = preset, prepared
        self.wall_s = self.cpu_s = 0.0
        self.texts = 0

    def run(self, rows: Sequence[Row], scorer: Scorer) -> None:
        """Scores one block, and adds up what that took."""
        metric = f"smile:{self.preset}"
        if self.prepared:
            scorer.prepare([{name: row[name] for name in ("question", "references")} for row in rows], metric)
        items = items_of(rows)
        wall, cpu = time.perf_counter(), time.process_time()
        report = scorer.score(items, metric)
        self.wall_s += time.perf_counter() - wall
        self.cpu_s += time.process_time() - cpu
        self.texts += sum(max(result.cache_hits.computed for result in item.scores.values()) for item in report)


def main() -> None:
    """Scores the rows with all presets and prints both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA_DIRECTORY, help="directory of the labelled rows")
    parser.add_argument("--model", default="all-MiniLM-L6-v2")
    parser.add_argument("--model-repository", type=Path, default=default_repository())
    parser.add_argument("--resamples", type=int, default=2000)
    parser.add_argument("--cost-rows", type=int, default=500, help="0: no second table")
    parser.add_argument("--cost-only", action="store_true", help="the second table alone")
    parser.add_argument("--blocks", type=int, default=10)
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    labelled = [row for row in read_lines(given.data / "evouna_dev.jsonl") if row["prediction"].strip()]
    evouna = [row for row in labelled if row["model"] in HEADLINE_MODELS]
    seen = {question_key(row["question"]) for row in labelled}
    others = [
        {**row, "model": ""}
        for row in read_lines(given.data / "nq301_human.jsonl")
        if row["prediction"].strip() and question_key(row["question"]) not in seen
    ]
    options: dict[str, object] = {
        "default_model": given.model,
        "model_repository": given.model_repository,
        "disk_directory": "",
        "workers": given.workers,
    }
    if not given.cost_only:
        print_tables(evouna, others, given.resamples, options)
    if given.cost_rows:
        print_cost(sample_rows(evouna, given.cost_rows, 0), given.blocks, options)


if __name__ == "__main__":
    main()
