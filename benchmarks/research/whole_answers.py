"""Agreement with people where the answer is a small part of a long text: SMILE's presets that read some or all of it.

`python -m benchmarks.research.whole_answers --data DIR` takes EVOUNA's rows of gpt35 and gpt4, puts each answer at a
drawn place among answers to other questions, so that the whole has --words words (400), and keeps its label: what is
said beside it answers something else. It prints Pearson's correlation with the labels and the accuracy of verdicts,
with the answers alone and in the long text, and paired bootstrap intervals of what `whole` gains.
"""

import argparse
import os
import random
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from benchmarks.common.rows import DATA_DIRECTORY, Row, read_rows, sample_rows
from benchmarks.research.window_vectors import Graded

from gradewire import Scorer
from gradewire_stats.agreement import JudgedRows, agreement
from gradewire_stats.calibration.labelled_rows import question_key

ROWS_AT_ONCE = 20
PRESETS = ("whole", "v1", "fast", "one_pass")


def surrounded(row: Row, others: Sequence[Row], words: int, source: random.Random) -> Row:
    """The row with its answer at a drawn place among answers to other questions that say no reference of it."""
    own = row["prediction"].split()
    references = [reference.casefold() for reference in row["references"]]
    around: list[str] = []
    while len(around) + len(own) < words:
        other = source.choice(others)
        text = other["prediction"]
        if other["question"] != row["question"] and not any(each in text.casefold() for each in references):
            around += text.split()
    around = around[: max(0, words - len(own))]
    place = source.randint(0, len(around))
    return {**row, "prediction": " ".join((*around[:place], *own, *around[place:]))}


def print_agreement(name: str, rows: Sequence[Row], scorer: Scorer, resamples: int) -> None:
    """A line for each preset."""
    graded = {preset: Graded.of(rows, preset, scorer, ROWS_AT_ONCE) for preset in PRESETS}
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
        compare=[(PRESETS[0], preset) for preset in PRESETS[1:]],
        compare_statistics=("pearson", "auc"),
        statistics=("pearson", "auc"),
        resamples=resamples,
    )
    gains = {(pair.baseline, pair.statistic): pair.mean_of_cells for pair in report.comparisons}
    for metric in report.metrics:
        cells = [f"{metric.headline[statistic].value:.3f}" for statistic in ("pearson", "auc")]
        for statistic in ("pearson", "auc"):
            gain = gains.get((metric.metric, statistic))
            cells.append(f"{gain.value:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]" if gain else "")
        right = np.mean(graded[metric.metric].verdicts == (labels >= 0.5))
        print(f"| {name} | `{metric.metric}` | {' | '.join(cells)} | {right:.3f} |", flush=True)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA_DIRECTORY, help="folder with evouna_dev.jsonl")
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--words", type=int, default=400, help="of a long text")
    parser.add_argument("--resamples", type=int, default=2_000)
    options = parser.parse_args()
    every = read_rows(options.data / "evouna_dev.jsonl")
    rows = sample_rows(every, options.rows, seed=0)
    source = random.Random(0)  # noqa: S311 - places, not secrets
    long = [surrounded(row, every, options.words, source) for row in rows]
    print(f"{len(rows)} rows; load average before {os.getloadavg()[0]:.1f}\n")
    print("| answers | preset | Pearson | AUC | `whole` minus it, Pearson | the same, AUC | accuracy |")
    print("|---|---|---|---|---|---|---|")
    with Scorer.embedded(disk_directory="") as scorer:
        for name, each in (("alone", rows), (f"among {options.words} words", long)):
            print_agreement(name, each, scorer, options.resamples)
            sys.stderr.write(f"{name}: done\n")
    print(f"\nload average after {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
