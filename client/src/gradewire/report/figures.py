"""Numbers as the page writes them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradewire.agreement import Estimate

UNDEFINED = "\u2013"
MINUS = "\u2212"


@dataclass(frozen=True, slots=True)
class Figure:
    """A cell of a table.

    Attributes:
        text: The value, or a dash where it is not defined.
        interval: Its 95 % interval, or "".
        order: What sorting goes by; "" sorts last.
    """

    text: str
    interval: str = ""
    order: str = ""


def number(value: float) -> str:
    """Three decimals, with a true minus sign."""
    return UNDEFINED if math.isnan(value) else f"{value:.3f}".replace("-", MINUS)


def estimated(estimate: Estimate) -> Figure:
    """A value with its interval."""
    if math.isnan(estimate.value):
        return Figure(UNDEFINED)
    interval = "" if math.isnan(estimate.low) else f"{number(estimate.low)} to {number(estimate.high)}"
    return Figure(number(estimate.value), interval, f"{estimate.value:.6g}")


def p_value(value: float) -> Figure:
    """A p value; the smallest that is written out is 0.001."""
    if math.isnan(value):
        return Figure(UNDEFINED)
    return Figure("< 0.001" if value < 0.001 else f"{value:.3f}", order=f"{value:.6g}")


def count(value: int) -> Figure:
    """A number of rows."""
    return Figure(f"{value:,}", order=str(value))
