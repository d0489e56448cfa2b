"""Agreement of SMILE's presets with people by the length of the answer; writes the table of docs/research.

`python -m benchmarks.agreement.lengths --data DIR` scores EVOUNA's rows and those of NQ301 (without the questions that
EVOUNA's dev part has) with all presets, and compares each with `v1` on the answers of each length: Pearson's r and
accuracy at 2/3 over the rows of one length, with paired bootstrap intervals over questions. Scores are kept under
--results: an interrupted run goes on. The rows are not part of the project.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from benchmarks.common.document import write_block
from benchmarks.common.kept_scores import note_sources, same_sources
from benchmarks.common.rows import DATA_DIRECTORY, Row, items_of, read_lines

from gradewire import Scorer
from gradewire_stats.agreement import agreement
from gradewire_stats.agreement_table import JudgedRows
from gradewire_stats.calibration.labelled_rows import question_key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gradewire_stats.agreement_table import AgreementReport

ROOT: Final = Path(__file__).resolve().parents[2]
DOCUMENT: Final = ROOT / "docs" / "research" / "windows-in-context.md"
PRESETS: Final = ("v1", "fast", "one_pass")
SETS: Final = ("EVOUNA NQ", "EVOUNA TQ", "NQ301")
STATISTICS: Final = ("pearson", "auc", "accuracy")
BOUNDS: Final = (8, 24, 60)
ROWS_AT_ONCE: Final = 100
CORRECT_FROM: Final = 2 / 3


@dataclass(frozen=True)
class Bin:
    """Answers of one length.

    Attributes:
        name: For the table.
        rows: Places of the rows.
    """

    name: str
    rows: Sequence[int]


def bins_of(rows: Sequence[Row]) -> list[Bin]:
    """The rows by words of the answer, all of them last."""
    lengths = np.array([len(row["prediction"].split()) for row in rows])
    edges = [0, *BOUNDS, int(lengths.max(initial=BOUNDS[-1] + 1))]
    found = []
    for low, high in pairwise(edges):
        name = f"at most {high}" if not low else f"more than {low}" if low == BOUNDS[-1] else f"{low + 1} to {high}"
        found.append(Bin(name, np.flatnonzero((lengths > low) & (lengths <= high)).tolist()))
    return [*found, Bin("all", range(len(rows)))]


def row_sets(data: Path) -> dict[str, list[Row]]:
    """The labelled rows that have an answer, by set: those of all five models of EVOUNA, and NQ301's."""
    evouna = [row for row in read_lines(data / "evouna_dev.jsonl") if row["prediction"].strip()]
    seen = {question_key(row["question"]) for row in evouna}
    others = [
        row
        for row in read_lines(data / "nq301_human.jsonl")
        if row["prediction"].strip() and question_key(row["question"]) not in seen
    ]
    by_dataset = {f"EVOUNA {name.upper()}": [row for row in evouna if row["dataset"] == name] for name in ("nq", "tq")}
    return {**by_dataset, "NQ301": others}


def scored(rows: Sequence[Row], kept: Path) -> Mapping[str, np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """Scores of each preset, NaN where a row failed; taken from `kept` as far as it goes, and written into it."""
    if kept.exists() and not same_sources(kept):
        raise SystemExit(f"{kept} was written by other code of the metrics: remove it to score again")
    lines = [json.loads(line) for line in kept.read_text("utf-8").splitlines()] if kept.exists() else []
    note_sources(kept)
    with Scorer.embedded(disk_directory="", workers=1) as scorer, kept.open("a", encoding="utf-8") as file:
        while len(lines) < len(rows):
            part = items_of(rows[len(lines) : len(lines) + ROWS_AT_ONCE])
            for item in scorer.score(part, [f"smile:{preset}" for preset in PRESETS]):
                lines.append({"id": item.id, "scores": [each.score for each in item.scores.values()]})
                file.write(json.dumps(lines[-1]) + "\n")
            file.flush()
            sys.stderr.write(f"{len(lines)} of {len(rows)} rows\n")
    if [line["id"] for line in lines] != [row["id"] for row in rows]:
        raise SystemExit(f"{kept} holds the scores of other rows: remove it to score again")
    table = np.array([line["scores"] for line in lines], np.float64)
    return {f"smile:{preset}": table[:, place] for place, preset in enumerate(PRESETS)}


def judged(rows: Sequence[Row], scores: Mapping[str, np.ndarray[tuple[int], np.dtype[np.float64]]]) -> JudgedRows:
    """Rows of one length, as one cell."""
    return JudgedRows(
        scores=scores,
        verdicts={
            name: np.where(np.isnan(own), np.nan, (own >= CORRECT_FROM).astype(np.float64))
            for name, own in scores.items()
        },
        labels=np.array([row["label"] for row in rows], np.float64),
        datasets=[""] * len(rows),
        models=[""] * len(rows),
        questions=[question_key(row["question"]) for row in rows],
    )


def lines_of(name: str, length: Bin, report: AgreementReport) -> list[str]:
    """The table's lines of the answers of one length."""
    gains = {(pair.metric, pair.statistic): pair.all_rows for pair in report.comparisons}
    found = []
    for place, metric in enumerate(report.metrics):
        cells = [name, length.name, f"{len(length.rows)}"] if place == 0 else ["", "", ""]
        cells.append(f"`{metric.metric.removeprefix('smile:')}`")
        for statistic in STATISTICS:
            gain, value = gains.get((metric.metric, statistic)), metric.cells[-1].estimates[statistic].value
            cells.append("" if math.isnan(value) else f"{value:.4f}")
            shown = gain is not None and not math.isnan(gain.low)
            cells.append(f"{gain.value:+.4f} [{gain.low:+.4f}, {gain.high:+.4f}]" if gain and shown else "")
        found.append(f"| {' | '.join(cells)} |".replace("-", "\N{MINUS SIGN}"))
    return found


def main() -> None:
    """Scores, compares, and replaces the block of the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA_DIRECTORY, help="directory of the labelled rows")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results" / "agreement")
    parser.add_argument("--document", type=Path, default=DOCUMENT)
    parser.add_argument("--resamples", type=int, default=2000)
    parser.add_argument("--only", action="append", choices=SETS, help="one set of rows; may be repeated")
    options = parser.parse_args()
    options.results.mkdir(parents=True, exist_ok=True)
    sets = row_sets(options.data)
    lines = [
        "| rows | words of the answer | | preset | Pearson | minus `v1` | AUC | minus `v1` | accuracy | minus `v1` |",
        "|---|---|---:|---|---|---|---|---|---|---|",
    ]
    for name in options.only or SETS:
        rows = sets[name]
        scores = scored(rows, options.results / f"lengths-{name.lower().replace(' ', '-')}.jsonl")
        for length in bins_of(rows):
            if not length.rows:
                continue
            part = judged([rows[place] for place in length.rows], {n: own[length.rows] for n, own in scores.items()})
            first, *rest = part.scores
            compare = [(each, first) for each in rest]
            report = agreement(
                part, compare=compare, compare_statistics=STATISTICS, statistics=STATISTICS, resamples=options.resamples
            )
            lines += lines_of(name, length, report)
    write_block(options.document, "lengths", "\n".join(lines))


if __name__ == "__main__":
    main()
