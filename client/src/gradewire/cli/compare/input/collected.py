"""Rows of all files, with what metrics say of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gradewire.cli.choosing.pairs import Answer, Result

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gradewire.cli.input.rows import Row


@dataclass(slots=True)
class Collected:
    """All rows, about 2 KB each beside their texts.

    Attributes:
        rows: In the order of the files; `row.index` numbers them over all files.
        lines: What reproduces each metric, by file and label; one file "" where all were scored by this run.
        results: By `row.index` and label.
        notes: What people should know of the files, in sentences.
    """

    rows: Sequence[Row]
    lines: dict[str, Mapping[str, str]] = field(default_factory=dict)
    results: dict[int, Mapping[str, Result]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def answer(self, row: Row) -> Answer:
        """A row with its results."""
        return Answer(row, self.results.get(row.index, {}))

    def lines_of(self, row: Row) -> Mapping[str, str]:
        """What reproduces the metrics of a row, by label."""
        return self.lines.get(row.file, self.lines.get("", {}))
