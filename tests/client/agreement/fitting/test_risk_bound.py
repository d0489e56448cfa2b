"""p-values and the thresholds that they allow: values from other programs, and what they promise by simulation."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire.agreement.fitting.risk_bound import (
    clustered_p_values,
    exact_p_values,
    hoeffding_bentkus_p_values,
    last_rejected,
)


def exact_p_value(wrong: int, accepted: int, risk: float) -> float:
    return float(exact_p_values(np.array([wrong]), np.array([accepted]), risk)[0])


def hoeffding_bentkus_p_value(mean: float, count: int, risk: float) -> float:
    return float(hoeffding_bentkus_p_values(np.array([mean]), count, risk)[0])


def clustered_p_value(wrong: int, accepted: int, risk: float, *, questions: int, most: int) -> float:
    return float(clustered_p_values(np.array([wrong]), np.array([accepted]), risk, questions=questions, most=most)[0])


def binomial_cdf(count: int, trials: int, share: float) -> float:
    """By its definition."""
    return sum(math.comb(trials, k) * share**k * (1 - share) ** (trials - k) for k in range(count + 1))


@pytest.mark.parametrize(("wrong", "accepted", "risk"), [(0, 20, 0.1), (3, 50, 0.1), (7, 200, 0.05), (200, 200, 0.05)])
def test_the_exact_p_value_is_the_binomials(wrong: int, accepted: int, risk: float) -> None:
    assert exact_p_value(wrong, accepted, risk) == pytest.approx(binomial_cdf(wrong, accepted, risk))


def test_without_rows_nothing_is_rejected() -> None:
    assert exact_p_value(0, 0, 0.1) == 1.0
    assert hoeffding_bentkus_p_value(0.0, 0, 0.1) == 1.0


def test_hoeffding_and_bentkus_by_hand() -> None:
    # Hoeffding: exp(-100 (0.02 ln(0.02 / 0.1) + 0.98 ln(0.98 / 0.9))); Bentkus: e P(Bin(100, 0.1) <= 2).
    hoeffding = math.exp(-100 * (0.02 * math.log(0.2) + 0.98 * math.log(0.98 / 0.9)))
    bentkus = math.e * binomial_cdf(2, 100, 0.1)
    assert hoeffding_bentkus_p_value(0.02, 100, 0.1) == pytest.approx(min(hoeffding, bentkus))
    assert hoeffding_bentkus_p_value(0.0, 30, 0.1) == pytest.approx(0.9**30)  # Hoeffding's at 0
    assert hoeffding_bentkus_p_value(0.1, 100, 0.1) == 1.0


@given(st.integers(1, 200), st.integers(0, 200), st.floats(0.01, 0.9))
def test_of_single_rows_questions_say_no_more_than_the_exact_p_value(accepted: int, wrong: int, risk: float) -> None:
    wrong = min(wrong, accepted)
    clustered = clustered_p_value(wrong, accepted, risk, questions=accepted, most=1)
    assert 0 <= exact_p_value(wrong, accepted, risk) <= clustered + 1e-9 <= 1 + 1e-9


@given(st.integers(0, 50), st.floats(0.01, 0.9))
def test_more_wrong_verdicts_and_a_smaller_risk_are_less_sure(wrong: int, risk: float) -> None:
    assert exact_p_value(wrong, 60, risk) <= exact_p_value(wrong + 1, 60, risk)
    assert exact_p_value(wrong, 60, risk) <= exact_p_value(wrong, 60, risk * 0.9) + 1e-12


@pytest.mark.parametrize(
    ("p_values", "start", "last"),
    [([0.01, 0.05, 0.2, 0.01], 0, 1), ([0.2, 0.01], 0, None), ([0.2, 0.01], 1, 1), ([0.01], 0, 0), ([], 0, None)],
)
def test_a_sequence_ends_at_the_first_that_is_not_rejected(p_values: list[float], start: int, last: int | None) -> None:
    assert last_rejected(p_values, start, 0.1) == last


@pytest.mark.parametrize("dependent", [False, True])
def test_a_true_hypothesis_is_rejected_no_more_often_than_said(dependent: bool) -> None:  # noqa: FBT001 - both cases
    """Questions of four rows, a tenth of which are wrong: each by itself, or all of a question together."""
    random = np.random.default_rng(5)
    rejected = 0
    for _ in range(2000):
        size = (60, 1) if dependent else (60, 4)
        wrong = np.broadcast_to(random.random(size) < 0.1, (60, 4))
        accepted = random.random((60, 4)) < 0.7
        taken = int(accepted.sum())
        rejected += clustered_p_value(int((wrong & accepted).sum()), taken, 0.1, questions=60, most=4) <= 0.1
    assert rejected <= 0.1 * 2000
