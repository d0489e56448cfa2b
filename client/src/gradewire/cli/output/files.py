"""Files of figures (--json, --markdown): JSON in which what is not defined is null, or text."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Self

import click

from gradewire.cli.options.group import OUTPUT_FILE, option_group
from gradewire.cli.output.tables import FigureTable, to_markdown
from gradewire.cli.problems import named_errors

figure_file_options = option_group(
    click.option("--json", "json_path", type=OUTPUT_FILE, help="Write all figures here."),
    click.option("--markdown", type=OUTPUT_FILE, help="Write the tables here as Markdown."),
)


@dataclass(frozen=True, slots=True)
class FigureFiles:
    """Where `figure_file_options` say that all figures go (JSON), and the tables (Markdown)."""

    json: Path | None
    markdown: Path | None

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """Reads the options; others are not looked at."""
        return cls(options["json_path"], options["markdown"])

    @property
    def named(self) -> list[tuple[str, Path | None]]:
        """Option and file of each, as `refuse_overwriting` takes them."""
        return [("--json", self.json), ("--markdown", self.markdown)]

    def write(self, document: Mapping[str, Any], tables: Sequence[FigureTable], notes: Sequence[str]) -> None:
        """Writes what was asked for; raises InputError where that cannot be."""
        if self.json is not None:
            write_json(self.json, document)
        if self.markdown is not None:
            write_text(self.markdown, to_markdown(tables, notes))


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
