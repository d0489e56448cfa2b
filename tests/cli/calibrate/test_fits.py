"""Levels of a stored probability: when the command says that one does not help."""

import numpy as np
import pytest

from gradewire_cli.calibrate.fits import LevelFit, Split
from gradewire_cli.calibrate.output import level_lines, level_words
from gradewire_cli.calibrate.rows import LabelledScores
from gradewire_stats.agreement.report import AgreementReport
from gradewire_stats.calibration.level import Level


def fit(before: float, after: float) -> LevelFit:
    return LevelFit(
        level=Level(-0.25, 1.5),
        form={},
        report=AgreementReport([]),
        measured_on="",
        other_values={"Brier": (before, after)},
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
    results=[{}, {}],
    line="correctness/2",
    failed=0,
    sha256="0" * 64,
)


@pytest.mark.parametrize("after", [0.19, 0.2, 0.21])
def test_a_level_that_does_not_lower_the_brier_score_is_not_recommended(after: float) -> None:
    found, improves = fit(0.2, after), after < 0.2
    assert found.improves is improves
    lines = list(level_lines(found, "0123456789ab", Split(ROWS, None), None))
    assert lines[0].startswith(
        "level: offset -0.250, slope 1.500 of fit 0123456789ab: fitted on 2 rows, 1 of them right"
    )
    said = "the level does not improve the probabilities of these rows, so leave the fit unchanged"
    assert (said in lines) is not improves
    assert level_words(found.level) == "level: offset -0.250, slope 1.500"


def test_a_level_that_replaces_another_says_what_both_start_from() -> None:
    replaced = {"offset": 0.5, "slope": 0.75, "fit": "0123456789ab", "rows": {"count": 60}, "date": "2026-01-02"}
    lines = list(level_lines(fit(0.2, 0.1), "0123456789ab", Split(ROWS, None), replaced))
    (said,) = (line for line in lines if "replaces" in line)
    assert said.startswith(
        "this replaces the level of 2026-01-02 (offset +0.500, slope 0.750, 60 rows). Both start from"
    )
    assert said.endswith('"before" is fit 0123456789ab without a level')
