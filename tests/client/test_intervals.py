"""Closed forms beside scipy's intervals."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from gradewire.intervals import mean_interval, share_interval


@given(st.lists(st.floats(1.5, 9), min_size=3, max_size=60, unique=True))
def test_the_interval_of_a_mean_is_student_s(scores: list[float]) -> None:
    low, high = mean_interval(scores)
    mean = sum(scores) / len(scores)
    exact = stats.t.ppf(0.975, len(scores) - 1) * stats.sem(scores)
    assert low is not None
    assert high is not None
    assert (high + low) / 2 == pytest.approx(mean, abs=1e-9)
    assert (high - low) / 2 == pytest.approx(exact, rel=0.01, abs=1e-9)


@given(st.lists(st.floats(0.01, 0.99), min_size=3, max_size=60, unique=True))
def test_the_interval_of_probabilities_lies_among_them(scores: list[float]) -> None:
    low, high = mean_interval(scores)
    exact = stats.t.interval(0.95, len(scores) - 1, sum(scores) / len(scores), stats.sem(scores))
    assert (low, high) == pytest.approx((max(0, exact[0]), min(1, exact[1])), rel=0.01, abs=0.01)


@pytest.mark.parametrize("scores", [[0, 0, 0], [1.0, 0.0, 1.0, 1.0]])
def test_scores_of_0_and_1_have_the_interval_of_a_share(scores: list[float]) -> None:
    assert mean_interval(scores) == share_interval(int(sum(scores)), len(scores))


@pytest.mark.parametrize("scores", [[], [0.5], [0.0, 1.0], [0.5] * 9])
def test_few_or_equal_scores_have_no_interval(scores: list[float]) -> None:
    assert mean_interval(scores) == (None, None)


@given(st.integers(1, 500).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total))))
def test_the_interval_of_a_share_is_wilson_s(counts: tuple[int, int]) -> None:
    exact = stats.binomtest(*counts).proportion_ci(method="wilson")
    assert share_interval(*counts) == pytest.approx((exact.low, exact.high), abs=1e-6)


def test_no_verdict_has_no_interval() -> None:
    assert share_interval(0, 0) == (None, None)
