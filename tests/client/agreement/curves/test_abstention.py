"""Accuracy where a metric trusts its verdict, beside accuracy everywhere."""

import math

import numpy as np
import pytest

from gradewire.agreement.curves.abstention import Abstention, abstention

NAN = math.nan


def test_worked_out_by_hand() -> None:
    """Of five judged rows three are certain, of which two are right; of the uncertain two one is."""
    verdicts = np.array([1, 0, 1, 1, 0, NAN])
    certain = np.array([True, True, True, False, False, True])
    labels = np.array([1.0, 0.0, 0.4, 0.5, 1.0, 1.0])
    found = abstention(verdicts, certain, labels)
    assert found == Abstention(judged=5, uncertain=2, accuracy=3 / 5, accuracy_certain=pytest.approx(2 / 3))


def test_without_any_certain_row_there_is_no_accuracy_of_them() -> None:
    found = abstention(np.array([1.0, 0.0]), np.array([False, False]), np.array([1.0, 1.0]))
    assert found is not None
    assert (found.uncertain, found.accuracy) == (2, 0.5)
    assert math.isnan(found.accuracy_certain)


@pytest.mark.parametrize(
    ("verdicts", "certain", "labels"),
    [
        ([1.0, 0.0], [True, True], [1.0, 1.0]),
        ([1.0, NAN], [True, False], [1.0, 1.0]),  # an uncertain row without a verdict is none
        ([NAN, NAN], [False, False], [1.0, 1.0]),
        ([1.0, 0.0], [True, False], [1.0, 3.0]),  # nobody said from where 1 to 5 is right
        ([], [], []),
    ],
)
def test_there_is_nothing_to_tell(verdicts: list[float], certain: list[bool], labels: list[float]) -> None:
    assert abstention(np.array(verdicts), np.array(certain, dtype=bool), np.array(labels)) is None
