"""Read single values from the Markdown tables of benchmarks/results."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

_NUMBER: Final = r"[+-]?(?:\d+\.?\d*|\.\d+)"
_CELL: Final = re.compile(rf"({_NUMBER})(?: \[({_NUMBER}), ({_NUMBER})\]| ± {_NUMBER})?(?: \(.*\))?")
_FAILED: Final = ("failed", "failed by part")
_SEVERAL: Final = re.compile(rf"{_NUMBER}(?:, {_NUMBER})+")


@dataclass(frozen=True)
class Figure:
    """A measured value.

    Attributes:
        low, high: Limits of the 95 % interval, or None where the table has no interval.
        failed: Number of scores that the value lacks because they failed.
    """

    value: float
    low: float | None = None
    high: float | None = None
    failed: int = 0


@dataclass(frozen=True)
class Table:
    """A table of a results page.

    Attributes:
        title: The bold line above the table; "" if the section has none.
        columns: Heads of the columns.
        rows: Texts of the cells, without backticks.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def cells(self, name: str) -> Mapping[str, str] | None:
        """Return the cells of the first row with this name by column, or None.

        A name is the text of the first cell, or of the first two with `" | "` between them.
        """
        for row in self.rows:
            if name in (row[0], " | ".join(row[:2])):
                return dict(zip(self.columns, row, strict=True))
        return None


def tables_in(section: str) -> Iterator[Table]:
    """Yield the tables of a section in order. A bold line is the title of all tables up to the next one."""
    title, lines = "", iter(section.splitlines())
    for line in lines:
        if line.startswith("**") and line.rstrip(":").endswith("**"):
            title = line.strip("*:")
        elif line.startswith("|"):
            below = itertools.takewhile(lambda each: each.startswith("|"), lines)
            yield Table(title, _cells(line), [_cells(row) for row in below][1:])


def section_of(page: Path, name: str) -> str:
    """Return a page's generated block of this name, or else the text below the heading of this name.

    Raises:
        KeyError: The page has neither.
    """
    text = page.read_text("utf-8")
    begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->\n"
    if begin in text:
        return text.partition(begin)[2].partition(end)[0]
    sections: dict[str, list[str]] = {}
    lines: list[str] = []
    fenced = False
    for line in text.splitlines():
        fenced ^= line.startswith("```")
        # A comment in a fenced command begins like a heading.
        if line.startswith("#") and not fenced:
            lines = sections.setdefault(line.lstrip("#").strip(), [])
        else:
            lines.append(line)
    if name not in sections:
        raise KeyError(f"{page} has no block and no heading {name!r}")
    return "\n".join(sections[name])


def figure(section: str, table: str, row: str, columns: Sequence[str]) -> Figure:
    """Return the value in a row and column of the section's first table whose title begins with `table`.

    Several columns, and several numbers in a cell (a run each), give their mean, without an interval. Often only the
    section's first or last table has the column "failed", so the greatest number in any table's row is taken.

    Raises:
        KeyError: The section has no such table, row or column.
        ValueError: The cell is not a number.
    """
    tables = list(tables_in(section))
    for each in tables:
        if each.title.startswith(table) and (cells := each.cells(row)) is not None:
            found = [_figure(cells[column]) for column in columns]
            only = found[0] if len(found) == 1 else Figure(fmean(one.value for one in found))
            return replace(only, failed=max(_failed(other.cells(row)) for other in tables))
    raise KeyError(f"no table {table!r} with a row {row!r}")


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.replace("`", "").strip().strip("|").split("|")]


def _failed(cells: Mapping[str, str] | None) -> int:
    """Return the number of failed scores, which a benchmark with parts gives by part ("0 2 0")."""
    return sum(int(count) for column in _FAILED for count in (cells or {}).get(column, "").split())


def _figure(cell: str) -> Figure:
    if _SEVERAL.fullmatch(cell):
        return Figure(fmean(map(float, cell.split(", "))))
    found = _CELL.fullmatch(cell)
    if found is None:
        raise ValueError(f"{cell!r} is no number, with or without an interval, nor a list of numbers")
    value, low, high = (None if part is None else float(part) for part in found.groups())
    assert value is not None
    return Figure(value, low, high)
