"""Tables of figures as one CSV file with a line for each figure, its numbers unrounded."""

from __future__ import annotations

import csv
import io
import math
from typing import TYPE_CHECKING

from gradewire.cli.output.figures import Figure

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gradewire.cli.output.tables import FigureTable

COLUMNS = ("table", "row", "column", "value", "low", "high", "p_value", "text")


def to_tidy_csv(tables: Iterable[FigureTable]) -> str:
    """A line for each cell: table, row and column, the number with its interval and p, and the cell as people read it.

    A number that is not defined, and an interval that there is not, is an empty cell.
    """
    stream = io.StringIO()
    writer = csv.writer(stream)
    writer.writerow(COLUMNS)
    for table in tables:
        writer.writerows(_lines(table))
    return stream.getvalue()


def _lines(table: FigureTable) -> Iterator[list[str]]:
    # A number in front of the name, in a column that has none, changes with every model that joins.
    naming = [place for place in range(table.heads) if table.columns[place]] or range(table.heads)
    for row in table.rows:
        named = ", ".join(str(row[place]) for place in naming)
        for column, cell in zip(table.columns[table.heads :], row[table.heads :], strict=True):
            figure = cell if isinstance(cell, Figure) else Figure(cell)
            numbers = map(_written, (figure.value, figure.low, figure.high, figure.p_value))
            yield [table.title, named, " ".join(column.split("\n")), *numbers, figure.text]


def _written(value: float) -> str:
    if not math.isfinite(value):
        return ""
    # The shortest text that reads as this number again.
    return str(value) if isinstance(value, int) else repr(float(value))
