"""Draw charts as lists of marks, which a template writes as SVG."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from gradewire_cli.pages.texts import MINUS, signed
from gradewire_cli.results.tables import number
from gradewire_stats.agreement.rows import RIGHT_FROM
from gradewire_stats.bootstrap import CellsMean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from gradewire_stats.agreement.report import AgreementReport
    from gradewire_stats.agreement.statistics import Statistic
    from gradewire_stats.bootstrap import Estimate
    from gradewire_stats.curves import CalibrationCurve, Distribution, RocCurve


# Edges of the plot within 270 x 214 units.
LEFT, RIGHT, TOP, BOTTOM = 44.0, 260.0, 12.0, 170.0
_TICKS = 4
_MIDDLE = (LEFT + RIGHT) / 2
_LABELS = {
    "right": "labelled right",
    "wrong": "labelled wrong",
    "between": "labelled between",
    "high": "label above its median",
    "low": "label up to its median",
}
_HATCHED = frozenset({"wrong", "low"})
_STRIP_GAP = 18.0


@dataclass(frozen=True, slots=True)
class Path:
    """A line or an area. `style` is its CSS class, and `is_hatched` adds stripes."""

    style: str
    path: str
    is_hatched: bool = False


@dataclass(frozen=True, slots=True)
class Dot:
    """A point with a hover text."""

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
    """A text, cut after `most` characters (0 means no limit). Hovering over a cut text shows the whole text."""

    style: str
    x: float
    y: float
    text: str
    anchor: str = "start"
    is_upright: bool = False
    most: int = 0

    @property
    def shown(self) -> str:
        """The text, cut if necessary."""
        return f"{self.text[: self.most - 1]}…" if 0 < self.most < len(self.text) else self.text


Mark = Path | Dot | Box | Label


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A drawing. `marks` are sorted from bottom to top. `key` has the CSS class and name of each curve."""

    title: str
    summary: str = ""
    caption: str = ""
    marks: Sequence[Mark]
    width: float = 270
    height: float = 214
    key: Sequence[tuple[str, str]] = field(default=())


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis that maps values (`low` to `high`) to positions (`begin` to `end`), on a linear or logarithmic scale."""

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
        """Round numbers on the axis, as positions and texts."""
        if not self.is_log:
            return [(self.at(value), text) for value, text in round_values(self.low, self.high)]
        powers = range(math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9) + 1)
        return [(self.at(10.0**power), f"{10.0**power:g}") for power in powers]


def upward(low: float = 0.0, high: float = 1.0, *, is_log: bool = False) -> Axis:
    """Return a vertical axis."""
    return Axis(low, high, BOTTOM, TOP, is_log)


def axes(x: Iterable[tuple[float, str]], y: Iterable[tuple[float, str]], x_label: str, y_label: str) -> list[Mark]:
    """Return the marks of two axes with names and ticks (position and text)."""
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
    """Return the SVG path through these points."""
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in points)


def interval_chart(lines: Mapping[str, tuple[Estimate, str]], axis: Axis, name: str, *, over: str, title: str) -> Chart:
    """Return a chart with one line per name in `lines`: an estimate and its text. `over` describes the rows."""
    head, step = 38, 34
    foot = head + step * len(lines)
    marks: list[Mark] = [Label("name head", _MIDDLE, 13, name, "middle")]
    for at, text in axis.ticks:
        marks.append(Path("grid", f"M{at} {head}V{foot}"))
        marks += [Label("tick", at, head - 7, text, "middle"), Label("tick", at, foot + 14, text, "middle")]
    marks.append(Path("axis", f"M{LEFT:g} {head}H{RIGHT:g}M{LEFT:g} {foot}H{RIGHT:g}"))
    for place, (line_name, (found, text)) in enumerate(lines.items()):
        y, remark = head + step * place + 21, _cells_of(found)
        marks.append(Label("direct", 2, y - 9, line_name, most=26 if remark else 34))
        if remark:
            marks.append(Label("tick cells", RIGHT, y - 9, remark, "end"))
        if not math.isnan(found.low):
            low, high = axis.at(found.low), axis.at(found.high)
            marks.append(Path("bar", f"M{low} {y}H{high}M{low} {y - 4}V{y + 4}M{high} {y - 4}V{y + 4}"))
        marks += [Dot(axis.at(found.value), y), Label("tick", 2, y + 4, text)]
    marks.append(Label("name", _MIDDLE, foot + 34, f"{name}, {over}", "middle"))
    return Chart(title=title, marks=marks, height=foot + 40)


def share_chart(title: str, caption: str, bars: Sequence[tuple[str, str, Sequence[tuple[str, int]]]]) -> Chart:
    """Return a chart of bars, each as (name, text, segments). A segment is a CSS class and a width."""
    length, step = 260.0, 34
    marks: list[Mark] = []
    for place, (name, text, parts) in enumerate(bars):
        y, begin, total = step * place, 0.0, sum(share for _, share in parts)
        marks += [Label("direct", 2, y + 12, name, most=34), Label("tick", length + 2, y + 12, text, "end")]
        for style, share in parts:
            if share:
                width = length * share / total
                marks.append(Box(f"part {style}", round(begin + 2, 2), y + 17, round(width, 2), 13))
                begin += width
    return Chart(title=title, caption=caption, marks=marks, width=length + 4, height=step * len(bars) + 4)


def padded(low: float, high: float) -> tuple[float, float]:
    """Return [0, 1] if it contains the range. Otherwise return the range, widened if both ends are equal."""
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def round_values(low: float, high: float) -> list[tuple[float, str]]:
    """Return at most six round numbers from `low` to `high`, each with its text."""
    rough = (high - low) / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999)
    decimals = max(0, -math.floor(math.log10(step)) + (1 if step / power == 2.5 else 0))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [(n * step, f"{n * step + 0.0:.{decimals}f}".replace("-", MINUS)) for n in range(first, last + 1)]


_DIAGONAL = Path("diagonal", f"M{LEFT:g} {BOTTOM:g}L{RIGHT:g} {TOP:g}")


def roc_chart(metric: str, roc: RocCurve, verdicts: NDArray[np.float64], labels: NDArray[np.float64]) -> Chart:
    """Return a ROC chart. Verdicts and labels are float64[rows], with NaN for a missing verdict."""
    x, y = Axis(0.0, 1.0), upward()
    points = zip(roc.false_positive_rate.tolist(), roc.true_positive_rate.tolist(), strict=True)
    curve = line([(x.at(false), y.at(true)) for false, true in points])
    summary = f"AUC {number(roc.auc)}; {roc.positives:,} right, {roc.negatives:,} wrong"
    marks: list[Mark] = [
        *axes(x.ticks, y.ticks, "false positive rate", "true positive rate"),
        _DIAGONAL,
        Label("tick", 182, 93, "guessing"),
        Path("area", f"{curve}L{x.at(1)} {y.at(0)}L{x.at(0)} {y.at(0)}Z"),
        Path("curve", curve),
    ]
    judged = ~np.isnan(verdicts)
    right, wrong = verdicts[judged & (labels >= RIGHT_FROM)], verdicts[judged & (labels < RIGHT_FROM)]
    if len(right) and len(wrong):
        at = x.at(float(wrong.mean())), y.at(float(right.mean()))
        marks += [Box("verdict", at[0] - 4, at[1] - 4, 8, 8), Label("direct", at[0] + 9, at[1] + 14, "verdict")]
        summary += f"; the verdict accepts {right.mean():.0%} of right and {wrong.mean():.0%} of wrong answers"
    return Chart(title=f"ROC curve of {metric}", summary=summary, caption=f"ROC: {summary}", marks=marks)


def calibration_chart(metric: str, calibration: CalibrationCurve, brier: float) -> Chart:
    """Return a chart of bins with about equal numbers of rows: each bin's share of right answers by its mean score."""
    x, y = Axis(*padded(calibration.bins[0].low_score, calibration.bins[-1].high_score)), upward()
    dots = [
        Dot(
            x.at(part.mean_score),
            y.at(part.share_right),
            f"score {signed(number(part.mean_score))}: {part.share_right:.1%} of {part.rows:,} rows right",
        )
        for part in calibration.bins
    ]
    in_range = not math.isnan(calibration.ece)
    parts = [f"ECE {number(calibration.ece)}"] if in_range else ["scores outside [0, 1]: no ECE"]
    parts += [] if math.isnan(brier) else [f"Brier {number(brier)}"]
    marks: list[Mark] = [
        *axes(x.ticks, y.ticks, "mean score of the bin", "share labelled right"),
        *([_DIAGONAL] if in_range else []),
        Path("curve", line([(dot.x, dot.y) for dot in dots])),
        *dots,
    ]
    summary = "; ".join(parts)
    return Chart(title=f"Calibration of {metric}", summary=summary, caption=f"Calibration: {summary}", marks=marks)


