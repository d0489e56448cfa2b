"""Make docs/research/papers.md out of printed and measured values.

`comparisons.tsv` has a line for each compared value: the printed value, and the cell of a table in benchmarks/results
with ours. `papers.toml` describes papers, tables, sources of our values and reasons for differences.
"""

from __future__ import annotations

import csv
import tomllib
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from benchmarks.papers.result_tables import Figure, figure, section_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parents[1]
RESULTS: Final = ROOT / "benchmarks" / "results"
PAGE: Final = ROOT / "docs" / "research" / "papers.md"
COLUMNS: Final = ("paper", "table", "row", "column", "printed", "ours", "reasons")


@dataclass(frozen=True)
class Comparison:
    """A printed value and the place of ours.

    Attributes:
        paper, table: Key of the paper, and the table's number.
        row, column: Names in the paper's table.
        printed: Values as printed; a mean is compared if there are several.
        source: Key of the source of our value.
        place: Title of the source's table, row, and columns. The mean of several columns is compared.
        reasons: Keys of the reasons for a difference.
    """

    paper: str
    table: str
    row: str
    column: str
    printed: tuple[str, ...]
    source: str
    place: tuple[str, str, tuple[str, ...]]
    reasons: tuple[str, ...]

    @property
    def digits(self) -> int:
        """Decimals of the printed values."""
        return max(len(each.partition(".")[2]) for each in self.printed)


@dataclass(frozen=True)
class Papers:
    """Papers, their tables, sources and reasons (papers.toml), and the comparisons (comparisons.tsv)."""

    about: Mapping[str, Any]
    comparisons: Sequence[Comparison]

    @classmethod
    def read(cls) -> Papers:
        """Read both files.

        Raises:
            ValueError: A line of comparisons.tsv lacks a value.
        """
        about = tomllib.loads((HERE / "papers.toml").read_text("utf-8"))
        with (HERE / "comparisons.tsv").open(encoding="utf-8", newline="") as lines:
            return cls(about, [_comparison(row) for row in csv.DictReader(lines, delimiter="\t")])

    def ours(self, each: Comparison) -> Figure:
        """Return our value, in the paper's scale."""
        source = self.about["sources"][each.source]
        found = figure(section_of(RESULTS / source["page"], source["section"]), *each.place)
        scale = self._table(each)["scale"]
        low, high = (None if limit is None else limit * scale for limit in (found.low, found.high))
        return Figure(found.value * scale, low, high, found.failed)

    def printed(self, each: Comparison) -> float:
        """Return the printed value, or the mean of the printed values."""
        values = [float(value) for value in each.printed]
        return fmean(map(abs, values) if self._table(each).get("absolute") else values)

    def _table(self, each: Comparison) -> Mapping[str, Any]:
        table: Mapping[str, Any] = self.about["papers"][each.paper]["tables"][each.table]
        return table

    def page(self) -> str:
        """Return the generated block of the page."""
        lines: list[str] = []
        for (paper, number), rows in groupby(self.comparisons, lambda each: (each.paper, each.table)):
            lines += self._compared(paper, number, list(rows))
        return "\n".join([*lines, *self._left_out(), *self._explained()]) + "\n"

    def _compared(self, paper: str, number: str, rows: Sequence[Comparison]) -> Iterator[str]:
        about = self.about["papers"][paper]
        yield f"### {about['name']}, table {number}: {about['tables'][number]['title']}\n"
        for key in dict.fromkeys(row.source for row in rows):
            source = self.about["sources"][key]
            link = f"[{source['data']}](../../benchmarks/results/{source['page']}#{source['anchor']})"
            yield f"Ours: {link},\nby `{source['command']}`.\n"
            yield "| row | column | printed | ours | difference | reason |"
            yield "|---|---|---:|---:|---:|---|"
            yield from (self._line(row) for row in rows if row.source == key)
            yield ""

    def _line(self, each: Comparison) -> str:
        ours, printed = self.ours(each), self.printed(each)
        # Results pages have three decimals of values from 0 to 1, so a paper's percentages get one.
        digits = each.digits if self._table(each)["scale"] == 1 else min(each.digits, 1)
        difference = f"{round(ours.value, digits) - round(printed, digits):+.{digits}f}"
        shown = f"{ours.value:.{digits}f}"
        if ours.low is not None and ours.high is not None:
            shown += f" [{ours.low:.{digits}f}, {ours.high:.{digits}f}]"
        if ours.failed:
            # Failed scores are often those of hard rows, so the value may be too good.
            shown += f", {ours.failed} failed"
        column = each.column + (f", mean of {len(each.printed)}" if len(each.printed) > 1 else "")
        cells = (each.row, column, f"{printed:.{each.digits}f}", shown, difference, ", ".join(each.reasons))
        return f"| {' | '.join(cells)} |"

    def _left_out(self) -> Iterator[str]:
        yield "### Not reproduced\n"
        yield "| table | rows | reason |"
        yield "|---|---|---|"
        for paper, about in self.about["papers"].items():
            for each in self.about["not_reproduced"]:
                if each["paper"] == paper:
                    yield f"| {about['name']}, {each['table']} | {each['rows']} | {each['reason']} |"
        yield ""

    def _explained(self) -> Iterator[str]:
        yield "### Reasons\n"
        for key, text in self.about["reasons"].items():
            yield f"- **{key}**: {text}"


def _comparison(row: Mapping[str, str]) -> Comparison:
    if not all(row.get(column) for column in COLUMNS):
        raise ValueError(f"a line of comparisons.tsv lacks a value: {row}")
    source, table, name, columns = row["ours"].split(" / ")
    return Comparison(
        paper=row["paper"],
        table=row["table"],
        row=row["row"],
        column=row["column"],
        printed=tuple(row["printed"].split()),
        source=source,
        place=("" if table == "-" else table, name, tuple(columns.split("; "))),
        reasons=tuple(row["reasons"].split(", ")),
    )
