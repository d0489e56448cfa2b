"""Charts of a load run, each with the table of its values."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from gradewire.report.charts import BOTTOM, LEFT, RIGHT, TOP, Axis, Chart, Dot, Label, Mark, Path, axes, line, upward
from gradewire.report.load.input import LoadInput, LoadStep
from gradewire.tables import Table, Value

# Colour and dashes of each curve.
_STYLES: Final = ("first", "second", "third", "fourth")
_STEPS_DRAWN: Final = 4


def plots(load: LoadInput) -> list[tuple[Chart, Table]]:
    """Return all that can be drawn of what was measured."""
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


def _by_percentile(load: LoadInput, steps: Sequence[LoadStep]) -> tuple[Chart, Table] | None:
    drawn = _most_telling([step for step in steps if step.curve])
    if not drawn:
        return None
    # "Nines": 1 / (1 - percentile), so that each digit of the tail has the same room.
    most = max(1 / (1 - percentile / 100) for step in drawn for percentile, _ in step.curve if percentile < 100)
    x = Axis(1.0, max(10.0, most), is_log=True)
    y = _log_axis([1e3 * latency_s for step in drawn for _, latency_s in step.curve])
    ticks = [(at, f"{100 - 100 / float(text):.6g}") for at, text in x.ticks]
    marks = [*axes(ticks, y.ticks, "percentile", "latency, ms"), *_limit(load, y)]
    for style, step in zip(_STYLES, drawn, strict=False):
        points = [(x.at(1 / (1 - place / 100)), y.at(1e3 * value)) for place, value in step.curve if place < 100]
        marks.append(Path(f"curve {style}", line(points)))
    key = [(f"curve {style}", step.name) for style, step in zip(_STYLES, drawn, strict=False)]
    by_place = [dict(step.curve) for step in drawn]
    places = sorted({place for step in drawn for place, _ in step.curve})
    rows = [
        [_value(place, 4), *(_value(1e3 * found[place], 1) if place in found else Value("") for found in by_place)]
        for place in places
    ]
    table = Table("Latency by percentile (ms)", ["Percentile", *(step.name for step in drawn)], rows)
    about = "Latency of scored calls from when they were due, by percentile; both axes are logarithmic."
    return _chart("Latency by percentile", about, marks, key), table


def _latency_by_rate(load: LoadInput, steps: Sequence[LoadStep]) -> tuple[Chart, Table] | None:
    steps = [step for step in steps if not math.isnan(step.p99_s)]
    if not steps:
        return None
    x = _rate_axis(steps)
    y = _log_axis([1e3 * value for step in steps for value in (step.p50_s, step.p99_s, load.slo_s)])
    values: dict[str, Callable[[LoadStep], float]] = {"p99": lambda step: step.p99_s, "p50": lambda step: step.p50_s}
    marks = [*axes(x.ticks, y.ticks, "offered calls/s", "latency, ms"), *_knee(steps, x), *_limit(load, y)]
    for style, (name, value) in zip(_STYLES, values.items(), strict=False):
        marks += _curve(style, name, [(step, x, y.at(1e3 * value(step)), 1e3 * value(step)) for step in steps])
    rows = [[_value(step.rate_per_s, 1), _value(1e3 * step.p50_s, 1), _value(1e3 * step.p99_s, 1)] for step in steps]
    about = "Median and 99th percentile of scored calls; the vertical axis is logarithmic."
    key = [(f"curve {style}", name) for style, name in zip(_STYLES, values, strict=False)]
    table = Table("Latency by offered rate (ms)", ["calls/s", "p50", "p99"], rows)
    return _chart("Latency by offered rate", about, marks, key), table


def _by_rate(
    steps: Sequence[LoadStep], title: str, label: str, value: Callable[[LoadStep], float], name: str
) -> tuple[Chart, Table] | None:
    steps = [step for step in steps if not math.isnan(value(step))]
    if not steps:
        return None
    x, y = _rate_axis(steps), upward(0.0, max(1.0, 1.05 * max(map(value, steps))))
    marks = [*axes(x.ticks, y.ticks, "offered calls/s", label), *_knee(steps, x)]
    marks += _curve("first", name, [(step, x, y.at(value(step)), value(step)) for step in steps])
    rows = [[_value(step.rate_per_s, 1), _value(value(step), 2)] for step in steps]
    return _chart(title, f"{label} at each offered rate.", marks, [("curve first", name)]), Table(
        title, ["calls/s", label], rows
    )


def _chart(title: str, about: str, marks: Sequence[Mark], key: Sequence[tuple[str, str]]) -> Chart:
    return Chart(title=title, summary=about, caption=f"{title}: {about}", marks=marks, key=key)


def _most_telling(steps: Sequence[LoadStep]) -> list[LoadStep]:
    """The knee, what is over it, and the least and middle rates, as many as can be told apart."""
    first = [step for step in steps if step.is_knee or step.over_knee]
    others = [step for step in steps if step not in first]
    room = _STEPS_DRAWN - len(first)
    chosen = first + others[:: max(1, math.ceil(len(others) / room))][:room] if room > 0 else first[:_STEPS_DRAWN]
    return sorted(chosen, key=lambda step: step.rate_per_s)


def _limit(load: LoadInput, y: Axis) -> Iterator[Mark]:
    if y.low <= 1e3 * load.slo_s <= y.high:
        at = y.at(1e3 * load.slo_s)
        yield from (Path("limit", f"M{LEFT:g} {at}H{RIGHT:g}"), Label("tick", RIGHT - 2, at - 3, "SLO", "end"))


def _knee(steps: Sequence[LoadStep], x: Axis) -> Iterator[Mark]:
    for at in (x.at(step.rate_per_s) for step in steps if step.is_knee):
        yield from (Path("mark", f"M{at} {TOP:g}V{BOTTOM:g}"), Label("direct", at - 3, TOP + 10, "knee", "end"))


def _rate_axis(steps: Sequence[LoadStep]) -> Axis:
    return Axis(0.0, 1.02 * max(step.rate_per_s for step in steps))


def _log_axis(values: Sequence[float]) -> Axis:
    """Return whole powers of ten around the values, at least one apart."""
    positive = [value for value in values if value > 0] or [1.0]
    low = 10.0 ** math.floor(math.log10(min(positive)))
    return upward(low, max(10 * low, 10.0 ** math.ceil(math.log10(max(positive)))), is_log=True)


def _curve(style: str, name: str, points: Sequence[tuple[LoadStep, Axis, float, float]]) -> Iterator[Mark]:
    dots = [
        Dot(x.at(step.rate_per_s), y, f"{step.rate_per_s:.4g} calls/s: {name} {value:.4g}", f"dot {style}")
        for step, x, y, value in points
    ]
    yield Path(f"curve {style}", line([(dot.x, dot.y) for dot in dots]))
    yield from dots


def _value(value: float, digits: int) -> Value:
    text = f"{value:.{digits}f}"
    return Value(text.rstrip("0").rstrip(".") if digits > 2 else text, value)
