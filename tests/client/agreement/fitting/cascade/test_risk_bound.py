"""p-values and the thresholds that they allow: values from other programs, and what they promise by simulation."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire.agreement.fitting.cascade.risk_bound import exact_p_values, last_rejected


def exact_p_value(wrong: int, accepted: int, risk: float) -> float:
    return float(exact_p_values(np.array([wrong]), np.array([accepted]), risk)[0])


def binomial_cdf(count: int, trials: int, share: float) -> float:
    """By its definition."""
    return sum(math.comb(trials, k) * share**k * (1 - share) ** (trials - k) for k in range(count + 1))


@pytest.mark.parametrize(("wrong", "accepted", "risk"), [(0, 20, 0.1), (3, 50, 0.1), (7, 200, 0.05), (200, 200, 0.05)])
def test_the_exact_p_value_is_the_binomials(wrong: int, accepted: int, risk: float) -> None:
    assert exact_p_value(wrong, accepted, risk) == pytest.approx(binomial_cdf(wrong, accepted, risk))


def test_without_rows_nothing_is_rejected() -> None:
    assert exact_p_value(0, 0, 0.1) == 1.0


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


def test_a_true_hypothesis_is_rejected_no_more_often_than_said() -> None:
    """A tenth of the verdicts is wrong, and each row is accepted or not by itself."""
    random = np.random.default_rng(5)
    accepted = (random.random((4000, 120)) < 0.7).sum(axis=1)
    wrong = random.binomial(accepted, 0.1)
    rejected = np.mean(exact_p_values(wrong, accepted, 0.1) <= 0.1)
    assert 0.04 < rejected <= 0.1 + 3 * (0.1 * 0.9 / 4000) ** 0.5
