"""What requests cost is learnt kind by kind, in bounded memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.server.requests.clock import Clock

from gradewire_server.requests.load import CostEstimates, LoopBacklog, OverloadWatch, ServiceRate


def test_a_kind_costs_what_it_did() -> None:
    costs = CostEstimates()
    for _ in range(100):
        costs.learn("a", "cold", 100, 300)
        costs.learn("a", "warm", 100, 0)
    assert costs.tokens("a", "cold", 200) == pytest.approx(600)
    assert costs.tokens("a", "warm", 10_000_000) == 0


def test_what_is_not_known_costs_something() -> None:
    costs = CostEstimates()
    assert costs.tokens("a", "new", 100) == 100
    costs.learn("a", "new", 0, 50)
    assert costs.tokens("a", "new", 100) == 100


def test_kinds_that_come_up_are_kept_and_the_others_forgotten() -> None:
    costs = CostEstimates()
    costs.learn("a", "first", 1, 7)
    for number in range(5000):
        costs.learn("a", number, 1, 3)
        costs.learn("a", "first", 1, 7)
    assert costs.tokens("a", "first", 1) == pytest.approx(7)
    assert costs.tokens("a", 4999, 1) == 3
    assert costs.tokens("a", 0, 1) == 1


def test_nobody_makes_it_forget_what_requests_of_others_cost() -> None:
    costs = CostEstimates()
    costs.learn("a", "warm", 100, 0)
    for number in range(5000):
        costs.learn("b", number, 1, 3)
    assert costs.knows("a", "warm")
    assert costs.tokens("a", "warm", 100) == 0
    assert not costs.knows("b", "warm")


def test_callers_that_come_back_are_kept_and_the_others_forgotten() -> None:
    costs = CostEstimates()
    for number in range(5000):
        costs.learn(f"caller {number}", "x", 1, 3)
        costs.learn("steady", "x", 1, 3)
    assert costs.knows("steady", "x")
    assert costs.knows("caller 4999", "x")
    assert not costs.knows("caller 0", "x")


_LATE_S = 0.05
_MANY = 160
_SOON_S = 0.001


def _many_under_way(clock: Clock) -> LoopBacklog:
    backlog = LoopBacklog(clock)
    for _ in range(_MANY):
        backlog.under_way += 1
    return backlog


def _calls(backlog: LoopBacklog, clock: Clock, count: int, waited_s: float, gap_s: float = 0.001) -> None:
    for _ in range(count):
        clock.now_s += gap_s
        backlog.began(waited_s)


def test_many_calls_that_are_late_for_a_while_are_a_backlog() -> None:
    clock = Clock()
    backlog = _many_under_way(clock)
    _calls(backlog, clock, 100, _SOON_S)
    assert not backlog.is_late
    _calls(backlog, clock, 90, _LATE_S)
    assert not backlog.is_late, "less than a tenth of a second is a burst"
    _calls(backlog, clock, 30, _LATE_S)
    assert backlog.is_late
    assert backlog.wait_s > _LATE_S


def test_one_call_that_is_taken_up_soon_ends_it() -> None:
    clock = Clock()
    backlog = _many_under_way(clock)
    _calls(backlog, clock, 200, _LATE_S)
    assert backlog.is_late
    _calls(backlog, clock, 1, _SOON_S)
    assert not backlog.is_late


def test_a_loop_that_is_late_for_few_callers_is_not_behind() -> None:
    clock = Clock()
    backlog = _many_under_way(clock)
    backlog.under_way -= 1
    _calls(backlog, clock, 1000, _LATE_S)
    assert not backlog.is_late
    backlog.under_way += 1
    assert backlog.is_late


def test_it_is_over_when_nobody_comes() -> None:
    clock = Clock()
    backlog = _many_under_way(clock)
    _calls(backlog, clock, 200, _LATE_S)
    clock.now_s += 1
    assert not backlog.is_late
    _calls(backlog, clock, 1, _LATE_S)
    assert not backlog.is_late, "the first ones after a pause are a burst again"


def test_as_many_calls_end_as_are_under_way_within_the_time_that_one_takes() -> None:
    clock = Clock()
    backlog = _many_under_way(clock)
    assert backlog.calls_per_s == 0
    _calls(backlog, clock, 1, _LATE_S)
    assert backlog.calls_per_s == pytest.approx(_MANY / backlog.wait_s)


@given(st.lists(st.tuples(st.floats(0, 0.3), st.floats(0, 0.3)), max_size=60), st.floats(0, 0.009))
def test_whatever_came_before_a_call_that_is_taken_up_soon_there_is_no_backlog(
    calls: list[tuple[float, float]], waited_s: float
) -> None:
    clock = Clock()
    backlog = _many_under_way(clock)
    for gap_s, late_s in calls:
        clock.now_s += gap_s
        backlog.began(late_s)
    backlog.began(waited_s)
    assert not backlog.is_late


def test_it_lasts_from_the_first_refusal_until_they_pause() -> None:
    clock = Clock()
    watch = OverloadWatch(clock)
    assert watch.lasts_s == 0
    for _ in range(10):
        watch.refused()
        clock.now_s += 1
    assert watch.lasts_s == 10
    clock.now_s += 1.5
    assert watch.lasts_s == 0
    watch.refused()
    clock.now_s += 1
    assert watch.lasts_s == 1, "it began anew"


class ClockServiceRate:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def work(
    rate: ServiceRate,
    clock: ClockServiceRate,
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


def started() -> tuple[ServiceRate, ClockServiceRate]:
    clock = ClockServiceRate()
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
