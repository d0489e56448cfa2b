"""Computes the charts: paths and positions, which the template draws."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradewire.agreement import AgreementReport, Estimate
from gradewire.agreement.curves.shapes import Calibration, Distribution, RocCurve
from gradewire.agreement.estimates import CellsMean
from gradewire.agreement.point_estimates import RIGHT_FROM, Statistic
from gradewire.report.figures import estimated, number, over_cells
from gradewire.report.frame import BOTTOM, TOP, Frame, padded

_LABELS = {
    "right": "labelled right",
    "wrong": "labelled wrong",
    "between": "labelled between",
    "high": "label above its median",
    "low": "label up to its median",
}
# Space between the strips of a distribution, in units of the drawing.
_STRIP_GAP = 18.0


@dataclass(frozen=True, slots=True)
class RocChart:
    """A ROC curve; `path` draws it, `area` closes it for its fill, the metric's own verdict stands at `verdict`."""

    frame: Frame
    path: str
    area: str
    verdict: tuple[float, float] | None
    summary: str


@dataclass(frozen=True, slots=True)
class CalibrationDot:
    """Rows next to each other by score: position, radius by their number, and what they are."""

    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True)
class CalibrationChart:
    """Share of right answers by score; `diagonal` is drawn where scores are in [0, 1]."""

    frame: Frame
    path: str
    dots: Sequence[CalibrationDot]
    diagonal: bool
    summary: str


@dataclass(frozen=True, slots=True)
class Strip:
    """Histogram of the scores of one label; `kind` says how it is drawn, `base` where it stands."""

    kind: str
    text: str
    path: str
    base: float
    top: float


@dataclass(frozen=True, slots=True)
class DistributionChart:
    """Histograms below each other, all on one scale."""

    frame: Frame
    strips: Sequence[Strip]
    summary: str


@dataclass(frozen=True, slots=True)
class Interval:
    """A metric in the overview: positions of value and bounds; bounds are None without an interval.

    `remark` says over which cells the mean is, where not over all.
    """

    metric: str
    text: str
    remark: str
    x: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class IntervalChart:
    """Values of one statistic with their intervals, one metric below the other; `over` says over which rows."""

    statistic: str
    over: str
    frame: Frame
    intervals: Sequence[Interval]

    @property
    def title(self) -> str:
        """What the chart shows."""
        bare = all(one.low is None for one in self.intervals)
        return f"{self.statistic} of each metric, {self.over}{'' if bare else ', with its 95 % interval'}"


def roc_chart(roc: RocCurve, verdicts: NDArray[np.float64], labels: NDArray[np.float64]) -> RocChart:
    """True over false positive rate; verdicts and labels are float64[rows], verdicts NaN where there is none."""
    frame = Frame(x_label="false positive rate", y_label="true positive rate")
    points = zip(roc.false_positive_rate.tolist(), roc.true_positive_rate.tolist(), strict=True)
    path = _line([(frame.x(x), frame.y(y)) for x, y in points])
    summary = f"AUC {number(roc.auc)}; {roc.positives:,} right, {roc.negatives:,} wrong"
    judged = ~np.isnan(verdicts)
    right, wrong = verdicts[judged & (labels >= RIGHT_FROM)], verdicts[judged & (labels < RIGHT_FROM)]
    verdict = None
    if len(right) and len(wrong):
        verdict = frame.x(float(wrong.mean())), frame.y(float(right.mean()))
        summary += f"; its verdict finds {right.mean():.0%} of the right and passes {wrong.mean():.0%} of the wrong"
    return RocChart(frame, path, f"{path}L{frame.x(1)} {frame.y(0)}L{frame.x(0)} {frame.y(0)}Z", verdict, summary)


def calibration_chart(calibration: Calibration, brier: float) -> CalibrationChart:
    """Share of right answers over mean score, in bins of equally many rows."""
    low, high = padded(calibration.bins[0].low_score, calibration.bins[-1].high_score)
    frame = Frame(x_low=low, x_high=high, x_label="mean score of the bin", y_label="share labelled right")
    dots = [
        CalibrationDot(
            frame.x(part.mean_score),
            frame.y(part.share_right),
            f"score {number(part.mean_score)}: {part.share_right:.1%} of {part.rows:,} rows right",
        )
        for part in calibration.bins
    ]
    diagonal = not math.isnan(calibration.ece)
    parts = [f"ECE {number(calibration.ece)}"] if diagonal else ["scores leave [0, 1]: no ECE"]
    parts += [] if math.isnan(brier) else [f"Brier {number(brier)}"]
    return CalibrationChart(frame, _line([(dot.x, dot.y) for dot in dots]), dots, diagonal, "; ".join(parts))


def distribution_chart(distribution: Distribution) -> DistributionChart | None:
    """Share of each label's rows by score; None where no row has a score."""
    groups = {kind: counts for kind, counts in distribution.counts.items() if counts.sum()}
    if not groups:
        return None
    edges = distribution.edges.tolist()
    frame = Frame(x_low=edges[0], x_high=edges[-1], x_label="score", y_label="share of the label's rows")
    tallest = max(float((counts / counts.sum()).max()) for counts in groups.values())
    height = (BOTTOM - TOP) / len(groups)
    strips = []
    for place, (kind, counts) in enumerate(groups.items()):
        base = round(TOP + height * (place + 1), 1)
        shares = (counts / counts.sum()).tolist()
        heights = [share / tallest * (height - _STRIP_GAP) for share in shares]
        text = f"{_LABELS.get(kind, kind)} ({int(counts.sum()):,})"
        strips.append(Strip(kind, text, _steps(frame, edges, heights, base), base, round(base - height, 1)))
    summary = f"tallest bar {tallest:.0%} of its label's rows"
    return DistributionChart(frame, strips, summary)


def interval_chart(agreement: AgreementReport, statistic: Statistic, title: str) -> IntervalChart | None:
    """One statistic of all metrics; None where it is defined for none.

    It is the mean of the cells; where no metric's mean has an interval but some figure over all rows has, the latter.
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
    frame = Frame(x_low=floor, x_high=1.0, x_label=title, y_label="")
    intervals = []
    for metric, found in defined.items():
        bounds = (None, None) if math.isnan(found.low) else (frame.x(found.low), frame.x(found.high))
        figure = estimated(found)
        if isinstance(found, CellsMean):
            figure = over_cells(figure, found.cells, found.cells_in_all)
        intervals.append(Interval(metric, figure.text, figure.remark, frame.x(found.value), *bounds))
    return IntervalChart(title, over, frame, intervals)


def _defined(estimates: Mapping[str, Estimate | None]) -> dict[str, Estimate]:
    return {metric: found for metric, found in estimates.items() if found and not math.isnan(found.value)}


def _line(points: list[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in points)


def _steps(frame: Frame, edges: list[float], heights: list[float], base: float) -> str:
    parts = [f"M{frame.x(edges[0]):g} {base:g}"]
    for edge, height in zip(edges[1:], heights, strict=True):
        parts.append(f"V{base - height:.1f}H{frame.x(edge):g}")
    return "".join(parts) + f"V{base:g}Z"
