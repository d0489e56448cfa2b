"""Charts: positions follow from values, axes carry round numbers, whatever the range."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_cli.pages.charts import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    Axis,
    Box,
    Chart,
    Dot,
    Label,
    Path,
    calibration_chart,
    distribution_chart,
    overview_chart,
    padded,
    roc_chart,
    round_values,
    share_chart,
)
from gradewire_stats.agreement.report import AgreementReport, CellAgreement, MetricAgreement
from gradewire_stats.bootstrap import CellsMean, Estimate
from gradewire_stats.curves import CalibrationBin, CalibrationCurve, Distribution, metric_curves


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_axes_carry_a_few_round_numbers_within_their_range(low: float, width: float) -> None:
    low, high = padded(low, low + width)
    ticks = round_values(low, high)
    assert 1 <= len(ticks) <= 6
    slack = 1e-6 * (high - low) + 1e-12 * max(abs(low), abs(high))
    assert all(low - slack <= value <= high + slack for value, _ in ticks)


def test_round_numbers() -> None:
    assert [text for _, text in round_values(0, 1)] == ["0.00", "0.25", "0.50", "0.75", "1.00"]
    assert [text for _, text in round_values(-1, 1)] == ["\u22121.0", "\u22120.5", "0.0", "0.5", "1.0"]
    assert [text for _, text in round_values(0, 10)] == ["0.0", "2.5", "5.0", "7.5", "10.0"]
    assert [text for _, text in round_values(3, 180)] == ["50", "100", "150"]


def test_ranges() -> None:
    assert padded(0.2, 0.7) == (0, 1)
    assert padded(-0.2, 0.7) == (-0.2, 0.7)
    assert padded(3, 3) == (2.5, 3.5)


def paths(chart: Chart, style: str) -> list[str]:
    return [mark.path for mark in chart.marks if isinstance(mark, Path) and mark.style == style]


def dots(chart: Chart) -> list[tuple[float, float]]:
    return [(mark.x, mark.y) for mark in chart.marks if isinstance(mark, Dot)]


def labels(chart: Chart, style: str) -> list[str]:
    return [mark.text for mark in chart.marks if isinstance(mark, Label) and mark.style == style]


def boxes(chart: Chart) -> list[tuple[str, float, float]]:
    return [(mark.style, mark.x, mark.width) for mark in chart.marks if isinstance(mark, Box)]


def test_positions_are_those_of_the_values() -> None:
    axis = Axis(1.0, 1000.0, 0.0, 300.0, is_log=True)
    assert [axis.at(value) for value in (1, 10, 100, 1000)] == [0, 100, 200, 300]
    assert [text for _, text in axis.ticks] == ["1", "10", "100", "1000"]
    assert Axis(0.0, 50.0, 170.0, 12.0).at(25) == pytest.approx(91.0)


def test_a_long_name_is_cut_and_whole_on_hover() -> None:
    assert Label("direct", 0, 0, "abcdef", most=4).shown == "abc…"
    assert Label("direct", 0, 0, "abcd", most=4).shown == "abcd"


def test_bars_are_as_long_as_their_shares() -> None:
    chart = share_chart(
        "", "", [("smile", "", [("right", 3), ("between", 1), ("wrong", 0)]), ("none", "", [("right", 0)])]
    )
    assert boxes(chart) == [("part right", 2.0, 195.0), ("part between", 197.0, 65.0)]


def test_a_roc_curve_goes_corner_to_corner_and_marks_the_verdict() -> None:
    scores, right = np.array([0.9, 0.8, 0.3, 0.1]), np.array([1.0, 0.0, 1.0, 0.0])
    roc = metric_curves(scores, right).roc
    assert roc
    # Verdicts: both right answers found, one of two wrong answers passed; a row without verdict does not count.
    chart = roc_chart("smile", roc, np.array([1.0, 1.0, 1.0, 0.0]), right)
    [path] = paths(chart, "curve")
    assert path.startswith(f"M{LEFT:g} {BOTTOM:g}L")
    assert path.endswith(f"L{RIGHT:g} {TOP:g}")
    assert boxes(chart) == [("verdict", (LEFT + RIGHT) / 2 - 4, 8)]
    assert "AUC 0.750; 2 right, 2 wrong; the verdict accepts 100% of right and 50% of wrong answers" in chart.summary
    assert not boxes(roc_chart("smile", roc, np.array([1.0, np.nan, 1.0, np.nan]), right))


def test_calibration_stands_where_its_bins_do() -> None:
    bins = [CalibrationBin(0.25, 0.0, 4, 0.2, 0.3), CalibrationBin(0.75, 0.5, 4, 0.7, 0.8)]
    chart = calibration_chart("smile", CalibrationCurve(bins, 0.25), 0.1)
    assert dots(chart) == [
        (LEFT + 0.25 * (RIGHT - LEFT), BOTTOM),
        (LEFT + 0.75 * (RIGHT - LEFT), (TOP + BOTTOM) / 2),
    ]
    assert paths(chart, "diagonal")
    assert chart.summary == "ECE 0.250; Brier 0.100"
    outside = CalibrationCurve([CalibrationBin(4, 1.0, 4, 2, 6), bins[1]], math.nan)
    wide = calibration_chart("smile", outside, math.nan)
    assert not paths(wide, "diagonal")
    assert wide.summary == "scores outside [0, 1]: no ECE"


def test_each_label_has_a_strip_all_on_one_scale() -> None:
    counts = {"right": np.array([0, 10]), "wrong": np.array([2, 2]), "between": np.array([0, 0])}
    chart = distribution_chart("smile", Distribution(np.array([0.0, 0.5, 1.0]), counts))
    assert chart
    assert labels(chart, "direct") == ["labelled right (10)", "labelled wrong (4)"]
    room = (BOTTOM - TOP) / 2 - 18  # of a strip, less its label
    middle, upper = (LEFT + RIGHT) / 2, (TOP + BOTTOM) / 2
    right, wrong = paths(chart, "bars right")[0], paths(chart, "bars wrong")[0]
    assert right == f"M{LEFT:g} {upper:g}V{upper:.1f}H{middle:g}V{upper - room:.1f}H{RIGHT:g}V{upper:g}Z"
    assert wrong.count(f"V{BOTTOM - room / 2:.1f}") == 2  # half of its rows in each bin
    assert [mark.style for mark in chart.marks if isinstance(mark, Path) and mark.is_hatched] == ["bars wrong"]
    assert chart.summary == "tallest bar 100% of its label's rows"
    assert distribution_chart("smile", Distribution(np.array([0.0, 1.0]), {})) is None


@pytest.mark.parametrize(("low", "begin"), [(0.6, 0.5), (0.3, 0.25), (-0.2, -0.25)])
def test_intervals_stand_on_an_axis_that_holds_them(low: float, begin: float) -> None:
    chart = overview_chart(agreement_of(mean_of_all(0.8, low, 0.9)), "auc", "ROC-AUC")
    assert chart
    axis = Axis(begin, 1.0)
    [bar] = paths(chart, "bar")
    assert bar.startswith(f"M{axis.at(low)} ")
    assert f"H{axis.at(0.9)}M" in bar
    assert dots(chart)[0][0] == axis.at(0.8)


def test_what_is_not_defined_is_not_drawn() -> None:
    assert overview_chart(agreement_of(mean_of_all(math.nan)), "auc", "ROC-AUC") is None
    bare = overview_chart(agreement_of(mean_of_all(0.7)), "auc", "ROC-AUC")
    assert bare
    assert (len(dots(bare)), paths(bare, "bar")) == (1, [])


def test_a_chart_shows_all_rows_where_no_mean_has_an_interval() -> None:
    found = agreement_of(mean_of_all(0.7))
    [metric] = found.metrics
    cell = replace(metric.cells[0], estimates={"auc": Estimate(0.8, 0.6, 0.9, 50)})
    whole = overview_chart(AgreementReport([replace(metric, cells=[cell])]), "auc", "ROC-AUC")
    assert whole
    assert whole.title == "ROC-AUC of each metric, all rows, with its 95 % interval"
    assert ("0.800" in labels(whole, "tick"), len(paths(whole, "bar"))) == (True, 1)
    bare = overview_chart(found, "auc", "ROC-AUC")
    assert bare
    assert bare.title == "ROC-AUC of each metric, mean of the cells"
    # One mean with an interval is enough: values of one chart are over the same rows.
    other = replace(metric, metric="sbert", headline={"auc": mean_of_all(0.7, 0.6, 0.8)})
    mixed = overview_chart(AgreementReport([replace(metric, cells=[cell]), other]), "auc", "ROC-AUC")
    assert mixed
    assert "mean of the cells" in mixed.title
    assert labels(mixed, "tick").count("0.700") == 2


def test_a_mean_over_some_of_the_cells_says_over_which() -> None:
    chart = overview_chart(agreement_of(CellsMean(0.305, 0.2, 0.4, 50, cells=7, cells_in_all=10)), "auc", "ROC-AUC")
    assert chart
    assert labels(chart, "tick cells") == ["over 7 of 10 cells"]
    whole = overview_chart(agreement_of(mean_of_all(0.305)), "auc", "ROC-AUC")
    assert whole
    assert labels(whole, "tick cells") == []


def mean_of_all(value: float, low: float = math.nan, high: float = math.nan) -> CellsMean:
    return CellsMean(value, low, high, 0 if math.isnan(low) else 100, cells=10, cells_in_all=10)


def agreement_of(auc: CellsMean) -> AgreementReport:
    cell = CellAgreement("all", "", "", "", rows=4, failed=0, judged=0, estimates={"auc": auc})
    return AgreementReport([MetricAgreement("smile", [cell], {"auc": auc})])
