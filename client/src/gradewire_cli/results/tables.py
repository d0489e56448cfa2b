"""Tables of values: one model for the terminal, CSV, LaTeX, Markdown and pages; rich is imported when needed."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import shutil
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, TextIO

import click

from gradewire_cli.options.common import OUTPUT_FILE, option_group
from gradewire_cli.problems import named_errors, tell

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from gradewire_stats.agreement.report import CellAgreement
    from gradewire_stats.bootstrap import CellsMean, Difference, Estimate


UNDEFINED = "-"
STATISTICS: Final[dict[str, dict[str, str]]] = tomllib.loads(
    (resources.files("gradewire_cli.results") / "statistics.toml").read_text(encoding="utf-8")
)
TITLES: Final = {statistic: names["in_tables"] for statistic, names in STATISTICS.items()}
# Characters between two columns of a table in a terminal.
_GAP_CHARACTERS = 3

ALL_ROWS = "all rows"
# Rows that lack what other rows of the table have.
NO_NAME = "(none)"
CELLS_MEAN = "cells' mean"

# Width without a terminal: no cell is folded.
LOG_COLUMNS = 160
FURTHER_TABLES = "further tables: --all-tables"
# Characters at the ends of a table in a terminal.
_EDGE_CHARACTERS = 2
CSV_COLUMNS = ("table", "row", "column", "value", "low", "high", "p_value", "text")
_LATEX_HEAD = (
    "% Needs \\usepackage{booktabs}; wide tables can be set in \\small or turned with pdflscape.",
    "% Names in scripts that pdflatex has no letters for need lualatex or xelatex.",
)
# Tables between two page breaks.
_FLOATS_A_PAGE = 12
_LATEX_ESCAPES = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "`": r"\textasciigrave{}",
    **{letter: f"\\{letter}" for letter in "{}$&#_%"},
}
_LATEX_SPECIAL = re.compile("|".join(map(re.escape, _LATEX_ESCAPES)))
# Two of them are drawn as one sign: a dash, a quotation mark.
_LATEX_LIGATURE = re.compile(r"([-',])(?=\1)")
# A sign, not a hyphen: before a number that nothing is joined to.
_LATEX_MINUS = re.compile(r"(?<![^\s\[(])-(?=\.?\d)")


@dataclass(frozen=True, slots=True)
class Value:
    """A cell with a number: as it was computed, and as people read it.

    Attributes:
        value: The number as it was computed; NaN where it is not defined.
        low: Lower bound of its 95 % interval; NaN without one.
        high: Upper bound; NaN without an interval.
        p_value: Of a difference; NaN without one.
        remarks: Texts that belong to the number: its p value, the cells of a mean.
    """

    text: str
    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    p_value: float = math.nan
    bounds: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return everything in one line, as a terminal shows it."""
        # Without the 0 before the point: intervals are read by their digits.
        bounds = ", ".join(re.sub(r"^(-?)0\.", r"\1.", bound) for bound in self.bounds)
        return " ".join([self.text, *([f"[{bounds}]"] if bounds else []), *self.remarks])

    def beside(self, note: str) -> Value:
        """Return the same value with a note in brackets behind it."""
        return replace(self, remarks=(*self.remarks, f"({note})"))


Cell = Value | str


