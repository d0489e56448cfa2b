"""The lines of an agreement table: which rows belong together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gradewire.agreement.rows import JudgedRows
    from gradewire.agreement.tables import Level


@dataclass(frozen=True, slots=True)
class Part:
    """Rows that have data set, model, both, a group or nothing in common.

    Attributes:
        level: What they have in common.
        dataset: Its name where the level has one, else "".
        model: Likewise.
        group: Likewise.
        rows: int[rows of the part], positions in the table.
    """

    level: Level
    dataset: str
    model: str
    group: str
    rows: NDArray[np.intp]


def parts_of(rows: JudgedRows) -> list[Part]:
    """Parts of a table, the finest first, all rows last.

    A level that would only repeat the lines above it is left out: the only line is then the "cell". Rows without a
    group are in no group's line.
    """
    datasets, models = np.asarray(rows.datasets, dtype=object), np.asarray(rows.models, dtype=object)
    cells = sorted({(str(dataset), str(model)) for dataset, model in zip(datasets, models, strict=True)})
    names, under_test = sorted({dataset for dataset, _ in cells}), sorted({model for _, model in cells})
    parts = [
        Part("cell", dataset, model, "", np.flatnonzero((datasets == dataset) & (models == model)))
        for dataset, model in cells
    ]
    if len(names) > 1 and len(under_test) > 1:
        parts += [Part("dataset", name, "", "", np.flatnonzero(datasets == name)) for name in names]
        parts += [Part("model", "", name, "", np.flatnonzero(models == name)) for name in under_test]
    groups = np.asarray(rows.groups, dtype=object)
    named = sorted({str(group) for group in groups if group})
    in_groups = [Part("group", "", "", name, np.flatnonzero(groups == name)) for name in named]
    parts += [part for part in in_groups if len(part.rows) < len(rows.labels)]
    if len(parts) > 1:
        parts.append(Part("all", "", "", "", np.arange(len(rows.labels))))
    return parts
