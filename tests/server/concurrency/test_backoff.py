"""Waits between attempts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.concurrency.backoff import Backoff


def longest(low: float, high: float) -> float:
    assert low == 0
    return high


@pytest.mark.parametrize(("attempt", "wait_s"), [(1, 0.5), (2, 1.0), (3, 2.0), (5, 8.0), (6, 8.0), (10_000, 8.0)])
def test_waits_double_up_to_a_cap(attempt: int, wait_s: float) -> None:
    assert Backoff(base_s=0.5, cap_s=8.0, uniform=longest).wait_s(attempt) == wait_s


@given(st.integers(1, 100), st.floats(0, 1000))
def test_a_server_is_given_the_time_that_it_asks_for(attempt: int, asked_s: float) -> None:
    wait_s = Backoff().wait_s(attempt, asked_s)
    assert asked_s <= wait_s <= asked_s + 0.5
