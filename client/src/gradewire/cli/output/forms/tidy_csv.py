"""Tables of figures as one CSV file with a line for each figure, its numbers unrounded."""

from __future__ import annotations

import csv
import io
import math
from typing import TYPE_CHECKING

from gradewire.tables import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gradewire.tables import Table

COLUMNS = ("table", "row", "column", "value", "low", "high", "p_value", "text")


def to_tidy_csv(tables: Iterable[Table]) -> str:
    """A line for each cell: table, row and column, the number with its interval and p, and the cell as people read it.

    A number that is not defined, and an interval that there is not, is an empty cell.
    """
    stream = io.StringIO()
    writer = csv.writer(stream)
    writer.writerow(COLUMNS)
    for table in tables:
        writer.writerows(_lines(table))
    return stream.getvalue()


def _lines(table: Table) -> Iterator[list[str]]:
    # A number in front of the name, in a column that has none, changes with every model that joins.
    naming = [place for place in range(table.heads) if table.columns[place]] or range(table.heads)
    for row in table.rows:
        named = ", ".join(str(row[place]) for place in naming)
        for column, cell in zip(table.columns[table.heads :], row[table.heads :], strict=True):
            each = cell if isinstance(cell, Value) else Value(cell)
            numbers = map(_written, (each.value, each.low, each.high, each.p_value))
            yield [table.title, named, " ".join(column.split("\n")), *numbers, str(each)]


def _written(value: float) -> str:
    if not math.isfinite(value):
        return ""
    # The shortest text that reads as this number again.
    return str(value) if isinstance(value, int) else repr(float(value))