@dataclass(frozen=True, slots=True)
class Table:
    """A table of values and texts.

    Attributes:
        columns: Heads; a line break in them is one in the terminal.
        rows: Cells; the first of each name the row, and stand again wherever the table is cut.
        heads: Number of cells that name a row.
        explained: Meaning of columns, by head; pages show it.
        filters: Values of each row that the selection boxes of a page choose by; empty without such boxes.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    heads: int = 1
    explained: Mapping[str, str] = field(default_factory=dict)
    filters: Sequence[Mapping[str, str]] = ()
    note: str = ""

    def cut(self, width: int) -> Iterator[Table]:
        """Yield the same columns in as few tables as fit into `width` characters, with at least one value in each."""
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
    """Return a number for people; a dash where it is not defined."""
    return UNDEFINED if math.isnan(value) else f"{value:.{digits}f}"


def measured(value: float, *, digits: int = 3) -> Value:
    """Return a number without an interval."""
    return Value(number(value, digits=digits), value)


def count(value: int) -> Value:
    """Return a number of rows or the like."""
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
    """Return a difference, its interval and its p value; one digit more than a value, for differences are small."""
    numbers = (difference.value, difference.low, difference.high, difference.p_value)
    if math.isnan(difference.value):
        return Value(UNDEFINED, *numbers)
    text = f"{difference.value:+.4f}"
    if math.isnan(difference.low):
        return Value(text, *numbers)
    bounds = (f"{difference.low:+.4f}", f"{difference.high:+.4f}")
    return Value(text, *numbers, bounds=bounds, remarks=(str(p_of(difference)),))


def p_of(difference: Difference) -> Value:
    """Return the p value of a difference; "no p" where there is none."""
    if math.isnan(difference.p_value):
        return Value("no p")
    if difference.p_value >= 0.001 and difference.at_floor:
        # So few draws can say no less; rounded up, so that what is written is true.
        return Value(f"p <= {math.ceil(difference.p_value * 1000) / 1000:.3f}", p_value=difference.p_value)
    return p_value(difference.p_value)


def p_value(value: float) -> Value:
    """Return a p value; the smallest that is written out is 0.001."""
    if math.isnan(value):
        return Value(UNDEFINED)
    return Value("p < 0.001" if value < 0.001 else f"p = {value:.3f}", p_value=value)


def of_cells(value: Value, cells: int, cells_in_all: int) -> Value:
    """Return a mean of cells, with the number of cells in it where these are not all."""
    return value if cells in {0, cells_in_all} else value.beside(f"{cells} of {cells_in_all}")


def cells_mean(mean: CellsMean) -> Value:
    """Return a mean of cells with its interval, and the number of cells in it where these are not all."""
    return of_cells(estimated(mean), mean.cells, mean.cells_in_all)


def names_of(cells: Sequence[CellAgreement], *, between: str = " ") -> list[str]:
    """Name of each cell: its level decides, so that rows without a data set or model never pass for all rows."""
    paired = iter(cell_names([(cell.dataset, cell.model) for cell in cells if cell.level == "cell"], between=between))
    return [next(paired) if cell.level == "cell" else _name_of_line(cell) for cell in cells]


def _name_of_line(cell: CellAgreement) -> str:
    return ALL_ROWS if cell.level == "all" else cell.dataset or cell.model or cell.group or NO_NAME


def cell_names(pairs: Sequence[tuple[str, str]], *, between: str = "\n") -> list[str]:
    """Return data set and model of each cell ("" where its rows have none), with `between` between the two.

    Takes all cells of a table together: what none of them has is not named.
    """
    there = [any(pair[place] for pair in pairs) for place in (0, 1)]
    if not any(there):
        # Nothing tells rows apart, so that there is one cell.
        return [ALL_ROWS for _ in pairs]
    return [between.join(pair[place] or NO_NAME for place in (0, 1) if there[place]) for pair in pairs]


def show_tables(tables: Iterable[Table], notes: Iterable[str], aside: Iterable[str]) -> None:
    """Print tables and notes on standard output, and what stands beside them on standard error."""
    print_tables(tables)
    for note in notes:
        click.echo(note)
    tell(aside)


def print_tables(tables: Iterable[Table], *, stream: TextIO | None = None) -> None:
    """Print tables on standard output, or on `stream`, each as wide as the terminal at most."""
    out = stream or sys.stdout
    for table in tables:
        for part in table.cut(columns_of(out) - _EDGE_CHARACTERS):
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
    """Return width of the terminal, or of a log where there is none."""
    return shutil.get_terminal_size((LOG_COLUMNS, 24)).columns if stream.isatty() else LOG_COLUMNS


def _writable(cell: str) -> str:
    """Return a cell without control codes and lone surrogates: names come from the file, not from us."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "\N{REPLACEMENT CHARACTER}" for letter in cell)


table_file_options = option_group(
    click.option("--json", "json_path", type=OUTPUT_FILE, help="Write all values here."),
    click.option("--markdown", type=OUTPUT_FILE, help="Write the tables here as Markdown."),
    click.option(
        "--csv", "csv_path", type=OUTPUT_FILE, help="Write the tables here as CSV: a line for each value, unrounded."
    ),
    click.option("--latex", type=OUTPUT_FILE, help="Write the tables here as LaTeX (booktabs)."),
)
all_tables_option = click.option(
    "--all-tables", is_flag=True, help="Print all tables, not only the headline; files have them in any case."
)


def to_markdown(tables: Iterable[Table], notes: Sequence[str] = ()) -> str:
    """Return the tables as GitHub's Markdown, titles as bold lines, and the notes as a list of literal lines."""
    blocks = []
    for table in tables:
        # Never cut: pages scroll a wide table, and one table is easier to read than its pieces.
        rule = f"|{'---|' * table.heads}{'---:|' * (len(table.columns) - table.heads)}"
        lines = [f"**{table.title}**", "", _markdown_row(table.columns), rule]
        blocks.append("\n".join([*lines, *map(_markdown_row, table.rows)]))
    if notes:
        # A fence longer than any run of backticks in a note, which may quote the file.
        fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", "\n".join(notes)) or [""]))
        blocks.append("\n".join([fence, *notes, fence]))
    return "\n\n".join(blocks) + "\n"


