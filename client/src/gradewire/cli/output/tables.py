"""Tables of figures, and how a terminal shows them; rich is imported when one is printed, not before."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TextIO

import click

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gradewire.cli.output.figures import Figure

# Where there is no terminal to ask: wide enough that no cell is folded.
LOG_COLUMNS = 160
FURTHER_TABLES = "further tables: --all-tables"
# What a terminal's table has between two columns, and at its ends.
_GAP = 3
_ENDS = 2


@dataclass(frozen=True, slots=True)
class FigureTable:
    """A table of figures and texts.

    Attributes:
        title: Says what the figures are of.
        columns: Heads; a line break in them is one in the terminal.
        rows: Cells; the first of each name the row, and stand again wherever the table is cut.
        heads: How many cells name a row.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Figure | str]]
    heads: int = 1

    def cut(self, width: int, *, gap: int = _GAP) -> Iterator[FigureTable]:
        """The same columns in as few tables as fit into `width` characters, with at least one figure in each."""
        widths = [
            max(len(line) for cell in column for line in str(cell).split("\n"))
            for column in zip(self.columns, *self.rows, strict=True)
        ]
        begin = self.heads
        named = sum(widths[:begin]) + gap * (begin - 1)
        while begin < len(widths):
            end, taken = begin + 1, named + gap + widths[begin]
            while end < len(widths) and taken + gap + widths[end] <= width:
                taken += gap + widths[end]
                end += 1
            yield replace(
                self,
                title=self.title if begin == self.heads else f"{self.title} (continued)",
                columns=[*self.columns[: self.heads], *self.columns[begin:end]],
                rows=[[*row[: self.heads], *row[begin:end]] for row in self.rows],
            )
            begin = end


def show_figures(tables: Iterable[FigureTable], notes: Iterable[str], aside: Iterable[str]) -> None:
    """Prints tables and notes on standard output, and what stands beside them on standard error."""
    print_figures(tables)
    for note in notes:
        click.echo(note)
    for sentence in aside:
        click.echo(sentence, err=True)


def print_figures(tables: Iterable[FigureTable], *, stream: TextIO | None = None) -> None:
    """Prints tables on standard output, or on `stream`, each as wide as the terminal at most."""
    out = stream or sys.stdout
    for table in tables:
        for part in table.cut(columns_of(out) - _ENDS):
            columns, *rows = [[_writable(str(cell)) for cell in row] for row in (part.columns, *part.rows)]
            print_table(_writable(part.title), columns, rows, heads=part.heads, stream=out)


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, stream: TextIO, heads: int = 1
) -> None:
    """Prints a table; the first `heads` columns read from the left, numbers from the right, and nothing is cut off."""
    from rich import box  # noqa: PLC0415 - only when printing
    from rich.console import Console  # noqa: PLC0415 - only when printing
    from rich.table import Table  # noqa: PLC0415 - only when printing

    table = Table(
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
    """Width of the terminal, or of a log where there is none."""
    return shutil.get_terminal_size((LOG_COLUMNS, 24)).columns if stream.isatty() else LOG_COLUMNS


def _writable(cell: str) -> str:
    """Names come from the file: neither control codes nor lone surrogates in them reach the terminal."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "\N{REPLACEMENT CHARACTER}" for letter in cell)
