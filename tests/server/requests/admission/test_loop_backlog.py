"""The loop is behind when many calls have been taken up late for a while, and not before."""

from hypothesis import given
from hypothesis import strategies as st
from tests.server.requests.admission.clock import Clock

from gradewire_server.requests.admission.loop_backlog import LoopBacklog

_LATE_S = 0.05
_MANY = 160
_SOON_S = 0.001


def _many_under_way(clock: Clock) -> LoopBacklog:
    backlog = LoopBacklog(clock)
    for _ in range(_MANY):
        backlog.entered()
    return backlog


def _calls(backlog: LoopBacklog, clock: Clock, count: int, waited_s: float, gap_s: float = 0.001) -> None:
    for _ in range(count):
        clock.now_s += gap_s
        backlog.began(waited_s)


def test_many_calls_that_are_late_for_a_while_are_a_backlog() -> None:
    clock = Clock()
    backlog = _many_under_way(clock)
    _calls(backlog, clock, 100, _SOON_S)
    assert not backlog.is_behind
    _calls(backlog, clock, 90, _LATE_S)
    assert not backlog.is_behind, "less than a tenth of a second is a burst"
    _calls(backlog, clock, 30, _LATE_S)
    assert backlog.is_behind
    assert backlog.wait_s > _LATE_S


def test_one_call_that_is_taken_up_soon_ends_it_and_the_next_is_noticed_sooner() -> None:
    clock = Clock()
    backlog = _many_under_way(clock)
    _calls(backlog, clock, 200, _LATE_S)
    backlog.refused()
    _calls(backlog, clock, 1, _SOON_S)
    assert not backlog.is_behind
    _calls(backlog, clock, 25, _LATE_S)
    assert backlog.is_behind


def test_a_loop_that_is_late_for_few_callers_is_not_behind() -> None:
    clock = Clock()
    backlog = _many_under_way(clock)
    backlog.left()
    _calls(backlog, clock, 1000, _LATE_S)
    assert not backlog.is_behind
    backlog.entered()
    assert backlog.is_behind


def test_it_is_over_when_nobody_comes() -> None:
    clock = Clock()
    backlog = _many_under_way(clock)
    _calls(backlog, clock, 200, _LATE_S)
    clock.now_s += 1
    assert not backlog.is_behind
    _calls(backlog, clock, 1, _LATE_S)
    assert not backlog.is_behind, "the first ones after a pause are a burst again"


def test_it_counts_what_is_let_in() -> None:
    clock = Clock()
    backlog = LoopBacklog(clock)
    assert backlog.calls_per_s == 0
    for _ in range(1000):
        clock.now_s += 0.01
        backlog.entered()
    assert 95 < backlog.calls_per_s < 105


@given(st.lists(st.tuples(st.floats(0, 0.3), st.floats(0, 0.3)), max_size=60), st.floats(0, 0.009))
def test_whatever_came_before_a_call_that_is_taken_up_soon_there_is_no_backlog(
    calls: list[tuple[float, float]], waited_s: float
) -> None:
    clock = Clock()
    backlog = _many_under_way(clock)
    for gap_s, late_s in calls:
        clock.now_s += gap_s
        backlog.began(late_s)
        if backlog.is_behind:
            backlog.refused()
    backlog.began(waited_s)
    assert not backlog.is_behind
