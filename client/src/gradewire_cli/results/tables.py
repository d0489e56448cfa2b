"""Tables for the terminal, files and HTML pages."""

from __future__ import annotations

import math
import re
import shutil
import sys
import tomllib
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import TYPE_CHECKING, Final, TextIO

import click

from gradewire_cli.options.common import OUTPUT_FILE
from gradewire_cli.options.help import option, stacked
from gradewire_cli.problems import tell

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gradewire_stats.agreement.report import CellAgreement
    from gradewire_stats.bootstrap import CellsMean, Difference, Estimate


UNDEFINED = "-"
STATISTICS: Final[dict[str, dict[str, str]]] = tomllib.loads(
    (resources.files("gradewire_cli.results") / "statistics.toml").read_text(encoding="utf-8")
)
TITLES: Final = {statistic: names["in_tables"] for statistic, names in STATISTICS.items()}
# width between columns
_GAP_CHARACTERS = 3

ALL_ROWS = "all rows"
# Name for rows without a data set or model if other rows have one.
NO_NAME = "(none)"
CELLS_MEAN = "cells' mean"

# Width of tables in a file or pipe.
LOG_COLUMNS = 160
FURTHER_TABLES = "use --all-tables to print more tables"
SHOWN_PAIRS = 6
"""Maximum number of annotator pairs in tables and pages. The pairs with the most items are shown."""
# width of a table's edges
_EDGE_CHARACTERS = 2


@dataclass(frozen=True, slots=True)
class Value:
    """A number in a table: its exact value and its text.

    Attributes:
        value: The exact number, or NaN if undefined.
        low: Lower bound of the 95 % interval, or NaN.
        high: Upper bound of the 95 % interval, or NaN.
        p_value: The p value of a difference, or NaN.
    """

    text: str
    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    p_value: float = math.nan
    bounds: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        # Intervals are easier to read without the 0 before the point.
        bounds = ", ".join(re.sub(r"^(-?)0\.", r"\1.", bound) for bound in self.bounds)
        return " ".join([self.text, *([f"[{bounds}]"] if bounds else []), *self.notes])

    def beside(self, note: str) -> Value:
        """Return the value followed by a note in brackets."""
        return replace(self, notes=(*self.notes, f"({note})"))


Cell = Value | str