def distribution_chart(metric: str, distribution: Distribution) -> Chart | None:
    """Return a histogram of scores for each label, or None if there are no scores."""
    groups = {kind: counts for kind, counts in distribution.counts.items() if counts.sum()}
    if not groups:
        return None
    edges = distribution.edges.tolist()
    x = Axis(edges[0], edges[-1])
    tallest = max(float((counts / counts.sum()).max()) for counts in groups.values())
    height = (BOTTOM - TOP) / len(groups)
    marks = axes(x.ticks, [], "score", "share of the label's rows")
    for place, (kind, counts) in enumerate(groups.items()):
        base = round(TOP + height * (place + 1), 1)
        heights = [share / tallest * (height - _STRIP_GAP) for share in (counts / counts.sum()).tolist()]
        text = f"{_LABELS.get(kind, kind)} ({int(counts.sum()):,})"
        marks += [
            Path(f"bars {kind}", _steps(x, edges, heights, base), is_hatched=kind in _HATCHED),
            Path("axis", f"M{LEFT:g} {base}H{RIGHT:g}"),
            Label("direct", 50, round(base - height, 1) + 12, text),
        ]
    summary = f"tallest bar {tallest:.0%} of its label's rows"
    title = f"Scores of {metric} by label"
    return Chart(title=title, summary=summary, caption=f"Distribution: {summary}", marks=marks)


