"""Write tables to files as Markdown, tidy CSV, LaTeX and JSON."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from gradewire_cli.problems import named_errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path


from gradewire_cli.results.tables import Cell, Table, Value

CSV_COLUMNS = ("table", "row", "column", "value", "low", "high", "p_value", "text")
_LATEX_HEAD = (
    "% Needs \\usepackage{booktabs}; wide tables can be set in \\small or turned with pdflscape.",
    "% Names in scripts that pdflatex does not support need lualatex or xelatex.",
)
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
# LaTeX joins two of these characters into one dash or quotation mark.
_LATEX_LIGATURE = re.compile(r"([-',])(?=\1)")
# A minus sign precedes a digit, and follows a space, a bracket or nothing.
_LATEX_MINUS = re.compile(r"(?<![^\s\[(])-(?=\.?\d)")


def to_markdown(tables: Iterable[Table], notes: Sequence[str] = ()) -> str:
    """Return the tables as GitHub Markdown with bold titles, and the notes as a literal block."""
    blocks = []
    for table in tables:
        rule = f"|{'---|' * table.heads}{'---:|' * (len(table.columns) - table.heads)}"
        lines = [f"**{table.title}**", "", _markdown_row(table.columns), rule]
        blocks.append("\n".join([*lines, *map(_markdown_row, table.rows)]))
    if notes:
        # The fence must be longer than any run of backticks in a note.
        fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", "\n".join(notes)) or [""]))
        blocks.append("\n".join([fence, *notes, fence]))
    return "\n\n".join(blocks) + "\n"


def _markdown_row(cells: Sequence[Cell]) -> str:
    # Metric identifiers and data set names must not end a cell or a row.
    escaped = (" ".join(str(cell).replace("\\", "\\\\").replace("|", "\\|").split()) for cell in cells)
    return f"| {' | '.join(escaped)} |"


def to_tidy_csv(tables: Iterable[Table]) -> str:
    """Return CSV with a line for each cell: table, row, column, number, interval, p value, text.

    Undefined numbers and missing intervals become empty fields.
    """
    stream = io.StringIO()
    writer = csv.writer(stream)
    writer.writerow(CSV_COLUMNS)
    for table in tables:
        writer.writerows(_csv_lines(table))
    return stream.getvalue()


def _csv_lines(table: Table) -> Iterator[list[str]]:
    # Leave out columns without a head. They contain ranks, which change with every new model.
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
    # shortest exact text
    return str(value) if isinstance(value, int) else repr(float(value))


def to_latex(tables: Iterable[Table], notes: Sequence[str] = ()) -> str:
    """Return the tables as LaTeX floats with titles as captions, and the notes as comments at the top."""
    comments = [f"% {' '.join(_without_control_characters(note).split())}" for note in notes]
    lines = [*_LATEX_HEAD, *comments]
    for place, table in enumerate(tables):
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
    # LaTeX would parse [ or * after the previous line's \\ as an option.
    return rf"{{}}{row} \\" if row.startswith(("[", "*")) else rf"{row} \\"


def escaped(text: str) -> str:
    """Return a string on one line, with LaTeX's special characters escaped."""
    pieces = _LATEX_MINUS.split(" ".join(_without_control_characters(text).split()))
    literal = (_LATEX_SPECIAL.sub(lambda found: _LATEX_ESCAPES[found[0]], piece) for piece in pieces)
    return "$-$".join(_LATEX_LIGATURE.sub(r"\1{}", piece) for piece in literal)


def _without_control_characters(text: str) -> str:
    return "".join(letter if letter.isprintable() or letter.isspace() else "?" for letter in text)


def table_files(options: Mapping[str, Any]) -> dict[str, Path | None]:
    """Return the output files from `table_file_options`, by option."""
    names = {"--json": "json_path", "--markdown": "markdown", "--csv": "csv_path", "--latex": "latex"}
    return {option: options[name] for option, name in names.items()}


def write_tables(
    files: Mapping[str, Path | None], document: Mapping[str, Any], tables: Sequence[Table], notes: Sequence[str]
) -> None:
    """Write the requested files; raise InputError on failure."""
    if (path := files["--json"]) is not None:
        write_json(path, document)
    if (path := files["--markdown"]) is not None:
        write_text(path, to_markdown(tables, notes))
    if (path := files["--csv"]) is not None:
        write_text(path, to_tidy_csv(tables))
    if (path := files["--latex"]) is not None:
        write_text(path, to_latex(tables, notes))


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Write nested mappings, sequences and dataclasses as JSON; raise InputError on failure."""
    write_text(path, json.dumps(plain(document), indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a UTF-8 file; raise InputError on failure. Lone surrogates become question marks."""
    with named_errors(path):
        path.write_text(text, encoding="utf-8", errors="replace")


def plain(value: Any) -> Any:
    """Convert a value to JSON types. NaN and infinities become None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    return value
