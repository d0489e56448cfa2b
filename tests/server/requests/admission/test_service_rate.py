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
    saturated: bool = True,
    expected_per_s: float = 0,
) -> None:
    for _ in range(round(seconds * 20)):
        clock.now_s += 0.05
        rate.finished(tokens_per_s * 0.05, expected_per_s * 0.05, saturated=saturated)


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


@given(st.floats(10, 1e5), st.floats(10, 1e5))
def test_it_follows_a_busy_server_up_and_down(before: float, after: float) -> None:
    rate, clock = started()
    work(rate, clock, before, seconds=5)
    work(rate, clock, after, seconds=60)
    assert rate.tokens_per_s == pytest.approx(after, rel=0.05)


def test_a_quiet_server_is_not_a_slow_one() -> None:
    rate, clock = started()
    work(rate, clock, 1000, seconds=5)
    work(rate, clock, 10, seconds=60, saturated=False)
    assert rate.tokens_per_s == pytest.approx(1000, rel=0.05)


def test_time_spent_on_other_things_than_tokens_says_nothing_of_the_rate() -> None:
    rate, clock = started()
    work(rate, clock, 10, seconds=5, expected_per_s=1000)
    assert rate.tokens_per_s == 0
    work(rate, clock, 1000, seconds=5, expected_per_s=1000)
    work(rate, clock, 10, seconds=60, expected_per_s=1000)
    assert rate.tokens_per_s == pytest.approx(1000, rel=0.1)


def test_time_without_work_does_not_count() -> None:
    rate, clock = started()
    work(rate, clock, 1000, seconds=5)
    clock.now_s += 3600
    rate.began()
    work(rate, clock, 1000, seconds=5)
    assert rate.tokens_per_s == pytest.approx(1000, rel=0.05)
