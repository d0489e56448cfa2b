"""Print tables in a terminal; rich is imported when one is printed, not before."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING, TextIO

import click

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gradewire.tables import Table

# Where there is no terminal to ask: wide enough that no cell is folded.
LOG_COLUMNS = 160
FURTHER_TABLES = "further tables: --all-tables"
# Characters at the ends of a table in a terminal.
_ENDS = 2


def show_tables(tables: Iterable[Table], notes: Iterable[str], aside: Iterable[str]) -> None:
    """Print tables and notes on standard output, and what stands beside them on standard error."""
    print_tables(tables)
    for note in notes:
        click.echo(note)
    for sentence in aside:
        click.echo(sentence, err=True)


def print_tables(tables: Iterable[Table], *, stream: TextIO | None = None) -> None:
    """Print tables on standard output, or on `stream`, each as wide as the terminal at most."""
    out = stream or sys.stdout
    for table in tables:
        for part in table.cut(columns_of(out) - _ENDS):
            columns, *rows = [[_writable(str(cell)) for cell in row] for row in (part.columns, *part.rows)]
            print_table(_writable(part.title), columns, rows, heads=part.heads, stream=out)


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, stream: TextIO, heads: int = 1
) -> None:
    """Print a table; the first `heads` columns read from the left, numbers from the right, and nothing is cut off."""
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
    """Width of the terminal, or of a log where there is none."""
    return shutil.get_terminal_size((LOG_COLUMNS, 24)).columns if stream.isatty() else LOG_COLUMNS


def _writable(cell: str) -> str:
    """Names come from the file: neither control codes nor lone surrogates in them reach the terminal."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "\N{REPLACEMENT CHARACTER}" for letter in cell)
