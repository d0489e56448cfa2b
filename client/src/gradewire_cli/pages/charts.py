"""The drawer of all charts: marks in a drawing, which one template writes as SVG."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gradewire_cli.pages.texts import MINUS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Edges of the plot, in units of the drawing (pixels at its natural size, 270 x 214).
LEFT, RIGHT, TOP, BOTTOM = 44.0, 260.0, 12.0, 170.0
_TICKS = 4
_MIDDLE = (LEFT + RIGHT) / 2


@dataclass(frozen=True, slots=True)
class Path:
    """A line or an area; `style` is its class, `is_hatched` fills it with stripes too."""

    style: str
    path: str
    is_hatched: bool = False


@dataclass(frozen=True, slots=True)
class Dot:
    """A point, with a text that is shown on hover."""

    x: float
    y: float
    text: str = ""
    style: str = "dot"


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle."""

    style: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Label:
    """A text in the drawing, of at most `most` characters; the whole text is shown on hover where it is cut."""

    style: str
    x: float
    y: float
    text: str
    anchor: str = "start"
    is_upright: bool = False
    most: int = 0

    @property
    def shown(self) -> str:
        """The text, cut."""
        return f"{self.text[: self.most - 1]}…" if 0 < self.most < len(self.text) else self.text


Mark = Path | Dot | Box | Label


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A drawing.

    Attributes:
        title: Its name for a screen reader.
        summary: What it shows, in words; "" without any.
        caption: Text below it; "" without any.
        marks: What is drawn, the first below the others.
        width: In units of the drawing.
        height: As `width`.
        key: Style and name of each curve where there are several.
    """

    title: str
    summary: str = ""
    caption: str = ""
    marks: Sequence[Mark]
    width: float = 270
    height: float = 214
    key: Sequence[tuple[str, str]] = field(default=())


@dataclass(frozen=True, slots=True)
class Axis:
    """Positions of values along an axis, from `begin` to `end` in the drawing; logarithmic where `is_log`."""

    low: float
    high: float
    begin: float = LEFT
    end: float = RIGHT
    is_log: bool = False

    def at(self, value: float) -> float:
        """Return the position of a value."""
        share = (value - self.low) / (self.high - self.low)
        if self.is_log:
            share = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        return round(self.begin + share * (self.end - self.begin), 1)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Positions of round numbers, with their texts."""
        if not self.is_log:
            return [(self.at(value), text) for value, text in round_values(self.low, self.high)]
        powers = range(math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9) + 1)
        return [(self.at(10.0**power), f"{10.0**power:g}") for power in powers]


def upward(low: float = 0.0, high: float = 1.0, *, is_log: bool = False) -> Axis:
    """Return a vertical axis."""
    return Axis(low, high, BOTTOM, TOP, is_log)


def axes(x: Iterable[tuple[float, str]], y: Iterable[tuple[float, str]], x_label: str, y_label: str) -> list[Mark]:
    """Return the marks of two axes with their ticks (position and text) and names."""
    marks: list[Mark] = []
    for at, text in x:
        marks += [Path("grid", f"M{at} {TOP:g}V{BOTTOM:g}"), Label("tick", at, BOTTOM + 13, text, "middle")]
    for at, text in y:
        marks += [Path("grid", f"M{LEFT:g} {at}H{RIGHT:g}"), Label("tick", LEFT - 5, at + 4, text, "end")]
    return [
        *marks,
        Path("axis", f"M{LEFT:g} {TOP:g}V{BOTTOM:g}H{RIGHT:g}"),
        Label("name", _MIDDLE, BOTTOM + 34, x_label, "middle"),
        Label("name", 11, (TOP + BOTTOM) / 2, y_label, "middle", is_upright=True),
    ]


def line(points: Iterable[tuple[float, float]]) -> str:
    """Return the path through these points."""
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in points)


@dataclass(frozen=True, slots=True)
class Interval:
    """A line of an interval chart; `low` and `high` are NaN without an interval."""

    name: str
    value: float
    low: float
    high: float
    text: str
    remark: str = ""


def interval_chart(intervals: Sequence[Interval], axis: Axis, name: str, *, over: str, title: str) -> Chart:
    """Return values with their intervals, one below the other; `over` says over which rows."""
    # Name and axis stand above and below: with twenty metrics one of them is off the screen.
    head, step = 38, 34
    foot = head + step * len(intervals)
    marks: list[Mark] = [Label("name head", _MIDDLE, 13, name, "middle")]
    for at, text in axis.ticks:
        marks.append(Path("grid", f"M{at} {head}V{foot}"))
        marks += [Label("tick", at, head - 7, text, "middle"), Label("tick", at, foot + 14, text, "middle")]
    marks.append(Path("axis", f"M{LEFT:g} {head}H{RIGHT:g}M{LEFT:g} {foot}H{RIGHT:g}"))
    for place, one in enumerate(intervals):
        y = head + step * place + 21
        marks.append(Label("direct", 2, y - 9, one.name, most=26 if one.remark else 34))
        if one.remark:
            marks.append(Label("tick cells", RIGHT, y - 9, one.remark, "end"))
        if not math.isnan(one.low):
            low, high = axis.at(one.low), axis.at(one.high)
            marks.append(Path("bar", f"M{low} {y}H{high}M{low} {y - 4}V{y + 4}M{high} {y - 4}V{y + 4}"))
        marks += [Dot(axis.at(one.value), y), Label("tick", 2, y + 4, one.text)]
    marks.append(Label("name", _MIDDLE, foot + 34, f"{name}, {over}", "middle"))
    return Chart(title=title, marks=marks, height=foot + 40)


def share_chart(title: str, caption: str, bars: Sequence[tuple[str, str, Sequence[tuple[str, int]]]]) -> Chart:
    """Return a bar for each line, in parts as long as their numbers: name, text, and style and number of each part."""
    length, step = 260.0, 34
    marks: list[Mark] = []
    for place, (name, text, parts) in enumerate(bars):
        y, begin, total = step * place, 0.0, sum(number for _, number in parts)
        marks += [Label("direct", 2, y + 12, name, most=34), Label("tick", length + 2, y + 12, text, "end")]
        for style, number in parts:
            if number:
                width = length * number / total
                marks.append(Box(f"part {style}", round(begin + 2, 2), y + 17, round(width, 2), 13))
                begin += width
    return Chart(title=title, caption=caption, marks=marks, width=length + 4, height=step * len(bars) + 4)


def padded(low: float, high: float) -> tuple[float, float]:
    """Return a range with room for one value alone: [0, 1] where it fits into that, else its own ends."""
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def round_values(low: float, high: float) -> list[tuple[float, str]]:
    """Return round numbers from `low` to `high`, at most six, with their text."""
    rough = (high - low) / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999)
    decimals = max(0, -math.floor(math.log10(step)) + (1 if step / power == 2.5 else 0))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [(n * step, f"{n * step + 0.0:.{decimals}f}".replace("-", MINUS)) for n in range(first, last + 1)]
