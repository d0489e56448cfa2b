"""The lines of an agreement table: which rows belong together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from gradewire.agreement.result_tables import Level
from gradewire.agreement.rows import JudgedRows


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
    cells = rows_by(list(zip(map(str, rows.datasets), map(str, rows.models), strict=True)))
    names, under_test = rows_by(list(map(str, rows.datasets))), rows_by(list(map(str, rows.models)))
    parts = [Part("cell", dataset, model, "", where) for (dataset, model), where in cells.items()]
    if len(names) > 1 and len(under_test) > 1:
        parts += [Part("dataset", name, "", "", where) for name, where in names.items()]
        parts += [Part("model", "", name, "", where) for name, where in under_test.items()]
    groups = rows_by(list(map(str, rows.groups)))
    parts += [
        Part("group", "", "", name, where) for name, where in groups.items() if name and len(where) < len(rows.labels)
    ]
    if len(parts) > 1:
        parts.append(Part("all", "", "", "", np.arange(len(rows.labels))))
    return parts


Key = TypeVar("Key", str, tuple[str, str])


def rows_by(keys: Sequence[Key]) -> dict[Key, NDArray[np.intp]]:
    """Positions of each key, int[rows that have it], by ascending key."""
    found: dict[Key, list[int]] = {}
    for row, key in enumerate(keys):
        found.setdefault(key, []).append(row)
    return {key: np.array(found[key], dtype=np.intp) for key in sorted(found)}
