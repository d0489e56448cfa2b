"""Tables of figures, for a terminal and for Markdown alike; rich is imported when one is printed, not before."""

from __future__ import annotations

import math
import re
import shutil
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

import click

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gradewire.agreement import CellsMean, Difference, Estimate

# Where there is no terminal to ask: wide enough that no cell is folded.
LOG_COLUMNS = 160
# What a terminal's table has between two columns, and at its ends.
_GAP = 3
_ENDS = 2


@dataclass(frozen=True, slots=True)
class FigureTable:
    """A table of texts.

    Attributes:
        columns: Heads; a line break in them is one in the terminal.
        rows: Cells; the first of each is its name, and stands again wherever the table is cut.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def cut(self, width: int, *, gap: int = _GAP) -> Iterator[FigureTable]:
        """The same columns in as few tables as fit into `width` characters, with at least one figure in each."""
        widths = [
            max(len(line) for cell in column for line in cell.split("\n"))
            for column in zip(self.columns, *self.rows, strict=True)
        ]
        begin = 1
        while begin < len(widths):
            end, taken = begin + 1, widths[0] + gap + widths[begin]
            while end < len(widths) and taken + gap + widths[end] <= width:
                taken += gap + widths[end]
                end += 1
            yield FigureTable(
                self.title if begin == 1 else f"{self.title} (continued)",
                [self.columns[0], *self.columns[begin:end]],
                [[row[0], *row[begin:end]] for row in self.rows],
            )
            begin = end


def show_figures(tables: Iterable[FigureTable], notes: Iterable[str], left_out: Iterable[str]) -> None:
    """Prints tables and notes on standard output, and what was left out on standard error."""
    print_figures(tables)
    for note in notes:
        click.echo(note)
    for sentence in left_out:
        click.echo(sentence, err=True)


def print_figures(tables: Iterable[FigureTable]) -> None:
    """Prints tables on standard output, each as wide as the terminal at most."""
    for table in tables:
        for part in table.cut(columns_of(sys.stdout) - _ENDS):
            columns, *rows = [list(map(_writable, row)) for row in (part.columns, *part.rows)]
            print_table(_writable(part.title), columns, rows, stream=sys.stdout)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, stream: TextIO) -> None:
    """Prints a table; the first column reads from the left, numbers from the right, and nothing is ever cut off."""
    from rich import box  # noqa: PLC0415 - only when printing
    from rich.console import Console  # noqa: PLC0415 - only when printing
    from rich.table import Table  # noqa: PLC0415 - only when printing

    table = Table(
        title=title or None, title_justify="left", title_style="", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1)
    )
    for position, column in enumerate(columns):
        table.add_column(column, justify="right" if position else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    console = Console(file=stream, width=columns_of(stream), highlight=False, markup=False)
    console.width = max(console.width, console.measure(table, options=console.options.update(width=1000)).maximum)
    console.print(table)


def columns_of(stream: TextIO) -> int:
    """Width of the terminal, or of a log where there is none."""
    return shutil.get_terminal_size((LOG_COLUMNS, 24)).columns if stream.isatty() else LOG_COLUMNS


def _writable(cell: str) -> str:
    """Names come from the file: neither control codes nor lone surrogates in them reach the terminal."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "\N{REPLACEMENT CHARACTER}" for letter in cell)


def to_markdown(tables: Iterable[FigureTable], notes: Sequence[str] = ()) -> str:
    """The tables as GitHub's Markdown, titles as bold lines, and the notes as a list of literal lines."""
    blocks = []
    for table in tables:
        # Never cut: pages scroll a wide table, and one table is easier to read than its pieces.
        lines = [f"**{table.title}**", "", _markdown_row(table.columns), f"|---{'|---:' * (len(table.columns) - 1)}|"]
        blocks.append("\n".join([*lines, *map(_markdown_row, table.rows)]))
    if notes:
        # A fence longer than any run of backticks in a note, which may quote the file.
        fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", "\n".join(notes)) or [""]))
        blocks.append("\n".join([fence, *notes, fence]))
    return "\n\n".join(blocks) + "\n"


def _markdown_row(cells: Sequence[str]) -> str:
    # A label is a metric line at worst, and a data set is called as the file says: neither may end a cell or a row.
    escaped = (" ".join(cell.replace("\\", "\\\\").replace("|", "\\|").split()) for cell in cells)
    return f"| {' | '.join(escaped)} |"


def number(value: float, *, digits: int = 3) -> str:
    """A number for a table; a dash where it is not defined."""
    return "-" if math.isnan(value) else f"{value:.{digits}f}"


def estimated(estimate: Estimate) -> str:
    """A value and its 95 % interval; a dash where it is not defined."""
    if math.isnan(estimate.low):
        return number(estimate.value)
    return f"{number(estimate.value)} [{_bound(estimate.low)}, {_bound(estimate.high)}]"


def differing(difference: Difference) -> str:
    """A difference, its interval and its p value; one digit more than a value, for differences are small."""
    if math.isnan(difference.value):
        return "-"
    if math.isnan(difference.low):
        return f"{difference.value:+.4f}"
    return f"{difference.value:+.4f} [{difference.low:+.4f}, {difference.high:+.4f}] {_p_value(difference)}"


def _p_value(difference: Difference) -> str:
    if math.isnan(difference.p_value):
        return "no p"
    if difference.p_value < 0.001:
        return "p < 0.001"
    if difference.at_floor:
        # So few draws can say no less; rounded up, so that what is written is true.
        return f"p <= {math.ceil(difference.p_value * 1000) / 1000:.3f}"
    return f"p = {difference.p_value:.3f}"


def of_cells(figure: str, cells: int, cells_in_all: int) -> str:
    """A mean of cells, with the number of cells in it where these are not all."""
    return figure if cells in {0, cells_in_all} else f"{figure} ({cells} of {cells_in_all})"


def cells_mean(mean: CellsMean) -> str:
    """A mean of cells with its interval, and the number of cells in it where these are not all."""
    return of_cells(estimated(mean), mean.cells, mean.cells_in_all)


def _bound(value: float) -> str:
    """As `number`, without the 0 before the point: intervals are read by their digits."""
    return re.sub(r"^(-?)0\.", r"\1.", number(value))
