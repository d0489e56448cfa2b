"""How often the judge, and the rule, are right about answers to yes/no questions."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.common.rows import read_lines

_Z = 1.959963985


def wilson(right: int, rows: int) -> tuple[float, float]:
    """95 % interval of a share (Wilson 1927): rows here are few and shares near 1, where the normal one fails."""
    share, z2 = right / rows, _Z * _Z
    middle = (share + z2 / (2 * rows)) / (1 + z2 / rows)
    half = _Z / (1 + z2 / rows) * math.sqrt(share * (1 - share) / rows + z2 / (4 * rows * rows))
    return middle - half, middle + half


def binary_table(rows: Path, scores: Path, metrics: Sequence[str]) -> str:
    """Accuracy of each metric, overall and by kind of answer.

    Args:
        rows: JSON lines with id, label and, as `dataset`, the kind.
        scores: What `gradewire score` wrote for them; a metric that failed for a row was wrong about it.
        metrics: As the scores name them; a parameter that is the default is left out of the name there.

    Returns:
        A Markdown table.
    """
    truth = {row["id"]: row for row in read_lines(rows)}
    found = {row["id"]: row["scores"] for row in read_lines(scores)}
    kinds = list(dict.fromkeys(row["dataset"] for row in truth.values()))
    lines = [f"| | all {len(truth)} | {' | '.join(kinds)} |", f"|---|---:|{'---:|' * len(kinds)}"]
    for metric in metrics:
        hits = {name: _right(found[name][metric], row["label"]) for name, row in truth.items()}
        low, high = wilson(sum(hits.values()), len(hits))
        shares = []
        for kind in kinds:
            of_kind = [hits[name] for name, row in truth.items() if row["dataset"] == kind]
            shares.append(f"{sum(of_kind)} of {len(of_kind)}")
        lines.append(
            f"| {metric} | {sum(hits.values()) / len(hits):.3f} [{low:.3f}, {high:.3f}] | {' | '.join(shares)} |"
        )
    return "\n".join(lines)


def _right(score: dict[str, Any], label: int) -> bool:
    return "correct" in score and bool(score["correct"]) == bool(label)
