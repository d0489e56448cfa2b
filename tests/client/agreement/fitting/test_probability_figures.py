"""Calibration error, Brier score and risk at coverage, worked out on paper."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire.agreement.fitting.probability_figures import accuracy_at_coverage, brier_score, calibration_error

PROBABILITIES = np.array([0.9, 0.1, 0.6, 0.2, 0.8])
RIGHT = np.array([True, False, False, True, True])


def test_calibration_error_of_two_bins() -> None:
    """Sorted: .1 .2 .6 | .8 .9. Means .3 and .85, shares of right 1/3 and 1: (3 · .0333 + 2 · .15) / 5 = .08."""
    assert calibration_error(PROBABILITIES, RIGHT, bins=2) == pytest.approx(0.08)


def test_more_bins_than_rows_are_as_many_as_rows() -> None:
    """|.1| + |.8| + |.6| + |.2| + |.1| = 1.8, over 5."""
    assert calibration_error(PROBABILITIES, RIGHT) == pytest.approx(0.36)


def test_brier_score() -> None:
    """(.01 + .01 + .36 + .64 + .04) / 5."""
    assert brier_score(PROBABILITIES, RIGHT) == pytest.approx(0.212)


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1), st.integers(1, 20))
def test_errors_are_shares(rows: list[tuple[float, bool]], bins: int) -> None:
    probabilities, right = np.array([p for p, _ in rows]), np.array([r for _, r in rows])
    assert -1e-12 <= calibration_error(probabilities, right, bins=bins) <= 1 + 1e-12
    assert 0 <= brier_score(probabilities, right) <= 1
    assert calibration_error(right.astype(float), right, bins=bins) == pytest.approx(0, abs=1e-12)


def test_risk_at_coverage() -> None:
    """By confidence: .9 right, .1 right, .2 wrong and .8 right (both .8, in order of rows), .6 wrong."""
    accuracies = accuracy_at_coverage(PROBABILITIES, RIGHT, (1.0, 0.6, 0.4, 0.01))
    assert accuracies == pytest.approx([3 / 5, 2 / 3, 1.0, 1.0])