def overview_chart(agreement: AgreementReport, statistic: Statistic, name: str) -> Chart | None:
    """Return a chart of one statistic for all metrics, or None if the statistic is undefined.

    Show means over cells, or values over all rows if only these values have intervals.
    """
    defined = _defined({metric.metric: metric.headline.get(statistic) for metric in agreement.metrics})
    if not defined:
        return None
    over = "mean of the cells"
    if all(found.bare for found in defined.values()):
        whole = _defined({metric.metric: metric.cells[-1].estimates.get(statistic) for metric in agreement.metrics})
        if not all(found.bare for found in whole.values()):
            defined, over = whole, "all rows"
    lowest = min(found.value if math.isnan(found.low) else min(found.value, found.low) for found in defined.values())
    floor = min(0.5 if statistic == "auc" else 0.0, math.floor(4 * lowest) / 4)
    lines = {metric: (found, signed(number(found.value))) for metric, found in defined.items()}
    bare = all(math.isnan(found.low) for found in defined.values())
    title = f"{name} of each metric, {over}{'' if bare else ', with its 95 % interval'}"
    return interval_chart(lines, Axis(floor, 1.0), name, over=over, title=title)


def _cells_of(found: Estimate) -> str:
    if not isinstance(found, CellsMean) or found.cells == found.cells_in_all:
        return ""
    return f"over {found.cells:,} of {found.cells_in_all:,} cells"


def _defined(estimates: Mapping[str, Estimate | None]) -> dict[str, Estimate]:
    return {metric: found for metric, found in estimates.items() if found and not math.isnan(found.value)}


def _steps(x: Axis, edges: list[float], heights: list[float], base: float) -> str:
    parts = [f"M{x.at(edges[0]):g} {base:g}"]
    for edge, height in zip(edges[1:], heights, strict=True):
        parts.append(f"V{base - height:.1f}H{x.at(edge):g}")
    return "".join(parts) + f"V{base:g}Z"
