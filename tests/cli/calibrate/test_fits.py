"""When a fit counts as better than the one that it would replace, and what is told about a level."""

import math
from typing import Literal

import numpy as np
import pytest

from gradewire_cli.calibrate.fits import LevelFit, Split, ThresholdFit
from gradewire_cli.calibrate.output import level_lines, level_words
from gradewire_cli.calibrate.rows import LabelledScores
from gradewire_stats.agreement.joint_bootstrap import StatisticDifference
from gradewire_stats.agreement.report import AgreementReport
from gradewire_stats.agreement.statistics import Statistic
from gradewire_stats.bootstrap import difference
from gradewire_stats.calibration.level import Level


def fit(before: float, after: float) -> LevelFit:
    return LevelFit(
        level=Level(-0.25, 1.5),
        form={},
        report=AgreementReport([]),
        measured_on="",
        other_values={"Brier": (before, after)},
        brier=difference(after - before, np.array([-0.01, 0.0, 0.01] * 100), questions=20),
        figures={},
    )


ROWS = LabelledScores(
    scores=np.array([0.1, 0.9]),
    verdicts=np.array([0.0, 1.0]),
    labels=np.array([0.0, 1.0]),
    questions=["a", "b"],
    question_keys=["a", "b"],
    datasets=["", ""],
    sources=["", ""],
    added=np.array([False, False]),
    results=[{}, {}],
    line="correctness/2",
    failed=0,
    sha256="0" * 64,
)


@pytest.mark.parametrize("after", [0.19, 0.2, 0.21])
def test_a_level_is_better_if_it_lowers_the_brier_score(after: float) -> None:
    found = fit(0.2, after)
    assert found.gain.is_better is (after < 0.2)
    assert found.gain.text == f"{after - 0.2:+.4f} [-0.0100, +0.0100]"
    lines = list(level_lines(found, "0123456789ab", Split(ROWS, None), None))
    assert lines[0].startswith(
        "level: offset -0.250, slope 1.500 of fit 0123456789ab: fitted on 2 rows, 1 of them right"
    )
    assert level_words(found.level) == "level: offset -0.250, slope 1.500"


def threshold(statistic: Statistic, low: float, high: float, *, before: float = 0.7) -> ThresholdFit:
    gain = difference(0.05, np.linspace(low, high, 1001), questions=20)
    apart = StatisticDifference("after", "before", statistic, 40, gain, gain, 1, 1)
    balanced = {"before": before, "after": 0.75}
    return ThresholdFit(threshold=0.6, report=AgreementReport([], [apart]), balanced=balanced, measured_on="")


@pytest.mark.parametrize("objective", ["accuracy", "f1"])
def test_a_threshold_is_better_if_the_interval_of_its_gain_is_above_0(objective: Literal["accuracy", "f1"]) -> None:
    proven, open_ = (threshold(objective, low, 0.1).gain(objective) for low in (0.01, -0.02))
    assert (proven and proven.is_better, open_ and open_.is_better) == (True, False)
    assert threshold(objective, -0.02, 0.1, before=math.nan).gain(objective) is None


def test_any_gain_of_balanced_accuracy_is_enough() -> None:
    found = threshold("accuracy", -0.1, 0.1).gain("balanced_accuracy")
    assert (found and found.text, found and found.is_better) == ("+0.0500", True)


def test_a_level_that_replaces_another_says_what_both_start_from() -> None:
    replaced = {"offset": 0.5, "slope": 0.75, "fit": "0123456789ab", "rows": {"count": 60}, "date": "2026-01-02"}
    lines = list(level_lines(fit(0.2, 0.1), "0123456789ab", Split(ROWS, None), replaced))
    (said,) = (line for line in lines if "replaces" in line)
    assert said.startswith(
        "this replaces the level of 2026-01-02 (offset +0.500, slope 0.750, 60 rows). Both start from"
    )
    assert said.endswith('"before" is fit 0123456789ab without a level')
