"""Tables of values: one model for the terminal, CSV, LaTeX, Markdown and pages."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gradewire.agreement import CellsMean, Difference, Estimate

UNDEFINED = "-"
# Characters between two columns of a table in a terminal.
_GAP = 3


@dataclass(frozen=True, slots=True)
class Value:
    """A cell with a number: as it was computed, and as people read it.

    Attributes:
        text: The number, rounded; a dash where it is not defined.
        value: The number as it was computed; NaN where it is not defined.
        low: Lower bound of its 95 % interval; NaN without one.
        high: Upper bound; NaN without an interval.
        p_value: Of a difference; NaN without one.
        bounds: Both bounds, rounded; empty without an interval.
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
        title: The caption.
        columns: Heads; a line break in them is one in the terminal.
        rows: Cells; the first of each name the row, and stand again wherever the table is cut.
        heads: Number of cells that name a row.
        explained: Meaning of columns, by head; pages show it.
        filters: Values of each row that the selection boxes of a page choose by; empty without such boxes.
        note: A sentence on what is left out.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    heads: int = 1
    explained: Mapping[str, str] = field(default_factory=dict)
    filters: Sequence[Mapping[str, str]] = ()
    note: str = ""

    def cut(self, width: int, *, gap: int = _GAP) -> Iterator[Table]:
        """Yield the same columns in as few tables as fit into `width` characters, with at least one value in each."""
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
