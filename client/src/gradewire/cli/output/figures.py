"""Figures of tables: each with its number as it was computed, and as it is written."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradewire.agreement import CellsMean, Difference, Estimate


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a table.

    Attributes:
        text: As people read it: rounded, with its interval and what is to be known beside it.
        value: As it was computed; NaN where it is not defined.
        low: Lower bound of its 95 % interval; NaN without one.
        high: Upper bound; NaN without an interval.
        p_value: Of a difference; NaN without one.
    """

    text: str
    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    p_value: float = math.nan

    def __str__(self) -> str:
        """As people read it."""
        return self.text

    def beside(self, note: str) -> Figure:
        """The same figure with a note in brackets behind it."""
        return replace(self, text=f"{self.text} ({note})")


def number(value: float, *, digits: int = 3) -> str:
    """A number for people; a dash where it is not defined."""
    return "-" if math.isnan(value) else f"{value:.{digits}f}"


def measured(value: float, *, digits: int = 3) -> Figure:
    """A number without an interval."""
    return Figure(number(value, digits=digits), value)


def count(value: int) -> Figure:
    """A number of rows or the like."""
    return Figure(str(value), value)


def estimated(estimate: Estimate) -> Figure:
    """A value and its 95 % interval; a dash where it is not defined."""
    text = number(estimate.value)
    if not math.isnan(estimate.low):
        text = f"{text} [{_bound(estimate.low)}, {_bound(estimate.high)}]"
    return Figure(text, estimate.value, estimate.low, estimate.high)


def differing(difference: Difference) -> Figure:
    """A difference, its interval and its p value; one digit more than a value, for differences are small."""
    text = "-"
    if not math.isnan(difference.value):
        text = f"{difference.value:+.4f}"
        if not math.isnan(difference.low):
            text = f"{text} [{difference.low:+.4f}, {difference.high:+.4f}] {_p_value(difference)}"
    return Figure(text, difference.value, difference.low, difference.high, difference.p_value)


def of_cells(figure: Figure, cells: int, cells_in_all: int) -> Figure:
    """A mean of cells, with the number of cells in it where these are not all."""
    return figure if cells in {0, cells_in_all} else figure.beside(f"{cells} of {cells_in_all}")


def cells_mean(mean: CellsMean) -> Figure:
    """A mean of cells with its interval, and the number of cells in it where these are not all."""
    return of_cells(estimated(mean), mean.cells, mean.cells_in_all)


def _p_value(difference: Difference) -> str:
    if math.isnan(difference.p_value):
        return "no p"
    if difference.p_value < 0.001:
        return "p < 0.001"
    if difference.at_floor:
        # So few draws can say no less; rounded up, so that what is written is true.
        return f"p <= {math.ceil(difference.p_value * 1000) / 1000:.3f}"
    return f"p = {difference.p_value:.3f}"


def _bound(value: float) -> str:
    """As `number`, without the 0 before the point: intervals are read by their digits."""
    return re.sub(r"^(-?)0\.", r"\1.", number(value))
