"""Charts of the agreement of metrics with labels: ROC, calibration, distribution, intervals."""

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from gradewire_cli.pages.charts import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    Axis,
    Box,
    Chart,
    Dot,
    Interval,
    Label,
    Mark,
    Path,
    axes,
    interval_chart,
    line,
    padded,
    upward,
)
from gradewire_cli.pages.texts import signed
from gradewire_cli.results.tables import number
from gradewire_stats.agreement import AgreementReport, Estimate
from gradewire_stats.curves import Calibration, Distribution, RocCurve
from gradewire_stats.intervals import CellsMean
from gradewire_stats.point_estimates import RIGHT_FROM, Statistic

_LABELS = {
    "right": "labelled right",
    "wrong": "labelled wrong",
    "between": "labelled between",
    "high": "label above its median",
    "low": "label up to its median",
}
_HATCHED = frozenset({"wrong", "low"})
# Space between the strips of a distribution, in units of the drawing.
_STRIP_GAP = 18.0
_DIAGONAL = Path("diagonal", f"M{LEFT:g} {BOTTOM:g}L{RIGHT:g} {TOP:g}")


def roc_chart(metric: str, roc: RocCurve, verdicts: NDArray[np.float64], labels: NDArray[np.float64]) -> Chart:
    """Return true over false positive rate; verdicts and labels are float64[rows], verdicts NaN where there is none."""
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
        summary += f"; its verdict finds {right.mean():.0%} of the right and passes {wrong.mean():.0%} of the wrong"
    return Chart(title=f"ROC curve of {metric}", summary=summary, caption=f"ROC: {summary}", marks=marks)


def calibration_chart(metric: str, calibration: Calibration, brier: float) -> Chart:
    """Return the share of right answers over mean score, in bins of equally many rows."""
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
    parts = [f"ECE {number(calibration.ece)}"] if in_range else ["scores leave [0, 1]: no ECE"]
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
    """Return the share of each label's rows by score, in strips on one scale; None where no row has a score."""
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
    """Return one statistic of all metrics; None where it is defined for none.

    It is the mean of the cells; where no metric's mean has an interval but some value over all rows has, the latter.
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
    intervals = [
        Interval(metric, found.value, found.low, found.high, signed(number(found.value)), _cells_of(found))
        for metric, found in defined.items()
    ]
    bare = all(math.isnan(found.low) for found in defined.values())
    title = f"{name} of each metric, {over}{'' if bare else ', with its 95 % interval'}"
    return interval_chart(intervals, Axis(floor, 1.0), name, over=over, title=title)


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
