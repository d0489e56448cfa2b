"""What groups of features are worth to `calibrated`: each is left out in turn, figures are cross-validated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from benchmarks.agreement.calibrated_rows import COLUMNS, ScoredRows
from benchmarks.common.rows import HEADLINE_MODELS

from gradewire.agreement.fitting.probability import held_out_probabilities

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

GROUPS = {
    "SMILE's terms": ("sentence", "keyword", "exact"),
    "words": ("contained", "recall", "last_word", "new_recall"),
    "what is missing": ("head_recall", "modifier_recall", "name_recall", "member_recall", "parts_least"),
    "spelling": ("spelling_least", "spelling_begin", "spelling_within"),
    "values": ("value_recall", "value_conflict", "values_beside"),
    "what contradicts": ("swapped", "opposite", "verdict", "verdict_conflict"),
    "what the question says": ("echo",),
    "names in references": ("reference_names",),
    "refusals, denials and candidates": ("refusals", "refused", "denied", "alternatives"),
}


def ablation_table(rows: ScoredRows) -> str:
    """Mean Pearson of the four cells and Brier score with all features, without each group, and with SMILE's alone."""
    lines = ["| | mean Pearson of four cells | Brier score, all rows |", "|---|---:|---:|"]
    lines.append(_line("`smile:v1` itself", rows, rows.smile, scored=False))
    every = [column.name for column in COLUMNS]
    choices = {"all features": every, "SMILE's terms alone": list(GROUPS["SMILE's terms"])}
    choices |= {f"without {name}": [each for each in every if each not in group] for name, group in GROUPS.items()}
    for name, wanted in choices.items():
        lines.append(_line(name, rows, _cross_validated(rows, wanted), scored=True))
    return "\n".join(lines)


def mean_pearson(rows: ScoredRows, scores: NDArray[np.float64]) -> float:
    """Mean of Pearson's correlation with the labels over the cells of data set and headline model."""
    cells = {(row["dataset"], row["model"]) for row in rows.rows if row["model"] in HEADLINE_MODELS}
    found = []
    for cell in sorted(cells):
        inside = np.array([(row["dataset"], row["model"]) == cell for row in rows.rows])
        found.append(np.corrcoef(scores[inside], rows.labels[inside])[0, 1])
    return float(np.mean(found))


def _cross_validated(rows: ScoredRows, names: Iterable[str]) -> NDArray[np.float64]:
    wanted = set(names)
    kept = [number for number, column in enumerate(COLUMNS) if column.name in wanted]
    return held_out_probabilities(
        [COLUMNS[number] for number in kept], rows.values[:, kept], rows.labels, rows.questions
    )


def _line(name: str, rows: ScoredRows, scores: NDArray[np.float64], *, scored: bool) -> str:
    brier = f"{np.mean((scores - rows.labels) ** 2):.4f}" if scored else ""
    return f"| {name} | {mean_pearson(rows, scores):.3f} | {brier} |"
