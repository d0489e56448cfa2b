"""Computes the plots of a load run, which the template draws."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from gradewire.report.figures import Figure
from gradewire.report.frame import BOTTOM, LEFT, RIGHT, TOP, Tick, round_values
from gradewire.report.load.input import LoadInput, LoadStep
from gradewire.report.tables import Column, Line, Table

# How a line is drawn: colour and dashes both differ.
_STYLES: Final = ("first", "second", "third", "fourth")
_STEPS_DRAWN: Final = 4


@dataclass(frozen=True, slots=True)
class Axis:
    """Positions of values along one axis; logarithmic where `is_log`."""

    low: float
    high: float
    begin: float
    end: float
    is_log: bool = False

    def at(self, value: float) -> float:
        """Position of a value, held within the axis."""
        value = min(max(value, self.low), self.high)
        share = (value - self.low) / (self.high - self.low)
        if self.is_log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        return round(self.begin + share * (self.end - self.begin), 1)

    @property
    def ticks(self) -> list[Tick]:
        """Round numbers along it."""
        if not self.is_log:
            return [Tick(self.at(value), text) for value, text in round_values(self.low, self.high)]
        powers = range(math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9) + 1)
        return [Tick(self.at(10.0**power), f"{10.0**power:g}") for power in powers]


@dataclass(frozen=True, slots=True)
class Curve:
    """A line of a plot, with dots where `dots` are (position and what they say)."""

    style: str
    name: str
    path: str
    dots: Sequence[tuple[float, float, str]] = ()


@dataclass(frozen=True, slots=True)
class Frame:
    """What the template's axes take."""

    x_ticks: Sequence[Tick]
    y_ticks: Sequence[Tick]
    x_label: str
    y_label: str


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot with the table of its values.

    Attributes:
        marks: Vertical lines: position and name.
        limits: Horizontal ones.
    """

    title: str
    summary: str
    frame: Frame
    curves: Sequence[Curve]
    table: Table
    marks: Sequence[tuple[float, str]] = ()
    limits: Sequence[tuple[float, str]] = ()


def plots(load: LoadInput) -> list[Plot]:
    """All that can be drawn of what was measured."""
    # Of a rate that was tried twice the second try stands.
    by_rate = {(step.rate_per_s, step.over_knee): step for step in load.steps if step.rate_per_s > 0}
    steps = sorted(by_rate.values(), key=lambda step: step.rate_per_s)
    found = [_by_percentile(load, steps), _latency_by_rate(load, steps)]
    found += [
        _by_rate(
            steps, "Scored calls by offered rate", "scored calls/s", lambda step: step.scored_per_s, "scored in time"
        ),
        _by_rate(
            steps, "Refused calls by offered rate", "refused, %", lambda step: 100 * step.refused_share, "refused"
        ),
        _by_rate(
            steps, "How late the client sent, by offered rate", "lag p99, ms", lambda step: 1e3 * step.lag_p99_s, "lag"
        ),
    ]
    return [plot for plot in found if plot is not None]


def _by_percentile(load: LoadInput, steps: Sequence[LoadStep]) -> Plot | None:
    drawn = _most_telling([step for step in steps if step.curve])
    if not drawn:
        return None
    # "Nines": 1 / (1 - percentile), so that each digit of the tail has the same room.
    most = max(1 / (1 - percentile / 100) for step in drawn for percentile, _ in step.curve if percentile < 100)
    x = Axis(1.0, max(10.0, most), LEFT, RIGHT, is_log=True)
    latencies = [1e3 * latency_s for step in drawn for _, latency_s in step.curve]
    y = _log_axis(latencies)
    curves = [
        Curve(
            style, step.name, _path([(x.at(1 / (1 - place / 100)), y.at(1e3 * value)) for place, value in _tail(step)])
        )
        for style, step in zip(_STYLES, drawn, strict=False)
    ]
    ticks = [Tick(tick.position, _percentile_text(float(tick.text))) for tick in x.ticks]
    columns = [Column("Percentile"), *(Column(step.name) for step in drawn)]
    by_place = [dict(step.curve) for step in drawn]
    places = sorted({place for step in drawn for place, _ in step.curve})
    lines = [
        Line(
            [
                _figure(place, 4),
                *(_figure(1e3 * found[place], 1) if place in found else Figure("") for found in by_place),
            ]
        )
        for place in places
    ]
    return Plot(
        "Latency by percentile",
        "Latency of scored calls from when they were due, by percentile; both axes are logarithmic.",
        Frame(ticks, y.ticks, "percentile", "latency, ms"),
        curves,
        Table("Latency by percentile (ms)", columns, lines, heads=1),
        limits=[(y.at(1e3 * load.slo_s), "SLO")] if y.low <= 1e3 * load.slo_s <= y.high else [],
    )


def _latency_by_rate(load: LoadInput, steps: Sequence[LoadStep]) -> Plot | None:
    steps = [step for step in steps if not math.isnan(step.p99_s)]
    if not steps:
        return None
    x = _rate_axis(steps)
    y = _log_axis([1e3 * value for step in steps for value in (step.p50_s, step.p99_s, load.slo_s)])
    values: dict[str, Callable[[LoadStep], float]] = {"p99": lambda step: step.p99_s, "p50": lambda step: step.p50_s}
    curves = [
        _curve(
            style, name, [(step, x.at(step.rate_per_s), y.at(1e3 * value(step)), 1e3 * value(step)) for step in steps]
        )
        for style, (name, value) in zip(_STYLES, values.items(), strict=False)
    ]
    lines = [
        Line([_figure(step.rate_per_s, 1), _figure(1e3 * step.p50_s, 1), _figure(1e3 * step.p99_s, 1)])
        for step in steps
    ]
    return Plot(
        "Latency by offered rate",
        "Median and 99th percentile of scored calls; the vertical axis is logarithmic.",
        Frame(x.ticks, y.ticks, "offered calls/s", "latency, ms"),
        curves,
        Table("Latency by offered rate (ms)", [Column("calls/s"), Column("p50"), Column("p99")], lines),
        marks=list(_knee(steps, x)),
        limits=[(y.at(1e3 * load.slo_s), "SLO")],
    )


def _by_rate(
    steps: Sequence[LoadStep], title: str, label: str, value: Callable[[LoadStep], float], name: str
) -> Plot | None:
    steps = [step for step in steps if not math.isnan(value(step))]
    if not steps:
        return None
    x = _rate_axis(steps)
    y = Axis(0.0, max(1.0, 1.05 * max(map(value, steps))), BOTTOM, TOP)
    curve = _curve("first", name, [(step, x.at(step.rate_per_s), y.at(value(step)), value(step)) for step in steps])
    lines = [Line([_figure(step.rate_per_s, 1), _figure(value(step), 2)]) for step in steps]
    return Plot(
        title,
        f"{label} at each offered rate.",
        Frame(x.ticks, y.ticks, "offered calls/s", label),
        [curve],
        Table(title, [Column("calls/s"), Column(label)], lines),
        marks=list(_knee(steps, x)),
    )


def _most_telling(steps: Sequence[LoadStep]) -> list[LoadStep]:
    """The knee, what is over it, and the least and middle rates, as many as can be told apart."""
    first = [step for step in steps if step.is_knee or step.over_knee]
    others = [step for step in steps if step not in first]
    room = _STEPS_DRAWN - len(first)
    chosen = first + others[:: max(1, math.ceil(len(others) / room))][:room] if room > 0 else first[:_STEPS_DRAWN]
    return sorted(chosen, key=lambda step: step.rate_per_s)


def _tail(step: LoadStep) -> Iterator[tuple[float, float]]:
    return ((place, value) for place, value in step.curve if place < 100)


def _percentile_text(one_in: float) -> str:
    return f"{100 - 100 / one_in:.6g}"


def _knee(steps: Sequence[LoadStep], x: Axis) -> Iterator[tuple[float, str]]:
    return ((x.at(step.rate_per_s), "knee") for step in steps if step.is_knee)


def _rate_axis(steps: Sequence[LoadStep]) -> Axis:
    return Axis(0.0, 1.02 * max(step.rate_per_s for step in steps), LEFT, RIGHT)


def _log_axis(values: Sequence[float]) -> Axis:
    """Whole powers of ten around the values, at least one apart."""
    positive = [value for value in values if value > 0] or [1.0]
    low = 10.0 ** math.floor(math.log10(min(positive)))
    return Axis(low, max(10 * low, 10.0 ** math.ceil(math.log10(max(positive)))), BOTTOM, TOP, is_log=True)


def _curve(style: str, name: str, points: Sequence[tuple[LoadStep, float, float, float]]) -> Curve:
    dots = [(x, y, f"{step.rate_per_s:.4g} calls/s: {name} {value:.4g}") for step, x, y, value in points]
    return Curve(style, name, _path([(x, y) for x, y, _ in dots]), dots)


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in points)


def _figure(value: float, digits: int) -> Figure:
    return Figure(
        f"{value:.{digits}f}".rstrip("0").rstrip(".") if digits > 2 else f"{value:.{digits}f}", order=f"{value:.6g}"
    )
