"""Numbers as the page writes them."""

import math
from dataclasses import dataclass, replace

from gradewire.agreement import Estimate
from gradewire.agreement.estimates import Difference

UNDEFINED = "\u2013"
MINUS = "\u2212"


@dataclass(frozen=True, slots=True)
class Figure:
    """A cell of a table.

    Attributes:
        text: The value, or a dash where it is not defined.
        interval: Its 95 % interval, or "".
        order: What sorting goes by; "" sorts last.
        remark: What the value is about where that differs from its neighbours, or "".
        beside: Another figure of the same, named, with its interval; or "".
    """

    text: str
    interval: str = ""
    order: str = ""
    remark: str = ""
    beside: str = ""


def number(value: float) -> str:
    """Three decimals, with a true minus sign."""
    return UNDEFINED if math.isnan(value) else f"{value:.3f}".replace("-", MINUS)


def estimated(estimate: Estimate) -> Figure:
    """A value with its interval."""
    if math.isnan(estimate.value):
        return Figure(UNDEFINED)
    interval = "" if math.isnan(estimate.low) else f"{number(estimate.low)} to {number(estimate.high)}"
    return Figure(number(estimate.value), interval, f"{estimate.value:.6g}")


def over_cells(figure: Figure, cells: int, cells_in_all: int) -> Figure:
    """A mean of cells, with the number of cells where these are not all."""
    if cells == cells_in_all or figure.text == UNDEFINED:
        return figure
    return replace(figure, remark=f"over {cells:,} of {cells_in_all:,} cells")


def with_all_rows(figure: Figure, estimate: Estimate) -> Figure:
    """A mean of cells without an interval, with the figure over all rows beside it where that has one."""
    if figure.interval or figure.text == UNDEFINED or math.isnan(estimate.low):
        return figure
    every = estimated(estimate)
    return replace(figure, beside=f"all rows {every.text} ({every.interval})")


def p_value(difference: Difference) -> Figure:
    """A p value; the smallest written out is 0.001, or the smallest that so few draws can give."""
    value = difference.p_value
    if math.isnan(value):
        return Figure(UNDEFINED)
    if value < 0.001:
        text = "< 0.001"
    elif difference.at_floor:
        text = f"\u2264 {math.ceil(value * 1000) / 1000:.3f}"
    else:
        text = f"{value:.3f}"
    return Figure(text, order=f"{value:.6g}")


def count(value: int) -> Figure:
    """A number of rows."""
    return Figure(f"{value:,}", order=str(value))
