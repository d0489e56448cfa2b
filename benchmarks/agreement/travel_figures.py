"""Figures of probabilities on one set of rows, with intervals over questions, and of the change between two ways."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gradewire_stats.agreement_statistics import auc
from gradewire_stats.calibration.quality import calibration_error, measured

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Statistic = Callable[[NDArray[np.float64], NDArray[np.bool_]], float]

DRAWS = 1000
HEAD = (
    "Pearson",
    "AUC",
    "accuracy",
    "ECE",
    "most certain 90 %",
    "80 %",
    "50 %",
    "UNCERTAIN",
    "accuracy of these",
    "of the others",
    "wrong verdicts UNCERTAIN",
)


def pearson(found: NDArray[np.float64], right: NDArray[np.bool_]) -> float:
    """Pearson's correlation; NaN where either is all the same, as in some draws of few rows."""
    return float(np.corrcoef(found, right)[0, 1]) if np.ptp(found) and right.any() and not right.all() else np.nan


CHANGES: dict[str, Statistic] = {
    "Pearson": pearson,
    "AUC": auc,
    "accuracy": lambda found, right: float(np.mean((found >= 0.5) == right)),
    "ECE": calibration_error,
}


@dataclass(frozen=True)
class Way:
    """What one way says of the rows of a set.

    Attributes:
        name: For readers.
        found: float64[rows], P(right).
        flagged: bool[rows], UNCERTAIN at the default confidence.
    """

    name: str
    found: NDArray[np.float64]
    flagged: NDArray[np.bool_]


@dataclass(frozen=True)
class ReadSet:
    """Rows, and what several ways say of them; the first is what the others are compared with.

    Attributes:
        name: For readers.
        right: bool[rows].
        keys: Of the rows' questions, which are drawn together.
        ways: At least one.
    """

    name: str
    right: NDArray[np.bool_]
    keys: Sequence[str]
    ways: Sequence[Way]


def figures_table(sets: Sequence[ReadSet]) -> str:
    """A line for each set and way, in Markdown."""
    lines = [f"| | | {' | '.join(HEAD)} |", f"|---|---|{'---:|' * len(HEAD)}"]
    for each in sets:
        for way in each.ways:
            found = measured(way.name, way.found, each.right, way.flagged)
            hits = (way.found >= 0.5) == each.right
            of_flagged = f"{hits[way.flagged].mean():.3f}" if way.flagged.any() else ""
            numbers = (found.pearson, found.auc, found.accuracy, found.ece, *found.at_coverage)
            told = [*(f"{number:.3f}" for number in numbers), f"{found.uncertain:.1%}", of_flagged]
            told += [f"{found.accuracy_certain:.3f}", f"{found.held:.0%}"]
            lines.append(f"| {each.name}, {found.rows} rows | {way.name} | {' | '.join(told)} |")
    return "\n".join(lines)


def changes_table(sets: Sequence[ReadSet]) -> str:
    """What each further way changes against the first, with 95 % intervals over questions, in Markdown."""
    lines = [f"| | | {' | '.join(CHANGES)} |", f"|---|---|{'---:|' * len(CHANGES)}"]
    for each in sets:
        for way in each.ways[1:]:
            told = [
                "{:+.3f} [{:+.3f}, {:+.3f}]".format(*change(statistic, each.ways[0].found, way.found, each))
                for statistic in CHANGES.values()
            ]
            lines.append(f"| {each.name} | {way.name} | {' | '.join(told)} |")
    return "\n".join(lines)


def change(
    statistic: Statistic,
    before: NDArray[np.float64],
    after: NDArray[np.float64],
    rows: ReadSet,
) -> tuple[float, float, float]:
    """`statistic` after minus before: its value, and the ends of its 95 % interval by paired draws of questions."""
    _, clusters = np.unique(np.array(rows.keys, dtype=np.str_), return_inverse=True)
    order = np.argsort(clusters, kind="stable")
    members = np.split(order, np.flatnonzero(np.diff(clusters[order])) + 1)
    draw = np.random.default_rng(0)
    found = []
    for _ in range(DRAWS):
        drawn = np.concatenate([members[cluster] for cluster in draw.integers(len(members), size=len(members))])
        right = rows.right[drawn]
        found.append(statistic(after[drawn], right) - statistic(before[drawn], right))
    low, high = np.nanpercentile(found, (2.5, 97.5))
    return statistic(after, rows.right) - statistic(before, rows.right), float(low), float(high)
