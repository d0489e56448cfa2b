"""The rate follows what a busy server does, and nothing that a quiet one does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.requests.admission.service_rate import ServiceRate


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def work(
    rate: ServiceRate,
    clock: Clock,
    tokens_per_s: float,
    *,
    seconds: float,
    in_work_s: float = 0.2,
    expected_per_s: float = 0,
) -> None:
    """A server that computes so much, with work for `in_work_s` in it all the time."""
    for _ in range(round(seconds * 20)):
        clock.now_s += 0.05
        rate.computed(round(tokens_per_s * 0.05))
        rate.left(expected_per_s * 0.05, in_work_s * tokens_per_s)


def started() -> tuple[ServiceRate, Clock]:
    clock = Clock()
    rate = ServiceRate(clock)
    rate.began()
    return rate, clock


def test_it_is_unknown_until_a_window_has_passed() -> None:
    rate, clock = started()
    work(rate, clock, 1000, seconds=0.1)
    assert rate.tokens_per_s == 0
    work(rate, clock, 1000, seconds=0.4)
    assert rate.tokens_per_s == pytest.approx(1000, rel=0.25)


@given(st.floats(1000, 1e5), st.floats(1000, 1e5))
def test_it_follows_a_busy_server_up_and_down(before: float, after: float) -> None:
    rate, clock = started()
    work(rate, clock, before, seconds=5)
    work(rate, clock, after, seconds=60)
    assert rate.tokens_per_s == pytest.approx(after, rel=0.05)


def test_a_quiet_server_is_not_a_slow_one() -> None:
    rate, clock = started()
    work(rate, clock, 1000, seconds=5)
    work(rate, clock, 10, seconds=60, in_work_s=0.01)
    assert rate.tokens_per_s == pytest.approx(1000, rel=0.05)


def test_time_spent_on_other_things_than_tokens_says_nothing_of_the_rate() -> None:
    rate, clock = started()
    work(rate, clock, 20, seconds=5, expected_per_s=1000)
    assert rate.tokens_per_s == 0
    work(rate, clock, 1000, seconds=5, expected_per_s=1000)
    work(rate, clock, 20, seconds=60, expected_per_s=1000)
    assert rate.tokens_per_s == pytest.approx(1000, rel=0.1)


def test_time_without_work_does_not_count() -> None:
    rate, clock = started()
    work(rate, clock, 1000, seconds=5)
    clock.now_s += 3600
    rate.began()
    work(rate, clock, 1000, seconds=5)
    assert rate.tokens_per_s == pytest.approx(1000, rel=0.05)


def test_what_nobody_computed_says_nothing_of_the_rate() -> None:
    """Work that is cut off leaves as fast as it came."""
    rate, clock = started()
    work(rate, clock, 1000, seconds=5)
    for _ in range(1000):
        clock.now_s += 0.05
        rate.left(100_000, 1_000_000)
    assert rate.tokens_per_s == pytest.approx(1000, rel=0.05)


def test_a_rate_that_is_far_too_high_comes_down_under_load() -> None:
    rate, clock = started()
    work(rate, clock, 400_000, seconds=5)
    work(rate, clock, 4000, seconds=30)
    assert rate.tokens_per_s == pytest.approx(4000, rel=0.05)


def test_what_was_computed_while_nothing_was_in_work_does_not_count() -> None:
    rate, clock = started()
    work(rate, clock, 1000, seconds=5)
    rate.computed(1_000_000)
    rate.began()
    work(rate, clock, 1000, seconds=1)
    assert rate.tokens_per_s == pytest.approx(1000, rel=0.05)
