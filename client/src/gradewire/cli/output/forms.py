"""Tables in the forms that other programs read: Markdown, CSV with a line for each value, LaTeX (booktabs)."""

from __future__ import annotations

import csv
import io
import math
import re
from typing import TYPE_CHECKING

from gradewire.tables import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gradewire.tables import Cell, Table

COLUMNS = ("table", "row", "column", "value", "low", "high", "p_value", "text")
_HEAD = (
    "% Needs \\usepackage{booktabs}; wide tables can be set in \\small or turned with pdflscape.",
    "% Names in scripts that pdflatex has no letters for need lualatex or xelatex.",
)
# Tables between two page breaks.
_FLOATS = 12
_ESCAPED = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "`": r"\textasciigrave{}",
    **{letter: f"\\{letter}" for letter in "{}$&#_%"},
}
_SPECIAL = re.compile("|".join(map(re.escape, _ESCAPED)))
# Two of them are drawn as one sign: a dash, a quotation mark.
_LIGATURE = re.compile(r"([-',])(?=\1)")
# A sign, not a hyphen: before a number that nothing is joined to.
_MINUS = re.compile(r"(?<![^\s\[(])-(?=\.?\d)")


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
    writer.writerow(COLUMNS)
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
    lines = [*_HEAD, *comments]
    for place, table in enumerate(tables):
        # LaTeX gives up where too many floats wait for a page.
        lines += [*(["", r"\clearpage"] if place and place % _FLOATS == 0 else []), "", _float(table)]
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
    # What ends the line before takes options: [ and * there are theirs.
    return rf"{{}}{row} \\" if row.startswith(("[", "*")) else rf"{row} \\"


def escaped(text: str) -> str:
    """Return a text as LaTeX prints it: one line, no character of it a command."""
    pieces = _MINUS.split(" ".join(_written(text).split()))
    literal = (_SPECIAL.sub(lambda found: _ESCAPED[found[0]], piece) for piece in pieces)
    return "$-$".join(_LIGATURE.sub(r"\1{}", piece) for piece in literal)


def _written(text: str) -> str:
    """Return the text without controls, and without what UTF-8 cannot hold: TeX stops at both."""
    return "".join(letter if letter.isprintable() or letter.isspace() else "?" for letter in text)
