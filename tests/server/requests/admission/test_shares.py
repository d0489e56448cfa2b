"""A caller beside others has what its weight gives it, and nobody pays for what others were promised."""

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.server.requests.admission.clock import Clock

from gradewire_server.domain.caller import Caller
from gradewire_server.requests.admission.shares import CallerShares

_A, _B = Caller("a"), Caller("b", weight=3.0)
_ALLOWED = 1000.0


def test_a_caller_alone_has_all_of_it() -> None:
    shares = CallerShares(Clock())
    shares.enter(_A, 900)
    assert shares.has_room(_A, 100, 900, _ALLOWED)
    assert not shares.has_room(_A, 101, 900, _ALLOWED)


def test_beside_others_it_has_what_its_weight_gives_it() -> None:
    shares = CallerShares(Clock())
    shares.enter(_A, 200)
    shares.enter(_B, 700)
    assert shares.has_room(_A, 50, 900, _ALLOWED)
    assert not shares.has_room(_A, 51, 900, _ALLOWED)
    assert shares.has_room(_B, 50, 900, _ALLOWED)
    assert not shares.has_room(_B, 51, 900, _ALLOWED)


def test_a_share_is_kept_free_for_a_second() -> None:
    clock = Clock()
    shares = CallerShares(clock)
    shares.enter(_A, 600)
    shares.promise(_B, 10, 100, 10)
    assert not shares.has_room(_A, 10, 600, _ALLOWED)
    clock.now_s += 1.1
    assert shares.has_room(_A, 10, 600, _ALLOWED)


def test_of_many_callers_each_may_have_one_request() -> None:
    shares = CallerShares(Clock())
    for number in range(100):
        shares.enter(Caller(str(number)), 15)
    assert shares.has_room(_A, 15, 1500, _ALLOWED), "its share is 10"
    assert not shares.has_room(_A, 15, 2001, _ALLOWED)
    assert not shares.has_room(Caller("7"), 15, 1500, _ALLOWED)


def test_promises_to_one_caller_are_nothing_to_others_and_are_bounded() -> None:
    shares = CallerShares(Clock())
    told = [shares.promise(_A, 10, 100, 10) for _ in range(1000)]
    assert told == sorted(told)
    assert told[0] == pytest.approx(0.1)
    assert told[-1] == pytest.approx(10)
    assert shares.promise(Caller("c"), 10, 100, 10) == pytest.approx(0.2), "it has half of the turns"
    shares.calm()
    assert shares.promise(_A, 10, 100, 10) < 0.3


@pytest.mark.parametrize("given_to", [CallerShares.had, lambda shares, caller, _: shares.promise(caller, 1, 100, 10)])
def test_callers_that_come_once_are_forgotten(given_to: Callable[[CallerShares, Caller, float], object]) -> None:
    clock = Clock()
    shares = CallerShares(clock)
    most = 0
    for number in range(10_000):
        clock.now_s += 0.001
        given_to(shares, Caller(str(number)), 1.0)
        most = max(most, len(shares._shares))
    assert most <= 1101, "those of a second, and of the tenth in which nobody looked"
    assert shares._weights == len(shares._shares)


def test_a_weight_that_changes_counts_at_once() -> None:
    shares = CallerShares(Clock())
    shares.enter(_A, 400)
    shares.enter(_B, 0)
    assert not shares.has_room(_A, 1, 400, _ALLOWED)
    shares.enter(Caller("b", weight=1.0), 0)
    assert shares.has_room(_A, 1, 400, _ALLOWED)


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0, 500), st.floats(0, 500), st.floats(0, 2)), max_size=40))
def test_who_has_left_has_nothing(asked: list[tuple[int, float, float, float]]) -> None:
    clock = Clock()
    shares = CallerShares(clock)
    for number, tokens, more, _ in asked:
        shares.enter(Caller(str(number), weight=1.0 + number), tokens)
        shares.grow(Caller(str(number), weight=1.0 + number), more)
    for number, tokens, more, pause_s in asked:
        clock.now_s += pause_s
        shares.leave(Caller(str(number), weight=1.0 + number), tokens + more)
    clock.now_s += 5
    assert shares.has_room(_A, _ALLOWED, 0, _ALLOWED)
    assert not shares.has_room(_A, _ALLOWED + 1, 3 * _ALLOWED, _ALLOWED)


def test_who_has_had_less_than_half_of_its_share_has_had_little() -> None:
    clock = Clock()
    shares = CallerShares(clock)
    assert not shares.has_had_little(_A)
    shares.had(_A, 100)
    assert not shares.has_had_little(_A), "it is alone"
    assert shares.has_had_little(_B)
    shares.had(_B, 59)
    assert shares.has_had_little(_B), "three quarters are its share of 159"
    shares.had(_B, 2)
    assert not shares.has_had_little(_B)
    clock.now_s += 0.5
    shares.had(_A, 100)
    assert shares.has_had_little(_B), "what it had fades"


@given(st.lists(st.tuples(st.integers(0, 4), st.floats(0.1, 100), st.floats(0, 0.5)), min_size=1, max_size=40))
@example([(1, 100, 0.5), (0, 0.1, 0.5), (0, 0.1, 0.5), (0, 0.1, 0.5)])  # one that had much has gone
def test_not_all_have_had_little(given_out: list[tuple[int, float, float]]) -> None:
    clock = Clock()
    shares = CallerShares(clock)
    for number, amount, pause_s in given_out:
        shares.had(Caller(str(number)), amount)
        clock.now_s += pause_s
    # The first ask tells the others that it is there, which makes their shares smaller.
    callers = [Caller(str(number)) for number in {number for number, _, _ in given_out}]
    for caller in callers:
        shares.has_had_little(caller)
    assert not all(shares.has_had_little(caller) for caller in callers)