def _markdown_row(cells: Sequence[Cell]) -> str:
    # A label is a metric line at worst, and a data set is called as the file says: neither may end a cell or a row.
    escaped = (" ".join(str(cell).replace("\\", "\\\\").replace("|", "\\|").split()) for cell in cells)
    return f"| {' | '.join(escaped)} |"


def to_tidy_csv(tables: Iterable[Table]) -> str:
    """Return a line for each cell: table, row, column, the number with its interval and p, and its text.

    A number that is not defined, and an interval that there is not, is an empty cell.
    """
    stream = io.StringIO()
    writer = csv.writer(stream)
    writer.writerow(CSV_COLUMNS)
    for table in tables:
        writer.writerows(_csv_lines(table))
    return stream.getvalue()


def _csv_lines(table: Table) -> Iterator[list[str]]:
    # A number in front of the name, in a column that has none, changes with every model that joins.
    naming = [place for place in range(table.heads) if table.columns[place]] or range(table.heads)
    for row in table.rows:
        named = ", ".join(str(row[place]) for place in naming)
        for column, cell in zip(table.columns[table.heads :], row[table.heads :], strict=True):
            each = cell if isinstance(cell, Value) else Value(cell)
            numbers = map(_exact, (each.value, each.low, each.high, each.p_value))
            yield [table.title, named, " ".join(column.split("\n")), *numbers, str(each)]


def _exact(value: float) -> str:
    if not math.isfinite(value):
        return ""
    # The shortest text that reads as this number again.
    return str(value) if isinstance(value, int) else repr(float(value))


def to_latex(tables: Iterable[Table], notes: Sequence[str] = ()) -> str:
    """Return the tables as LaTeX, each as a float with its title as caption, and the notes as comments at the top."""
    comments = [f"% {' '.join(_written(note).split())}" for note in notes]
    lines = [*_LATEX_HEAD, *comments]
    for place, table in enumerate(tables):
        # LaTeX gives up where too many floats wait for a page.
        lines += [*(["", r"\clearpage"] if place and place % _FLOATS_A_PAGE == 0 else []), "", _float(table)]
    return "\n".join(lines) + "\n"


def _float(table: Table) -> str:
    columns = "l" * table.heads + "r" * (len(table.columns) - table.heads)
    lines = [
        r"\begin{table}[htbp]",
        r"\centering",
        rf"\caption{{{escaped(table.title)}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        _latex_row(table.columns),
        r"\midrule",
        *map(_latex_row, table.rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines)


def _latex_row(cells: Sequence[Cell]) -> str:
    row = " & ".join(escaped(str(cell)) for cell in cells)
    # The end of the line before takes options: [ and * there are theirs.
    return rf"{{}}{row} \\" if row.startswith(("[", "*")) else rf"{row} \\"


def escaped(text: str) -> str:
    """Return a text as LaTeX prints it: one line, no character of it a command."""
    pieces = _LATEX_MINUS.split(" ".join(_written(text).split()))
    literal = (_LATEX_SPECIAL.sub(lambda found: _LATEX_ESCAPES[found[0]], piece) for piece in pieces)
    return "$-$".join(_LATEX_LIGATURE.sub(r"\1{}", piece) for piece in literal)


def _written(text: str) -> str:
    """Return the text without controls, and without what UTF-8 cannot hold: TeX stops at both."""
    return "".join(letter if letter.isprintable() or letter.isspace() else "?" for letter in text)


def table_files(options: Mapping[str, Any]) -> dict[str, Path | None]:
    """Return the files of `table_file_options`, by option."""
    names = {"--json": "json_path", "--markdown": "markdown", "--csv": "csv_path", "--latex": "latex"}
    return {option: options[name] for option, name in names.items()}


def write_tables(
    files: Mapping[str, Path | None], document: Mapping[str, Any], tables: Sequence[Table], notes: Sequence[str]
) -> None:
    """Write the files of `table_files`: JSON with all values, and the tables in three forms; raises InputError."""
    if (path := files["--json"]) is not None:
        write_json(path, document)
    if (path := files["--markdown"]) is not None:
        write_text(path, to_markdown(tables, notes))
    if (path := files["--csv"]) is not None:
        write_text(path, to_tidy_csv(tables))
    if (path := files["--latex"]) is not None:
        write_text(path, to_latex(tables, notes))


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Write a document of mappings, sequences and dataclasses; raises InputError where that cannot be."""
    write_text(path, json.dumps(plain(document), indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a file; a lone surrogate of the input becomes a question mark, for UTF-8 cannot hold it.

    Raises:
        InputError: It cannot be written.
    """
    with named_errors(path):
        path.write_text(text, encoding="utf-8", errors="replace")


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it; NaN and infinities become None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    return value
