"""Charts: positions follow from values, axes carry round numbers, whatever the range."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire.agreement import AgreementReport, CellAgreement, Estimate, MetricAgreement
from gradewire.agreement.curves.shapes import Calibration, CalibrationBin, Distribution, metric_curves
from gradewire.agreement.estimates import CellsMean
from gradewire.report.charts import calibration_chart, distribution_chart, interval_chart, roc_chart
from gradewire.report.frame import BOTTOM, LEFT, RIGHT, TOP, Frame, padded, round_values


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


def test_a_roc_curve_goes_corner_to_corner_and_marks_the_verdict() -> None:
    scores, labels = np.array([0.9, 0.8, 0.3, 0.1]), np.array([1.0, 0.0, 1.0, 0.0])
    roc = metric_curves(scores, labels).roc
    assert roc
    # Verdicts: both right answers found, one of two wrong answers passed; a row without verdict does not count.
    chart = roc_chart(roc, np.array([1.0, 1.0, 1.0, 0.0]), labels)
    assert chart.path.startswith(f"M{LEFT:g} {BOTTOM:g}L")
    assert chart.path.endswith(f"L{RIGHT:g} {TOP:g}")
    assert chart.verdict == ((LEFT + RIGHT) / 2, TOP)
    assert (
        "AUC 0.750; 2 right, 2 wrong; its verdict finds 100% of the right and passes 50% of the wrong" in chart.summary
    )
    assert roc_chart(roc, np.array([1.0, np.nan, 1.0, np.nan]), labels).verdict is None


def test_calibration_stands_where_its_bins_do() -> None:
    bins = [CalibrationBin(0.25, 0.0, 4, 0.2, 0.3), CalibrationBin(0.75, 0.5, 4, 0.7, 0.8)]
    chart = calibration_chart(Calibration(bins, 0.25), 0.1)
    assert [(dot.x, dot.y) for dot in chart.dots] == [
        (LEFT + 0.25 * (RIGHT - LEFT), BOTTOM),
        (LEFT + 0.75 * (RIGHT - LEFT), (TOP + BOTTOM) / 2),
    ]
    assert chart.diagonal
    assert chart.summary == "ECE 0.250; Brier 0.100"
    wide = calibration_chart(Calibration([CalibrationBin(4, 1.0, 4, 2, 6), bins[1]], math.nan), math.nan)
    assert not wide.diagonal
    assert wide.summary == "scores leave [0, 1]: no ECE"


def test_each_label_has_a_strip_all_on_one_scale() -> None:
    counts = {"right": np.array([0, 10]), "wrong": np.array([2, 2]), "between": np.array([0, 0])}
    chart = distribution_chart(Distribution(np.array([0.0, 0.5, 1.0]), counts, failed=3))
    assert chart
    assert [strip.text for strip in chart.strips] == ["labelled right (10)", "labelled wrong (4)"]
    right, wrong = chart.strips
    room = (BOTTOM - TOP) / 2 - 18  # of a strip, less its label
    middle = (LEFT + RIGHT) / 2
    assert (
        right.path
        == f"M{LEFT:g} {right.base:g}V{right.base:.1f}H{middle:g}V{right.base - room:.1f}H{RIGHT:g}V{right.base:g}Z"
    )
    assert wrong.path.count(f"V{wrong.base - room / 2:.1f}") == 2  # half of its rows in each bin
    assert chart.summary == "tallest bar 100% of its label's rows"
    assert distribution_chart(Distribution(np.array([0.0, 1.0]), {}, failed=3)) is None


@pytest.mark.parametrize(("low", "axis"), [(0.6, 0.5), (0.3, 0.25), (-0.2, -0.25)])
def test_intervals_stand_on_an_axis_that_holds_them(low: float, axis: float) -> None:
    chart = interval_chart(agreement_of(mean_of_all(0.8, low, 0.9)), "auc", "ROC-AUC")
    assert chart
    assert chart.frame.x_low == axis
    frame = Frame(x_low=axis, x_label="", y_label="")
    [one] = chart.intervals
    assert (one.low, one.x, one.high) == (frame.x(low), frame.x(0.8), frame.x(0.9))


def test_what_is_not_defined_is_not_drawn() -> None:
    assert interval_chart(agreement_of(mean_of_all(math.nan)), "auc", "ROC-AUC") is None
    bare = interval_chart(agreement_of(mean_of_all(0.7)), "auc", "ROC-AUC")
    assert bare
    assert [(one.low, one.high) for one in bare.intervals] == [(None, None)]


def test_a_chart_shows_all_rows_where_no_mean_has_an_interval() -> None:
    found = agreement_of(mean_of_all(0.7))
    [metric] = found.metrics
    cell = replace(metric.cells[0], estimates={"auc": Estimate(0.8, 0.6, 0.9, 50)})
    whole = interval_chart(AgreementReport([replace(metric, cells=[cell])]), "auc", "ROC-AUC")
    assert whole
    assert whole.title == "ROC-AUC of each metric, all rows, with its 95 % interval"
    assert (whole.over, whole.intervals[0].text, whole.intervals[0].low) == ("all rows", "0.800", whole.frame.x(0.6))
    bare = interval_chart(found, "auc", "ROC-AUC")
    assert bare
    assert bare.title == "ROC-AUC of each metric, mean of the cells"
    # One mean with an interval is enough: figures of one chart are over the same rows.
    other = replace(metric, metric="sbert", headline={"auc": mean_of_all(0.7, 0.6, 0.8)})
    mixed = interval_chart(AgreementReport([replace(metric, cells=[cell]), other]), "auc", "ROC-AUC")
    assert mixed
    assert (mixed.over, [one.text for one in mixed.intervals]) == ("mean of the cells", ["0.700", "0.700"])


def test_a_mean_over_some_of_the_cells_says_over_which() -> None:
    chart = interval_chart(agreement_of(CellsMean(0.305, 0.2, 0.4, 50, cells=7, cells_in_all=10)), "auc", "ROC-AUC")
    assert chart
    assert chart.intervals[0].remark == "over 7 of 10 cells"
    whole = interval_chart(agreement_of(mean_of_all(0.305)), "auc", "ROC-AUC")
    assert whole
    assert whole.intervals[0].remark == ""


def mean_of_all(value: float, low: float = math.nan, high: float = math.nan) -> CellsMean:
    return CellsMean(value, low, high, 0 if math.isnan(low) else 100, cells=10, cells_in_all=10)


def agreement_of(auc: CellsMean) -> AgreementReport:
    cell = CellAgreement("all", "", "", "", rows=4, failed=0, judged=0, estimates={"auc": auc})
    return AgreementReport([MetricAgreement("smile", [cell], {"auc": auc})])
