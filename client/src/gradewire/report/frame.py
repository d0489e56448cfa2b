"""The frame of a chart: positions of values in the drawing, and round numbers along its axes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gradewire.report.figures import MINUS

# Edges of the plot, in units of the drawing (pixels at its natural size, 270 x 214).
LEFT, RIGHT, TOP, BOTTOM = 44.0, 260.0, 12.0, 170.0
_TICKS = 4


@dataclass(frozen=True, slots=True)
class Tick:
    """A labelled position on an axis."""

    position: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Range of the horizontal axis, low below high, and what both axes show; the vertical one runs from 0 to 1."""

    x_low: float = 0.0
    x_high: float = 1.0
    x_label: str
    y_label: str

    def x(self, value: float) -> float:
        """Position of a value on the horizontal axis."""
        return round(LEFT + (value - self.x_low) / (self.x_high - self.x_low) * (RIGHT - LEFT), 1)

    def y(self, value: float) -> float:
        """Position of a value on the vertical axis, which grows upward."""
        return round(BOTTOM - value * (BOTTOM - TOP), 1)

    @property
    def x_ticks(self) -> list[Tick]:
        """Along the horizontal axis."""
        return [Tick(self.x(value), text) for value, text in round_values(self.x_low, self.x_high)]

    @property
    def y_ticks(self) -> list[Tick]:
        """Along the vertical axis."""
        return [Tick(self.y(value), text) for value, text in round_values(0.0, 1.0)]


def padded(low: float, high: float) -> tuple[float, float]:
    """A range with room for one value alone: [0, 1] where it fits into that, else its own ends."""
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def round_values(low: float, high: float) -> list[tuple[float, str]]:
    """Round numbers from `low` to `high`, at most six, with their text."""
    rough = (high - low) / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999)
    decimals = max(0, -math.floor(math.log10(step)) + (1 if step / power == 2.5 else 0))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [(n * step, f"{n * step + 0.0:.{decimals}f}".replace("-", MINUS)) for n in range(first, last + 1)]
