"""Risk at coverage, worked out on paper."""

import numpy as np
import pytest
from benchmarks.agreement.risk_coverage import accuracy_at_coverage

PROBABILITIES = np.array([0.9, 0.1, 0.6, 0.2, 0.8])
RIGHT = np.array([True, False, False, True, True])


def test_risk_at_coverage() -> None:
    """By confidence: .9 right, .1 right, .2 wrong and .8 right (both .8, in order of rows), .6 wrong."""
    accuracies = accuracy_at_coverage(PROBABILITIES, RIGHT, (1.0, 0.6, 0.4, 0.01))
    assert accuracies == pytest.approx([3 / 5, 2 / 3, 1.0, 1.0])
