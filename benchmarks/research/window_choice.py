"""What choosing windows in bf16 saves of `smile:v1` (setting `window_choice`), and that it changes no score.

`python -m benchmarks.research.window_choice --data DIR` scores rows of EVOUNA by two scorers of their own, which take
turns block by block with nothing cached, and prints CPU seconds and the largest difference of a score. With `--words`
answers are so long: rows' answers one after another, beside references of another row.
"""

import argparse
import os
import sys
import time
from pathlib import Path

from benchmarks.common.rows import DATA_DIRECTORY, HEADLINE_MODELS, WARM_UP, items_of, read_lines, sample_rows
from benchmarks.latency.long_answers import LongAnswers

from gradewire import Scorer

CHOICES = ("fp32", "bf16")


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA_DIRECTORY, help="folder with evouna_dev.jsonl")
    parser.add_argument("--rows", type=int, default=300, help="rows scored in all (300)")
    parser.add_argument("--blocks", type=int, default=6, help="blocks in which both take turns (6)")
    parser.add_argument("--words", type=int, default=0, help="words of an answer; 0: answers as they are (0)")
    parser.add_argument("--metric", default="smile:v1", help="what is scored (smile:v1)")
    options = parser.parse_args()
    rows = [row for row in read_lines(options.data / "evouna_dev.jsonl") if row["model"] in HEADLINE_MODELS]
    rows = sample_rows(rows, options.rows, seed=0)
    if options.words:
        answers = LongAnswers(options.data)
        rows = [answers.next(options.words) for _ in range(options.rows)]
    seconds = dict.fromkeys(CHOICES, 0.0)
    scores: dict[str, list[float | None]] = {choice: [] for choice in CHOICES}
    print(f"load average before: {os.getloadavg()[0]:.1f}")
    size = -(-len(rows) // options.blocks)
    opened = {each: Scorer.embedded(window_choice=each, workers=1, disk_directory="") for each in CHOICES}
    try:
        for scorer in opened.values():
            list(scorer.score([WARM_UP], options.metric))
        for start in range(0, len(rows), size):
            for choice, scorer in opened.items():
                began_s = time.process_time()
                for item in scorer.score(items_of(rows[start : start + size]), options.metric):
                    scores[choice] += [result.score for result in item.scores.values()]
                seconds[choice] += time.process_time() - began_s
            sys.stderr.write(f"{min(start + size, len(rows))} of {len(rows)} rows\n")
    finally:
        for scorer in opened.values():
            scorer.close()
    print("| windows chosen in | CPU s | fp32 over it |")
    print("|---|---:|---:|")
    for choice in CHOICES:
        print(f"| {choice} | {seconds[choice]:.2f} | {seconds['fp32'] / seconds[choice]:.2f} |")
    difference = max(abs(a - b) for a, b in zip(*scores.values(), strict=True) if a is not None and b is not None)
    print(f"largest difference of a score: {difference:.1e}; load average after: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