@dataclass(frozen=True, slots=True)
class Table:
    """A table of values and strings.

    Attributes:
        columns: Column heads. Only a terminal shows their line breaks.
        heads: Number of cells that name a row. If the table is split, each part repeats these cells.
        explained: Explanations of columns for pages, by column head.
        filters: Each row's values for a page's selection boxes.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    heads: int = 1
    explained: Mapping[str, str] = field(default_factory=dict)
    filters: Sequence[Mapping[str, str]] = ()
    note: str = ""

    def cut(self, width: int) -> Iterator[Table]:
        """Split a wide table by columns into as few tables of at most `width` characters as possible.

        Each table has at least one column of values, even if this table then exceeds `width`.
        """
        widths = [
            max(len(line) for cell in column for line in str(cell).split("\n"))
            for column in zip(self.columns, *self.rows, strict=True)
        ]
        begin = self.heads
        named = sum(widths[:begin]) + _GAP_CHARACTERS * (begin - 1)
        while begin < len(widths):
            end, taken = begin + 1, named + _GAP_CHARACTERS + widths[begin]
            while end < len(widths) and taken + _GAP_CHARACTERS + widths[end] <= width:
                taken += _GAP_CHARACTERS + widths[end]
                end += 1
            yield replace(
                self,
                title=self.title if begin == self.heads else f"{self.title} (continued)",
                columns=[*self.columns[: self.heads], *self.columns[begin:end]],
                rows=[[*row[: self.heads], *row[begin:end]] for row in self.rows],
            )
            begin = end


def number(value: float, *, digits: int = 3) -> str:
    """Return a readable number, or a dash for NaN."""
    return UNDEFINED if math.isnan(value) else f"{value:.{digits}f}"


def measured(value: float, *, digits: int = 3) -> Value:
    """Return a number without an interval."""
    return Value(number(value, digits=digits), value)


def count(value: int) -> Value:
    """Return a count, for example of rows."""
    return Value(str(value), value)


def estimated(estimate: Estimate, *, digits: int = 3) -> Value:
    """Return a value with its 95 % interval."""
    bounds = () if math.isnan(estimate.low) else (estimate.low, estimate.high)
    texts = tuple(number(bound, digits=digits) for bound in bounds)
    return Value(number(estimate.value, digits=digits), estimate.value, estimate.low, estimate.high, bounds=texts)


def points(estimate: Estimate) -> Value:
    """Return a rating with its interval, in whole points."""
    return estimated(estimate, digits=0)


def bare(estimate: Estimate) -> Value:
    """Return a value without its interval."""
    return measured(estimate.value)


def differing(difference: Difference) -> Value:
    """Return a difference with its interval and p value, and with one more digit because differences are small."""
    numbers = (difference.value, difference.low, difference.high, difference.p_value)
    if math.isnan(difference.value):
        return Value(UNDEFINED, *numbers)
    text = f"{difference.value:+.4f}"
    if math.isnan(difference.low):
        return Value(text, *numbers)
    bounds = (f"{difference.low:+.4f}", f"{difference.high:+.4f}")
    return Value(text, *numbers, bounds=bounds, notes=(str(p_of(difference)),))


def p_of(difference: Difference) -> Value:
    """Return the p value of a difference, or "no p"."""
    if math.isnan(difference.p_value):
        return Value("no p")
    if difference.p_value >= 0.001 and difference.at_floor:
        # Round up, so that "p <" stays true with few draws.
        return Value(f"p <= {math.ceil(difference.p_value * 1000) / 1000:.3f}", p_value=difference.p_value)
    return p_value(difference.p_value)


def p_value(value: float) -> Value:
    """Return a p value. Values below 0.001 become "p < 0.001"."""
    if math.isnan(value):
        return Value(UNDEFINED)
    return Value("p < 0.001" if value < 0.001 else f"p = {value:.3f}", p_value=value)


def of_cells(value: Value, cells: int, cells_in_all: int) -> Value:
    """Return a mean over cells, followed by the number of cells unless the mean covers all cells."""
    return value if cells in {0, cells_in_all} else value.beside(f"{cells} of {cells_in_all}")


def cells_mean(mean: CellsMean) -> Value:
    """Return a mean over cells with its interval, and with the number of cells unless the mean covers all cells."""
    return of_cells(estimated(mean), mean.cells, mean.cells_in_all)


def names_of(cells: Sequence[CellAgreement], *, between: str = " ") -> list[str]:
    """Return each cell's name, which depends on the cell's level. A missing data set or model becomes "(none)"."""
    paired = iter(cell_names([(cell.dataset, cell.model) for cell in cells if cell.level == "cell"], between=between))
    return [next(paired) if cell.level == "cell" else _name_of_line(cell) for cell in cells]


def _name_of_line(cell: CellAgreement) -> str:
    return ALL_ROWS if cell.level == "all" else cell.dataset or cell.model or cell.group or NO_NAME


def cell_names(pairs: Sequence[tuple[str, str]], *, between: str = "\n") -> list[str]:
    """Return each cell's data set and model, joined by `between`.

    `pairs` are all cells of a table. The names omit data sets if no cell has one, and models if no cell has one.
    """
    there = [any(pair[place] for pair in pairs) for place in (0, 1)]
    if not any(there):
        return [ALL_ROWS for _ in pairs]
    return [between.join(pair[place] or NO_NAME for place in (0, 1) if there[place]) for pair in pairs]


def show_tables(tables: Iterable[Table], notes: Iterable[str], aside: Iterable[str]) -> None:
    """Print tables and notes on standard output, and `aside` on standard error."""
    print_tables(tables)
    for note in notes:
        click.echo(note)
    tell(aside)


def print_tables(tables: Iterable[Table], *, stream: TextIO | None = None) -> None:
    """Print tables on standard output or `stream`, split to fit the terminal's width."""
    out = stream or sys.stdout
    for table in tables:
        for part in table.cut(columns_of(out) - _EDGE_CHARACTERS):
            columns, *rows = [
                [_without_control_characters(str(cell)) for cell in row] for row in (part.columns, *part.rows)
            ]
            print_table(_without_control_characters(part.title), columns, rows, heads=part.heads, stream=out)


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, stream: TextIO, heads: int = 1
) -> None:
    """Print a table without cutting off cells. All columns after the first `heads` are right-aligned."""
    from rich import box  # noqa: PLC0415 - only when printing
    from rich.console import Console  # noqa: PLC0415 - only when printing
    from rich.table import Table as RichTable  # noqa: PLC0415 - only when printing

    table = RichTable(
        title=title or None, title_justify="left", title_style="", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1)
    )
    for position, column in enumerate(columns):
        table.add_column(column, justify="left" if position < heads else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    console = Console(file=stream, width=columns_of(stream), highlight=False, markup=False)
    console.width = max(console.width, console.measure(table, options=console.options.update(width=1000)).maximum)
    console.print(table)


def columns_of(stream: TextIO) -> int:
    """Return the terminal's width in characters, or `LOG_COLUMNS` without a terminal."""
    return shutil.get_terminal_size((LOG_COLUMNS, 24)).columns if stream.isatty() else LOG_COLUMNS


def _without_control_characters(cell: str) -> str:
    return "".join(letter if letter.isprintable() or letter == "\n" else "\N{REPLACEMENT CHARACTER}" for letter in cell)


json_option = option("--json", "json_path", type=OUTPUT_FILE)
html_option = option("--html", type=OUTPUT_FILE)
table_file_options = stacked(
    json_option,
    option("--markdown", type=OUTPUT_FILE),
    option("--csv", "csv_path", type=OUTPUT_FILE),
    option("--latex", type=OUTPUT_FILE),
)
all_tables_option = option("--all-tables", is_flag=True)
