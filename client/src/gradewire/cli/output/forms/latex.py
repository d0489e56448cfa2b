"""Tables of figures as LaTeX (booktabs), for a document to input."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gradewire.tables import Table, Value

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


def to_latex(tables: Iterable[Table], notes: Sequence[str] = ()) -> str:
    """The tables, each as a float with its title as caption, and the notes as comments at the top."""
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
        _row(table.columns),
        r"\midrule",
        *map(_row, table.rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines)


def _row(cells: Sequence[Value | str]) -> str:
    row = " & ".join(escaped(str(cell)) for cell in cells)
    # What ends the line before takes options: [ and * there are theirs.
    return rf"{{}}{row} \\" if row.startswith(("[", "*")) else rf"{row} \\"


def escaped(text: str) -> str:
    """A text as LaTeX prints it: one line, no character of it a command."""
    pieces = _MINUS.split(" ".join(_written(text).split()))
    literal = (_SPECIAL.sub(lambda found: _ESCAPED[found[0]], piece) for piece in pieces)
    return "$-$".join(_LIGATURE.sub(r"\1{}", piece) for piece in literal)


def _written(text: str) -> str:
    """The text without controls, and without what UTF-8 cannot hold: TeX stops at both."""
    return "".join(letter if letter.isprintable() or letter.isspace() else "?" for letter in text)
