import math

import numpy as np
import pytest

from gradewire_models.judges.cores.int8 import read_logits
from gradewire_models.judges.cores.rows import CoreError, Row


def test_labels_share_one_among_themselves_and_know_their_part_of_all() -> None:
    # Logits are logarithms of 1, 2, 3, 4: of ten parts, tokens 1 and 3 have two and four.
    logits = np.log(np.array([1, 2, 3, 4], np.float32))
    result = read_logits(logits, Row(1, (0,), labels=(3, 1)))
    assert result.probabilities == pytest.approx((4 / 6, 2 / 6), abs=1e-7)
    assert result.mass == pytest.approx(0.6, abs=1e-7)
    assert result.next_token == -1


def test_labels_far_below_everything_else_still_share_one() -> None:
    logits = np.array([1000.0, 0.0, math.log(3.0)], np.float32)
    result = read_logits(logits, Row(1, (0,), labels=(1, 2)))
    assert result.probabilities == pytest.approx((0.25, 0.75), abs=1e-7)
    assert result.mass == 0.0


def test_labels_that_are_everything_have_all_the_mass() -> None:
    result = read_logits(np.zeros(2, np.float32), Row(1, (0,), labels=(0, 1)))
    assert result.probabilities == (0.5, 0.5)
    assert result.mass == 1.0


def test_the_most_probable_token_comes_next_and_the_first_of_equals() -> None:
    assert read_logits(np.array([0, 2, 2], np.float32), Row(1, (0,), next_token=True)).next_token == 1


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_what_is_no_number_is_no_answer(bad: float) -> None:
    with pytest.raises(CoreError):
        read_logits(np.array([0.0, bad], np.float32), Row(1, (0,), labels=(0, 1)))
