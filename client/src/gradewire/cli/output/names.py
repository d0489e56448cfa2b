"""Names of statistics, data sets and models in tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradewire.agreement import CellAgreement
    from gradewire.agreement.point_estimates import Statistic

TITLES: dict[Statistic, str] = {
    "pearson": "Pearson",
    "spearman": "Spearman",
    "kendall": "tau-b",
    "auc": "AUC",
    "accuracy": "accuracy",
    "f1": "F1",
    "macro_f1": "macro-F1",
    "precision": "precision",
    "recall": "recall",
    "positive_rate": "positive rate",
    "deviation": "deviation",
    "pairwise": "pairwise",
}
ALL_ROWS = "all rows"
# Rows that lack what other rows of the table have.
NO_NAME = "(none)"
CELLS_MEAN = "cells' mean"


def names_of(cells: Sequence[CellAgreement], *, between: str = " ") -> list[str]:
    """Name of each cell: its level decides, so that rows without a data set or model never pass for all rows."""
    paired = iter(cell_names([(cell.dataset, cell.model) for cell in cells if cell.level == "cell"], between=between))
    return [next(paired) if cell.level == "cell" else _name_of_line(cell) for cell in cells]


def _name_of_line(cell: CellAgreement) -> str:
    return ALL_ROWS if cell.level == "all" else cell.dataset or cell.model or cell.group or NO_NAME


def cell_names(pairs: Sequence[tuple[str, str]], *, between: str = "\n") -> list[str]:
    """Data set and model of each cell ("" where its rows have none), with `between` between the two.

    Takes all cells of a table together: what none of them has is not named.
    """
    there = [any(pair[place] for pair in pairs) for place in (0, 1)]
    if not any(there):
        # Nothing tells rows apart, so that there is one cell.
        return [ALL_ROWS for _ in pairs]
    return [between.join(pair[place] or NO_NAME for place in (0, 1) if there[place]) for pair in pairs]
