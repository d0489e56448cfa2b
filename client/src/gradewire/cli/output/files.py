"""Files of values: JSON in which what is not defined is null, and the tables as Markdown, CSV and LaTeX."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Self

import click

from gradewire.cli.options.group import OUTPUT_FILE, option_group
from gradewire.cli.output.forms import to_latex, to_markdown, to_tidy_csv
from gradewire.cli.problems import named_errors
from gradewire.tables import Table

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


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFiles:
    """The files of `table_file_options`: JSON with all values, and the tables in three forms."""

    json: Path | None
    markdown: Path | None
    csv: Path | None
    latex: Path | None

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """Reads the options; others are not looked at."""
        return cls(
            json=options["json_path"],
            markdown=options["markdown"],
            csv=options["csv_path"],
            latex=options["latex"],
        )

    @property
    def named(self) -> list[tuple[str, Path | None]]:
        """Option and file of each, as `check_outputs` takes them."""
        return [("--json", self.json), ("--markdown", self.markdown), ("--csv", self.csv), ("--latex", self.latex)]

    def write(self, document: Mapping[str, Any], tables: Sequence[Table], notes: Sequence[str]) -> None:
        """Writes what was asked for; raises InputError where that cannot be."""
        if self.json is not None:
            write_json(self.json, document)
        if self.markdown is not None:
            write_text(self.markdown, to_markdown(tables, notes))
        if self.csv is not None:
            write_text(self.csv, to_tidy_csv(tables))
        if self.latex is not None:
            write_text(self.latex, to_latex(tables, notes))


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Writes a document of mappings, sequences and dataclasses; raises InputError where that cannot be."""
    write_text(path, json.dumps(plain(document), indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Writes a file; a lone surrogate of the input becomes a question mark, for UTF-8 cannot hold it.

    Raises:
        InputError: It cannot be written.
    """
    with named_errors(path):
        path.write_text(text, encoding="utf-8", errors="replace")


def plain(value: Any) -> Any:
    """A value as JSON can hold it; NaN and infinities become None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    return value
