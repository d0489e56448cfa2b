"""Count how often answers contain, contradict or lack the references' values, and how often such answers are right.

Writes benchmarks/results/values.md.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.common.measurements import write_block
from benchmarks.common.rows import DATA_DIRECTORY, read_lines

from gradewire_server.metrics.values.matching import ValueMatch, ValueMatcher
from gradewire_stats.calibration.labelled_rows import half_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from benchmarks.common.rows import Row

DOCUMENT = Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "values.md"
NO_VALUES = "no reference has values"
OUTCOMES = ("found", "coarser", "part found", "missing", "contradicted")
MIXED = "a reference has none, and "


def outcome(matches: list[ValueMatch]) -> str:
    """Return the verdict on an answer by the values in the reference that matches best."""
    with_values = [match for match in matches if match.wanted]
    if not with_values:
        return NO_VALUES
    best = max(with_values, key=lambda match: (_score(match), match.found / match.wanted, -match.contradicted))
    if best.found == best.wanted:
        name = "found"
    elif best.contradicted:
        name = "contradicted"
    elif best.found:
        name = "part found"
    else:
        name = "coarser" if best.coarser else "missing"
    return name if len(with_values) == len(matches) or name == "found" else MIXED + name


def _score(match: ValueMatch) -> float:
    return 0.0 if match.contradicted else match.found / match.wanted


def counted(rows: Iterable[Row]) -> dict[str, tuple[int, float]]:
    """Return the number of rows and the mean label, by outcome."""
    labels: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        matcher = ValueMatcher(row["question"], row["prediction"])
        labels[outcome([matcher.match(reference) for reference in row["references"]])].append(float(row["label"]))
    return {name: (len(found), sum(found) / len(found)) for name, found in labels.items()}


def main() -> None:
    """Count the rows, and replace the page's block."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA_DIRECTORY, help="directory of the rows")
    parser.add_argument("--document", type=Path, default=DOCUMENT)
    options = parser.parse_args()
    evouna = read_lines(options.data / "evouna_dev.jsonl")
    groups = {
        **{f"EVOUNA, half {half}": [row for row in evouna if half_of(row["question"]) == half] for half in ("a", "b")},
        "NQ301": read_lines(options.data / "nq301_human.jsonl"),
    }
    columns = [counted(rows) for rows in groups.values()]
    lines = [f"| values of the best reference | {' | '.join(groups)} |", f"|{'---|' * (len(groups) + 1)}"]
    for name in (*OUTCOMES, *(MIXED + each for each in OUTCOMES), NO_VALUES):
        if any(name in column for column in columns):
            cells = (f"{column[name][1]:.3f} of {column[name][0]}" if name in column else "none" for column in columns)
            lines.append(f"| {name} | {' | '.join(cells)} |")
    write_block(options.document, "outcomes", "\n".join(lines))


if __name__ == "__main__":
    main()
