"""Measure the worth of each group of features to `correctness`: leave it out in turn, and cross-validate."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from benchmarks.agreement.correctness_rows import COLUMNS, ScoredRows, together
from benchmarks.common.rows import HEADLINE_MODELS

from gradewire_stats.agreement_statistics import auc
from gradewire_stats.calibration.fit_correctness import held_out_probabilities, left_out_log_odds
from gradewire_stats.calibration.labelled_rows import left_out_sources

if TYPE_CHECKING:
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


def ablation_table(parts: tuple[ScoredRows, ...]) -> str:
    """With all features, without each group, and with SMILE's alone.

    Mean Pearson of the four cells and Brier score of the first part, held out by question, and the mean AUC of the
    sources, each by a fit on the others.
    """
    lines = [
        "| | mean Pearson of four cells | Brier score | mean AUC of sources left out |",
        "|---|---:|---:|---:|",
        f"| `smile:one_pass` itself | {mean_pearson(parts[0], parts[0].smile):.3f} | | |",
    ]
    every = [column.name for column in COLUMNS]
    choices = {"all features": every, "SMILE's terms alone": list(GROUPS["SMILE's terms"])}
    choices |= {f"without {name}": [each for each in every if each not in group] for name, group in GROUPS.items()}
    for name, wanted in choices.items():
        rows = together(*parts)
        kept = [number for number, column in enumerate(COLUMNS) if column.name in wanted]
        rows = replace(rows, features=[COLUMNS[number] for number in kept], values=rows.values[:, kept])
        found = held_out_probabilities(rows)[: len(parts[0].rows)]
        brier = float(np.mean((found - parts[0].labels) ** 2))
        left_out = left_out_log_odds(rows)
        aucs = [auc(left_out[inside], rows.right[inside]) for _, inside in left_out_sources(rows)]
        lines.append(f"| {name} | {mean_pearson(parts[0], found):.3f} | {brier:.4f} | {np.mean(aucs):.3f} |")
    return "\n".join(lines)


def mean_pearson(rows: ScoredRows, scores: NDArray[np.float64]) -> float:
    """Mean of Pearson's correlation with the labels over the cells of data set and headline model."""
    cells = {(row["dataset"], row["model"]) for row in rows.rows if row["model"] in HEADLINE_MODELS}
    found = []
    for cell in sorted(cells):
        inside = np.array([(row["dataset"], row["model"]) == cell for row in rows.rows])
        found.append(np.corrcoef(scores[inside], rows.labels[inside])[0, 1])
    return float(np.mean(found))
