"""Turns: nobody is lost, callers share by weight, sources of one caller equally."""

import asyncio
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.server.requests.clock import Clock

from gradewire_server.domain.caller import Caller
from gradewire_server.requests.turns import CallerShares, FairWaiting, Waiter


@pytest.fixture
def loop() -> asyncio.AbstractEventLoop:
    return asyncio.new_event_loop()


def drained(waiting: FairWaiting) -> list[Waiter]:
    order = []
    while (waiter := waiting.peek()) is not None:
        waiting.pop()
        order.append(waiter)
    return order


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 500)), max_size=40),
    st.sets(st.integers(0, 39)),
)
def test_everybody_gets_a_turn_once_but_those_who_went_away(asked: list[tuple[int, int, int]], gone: set[int]) -> None:
    loop = asyncio.new_event_loop()
    waiting = FairWaiting()
    waiters = []
    for number, (caller, source, tokens) in enumerate(asked):
        waiter = Waiter(tokens, loop.create_future())
        waiting.add(Caller(str(caller)), source, waiter)
        waiters.append(waiter)
        if number in gone:
            waiter.granted.cancel()
    order = drained(waiting)
    assert sorted(map(id, order)) == sorted(id(waiter) for n, waiter in enumerate(waiters) if n not in gone)
    assert waiting.tokens == 0
    assert not waiting
    loop.close()


def test_a_source_is_served_in_its_order(loop: asyncio.AbstractEventLoop) -> None:
    waiting = FairWaiting()
    waiters = [Waiter(tokens, loop.create_future()) for tokens in (90, 1, 40)]
    for waiter in waiters:
        waiting.add(Caller("a"), "stream", waiter)
    assert drained(waiting) == waiters
    loop.close()


def test_callers_share_by_weight_however_many_streams_they_open(loop: asyncio.AbstractEventLoop) -> None:
    waiting = FairWaiting()
    names: dict[int, str] = {}
    for caller, streams in ((Caller("one"), 1), (Caller("many"), 33), (Caller("heavy", weight=3.0), 2)):
        for stream in range(streams):
            for _ in range(600 // streams):
                waiter = Waiter(10, loop.create_future())
                names[id(waiter)] = caller.key
                waiting.add(caller, stream, waiter)
    served = Counter(names[id(waiter)] for waiter in drained(waiting)[:500])
    assert served["one"] == pytest.approx(100, abs=3)
    assert served["many"] == pytest.approx(100, abs=3)
    assert served["heavy"] == pytest.approx(300, abs=6)
    loop.close()


def test_who_comes_back_does_not_claim_the_time_away(loop: asyncio.AbstractEventLoop) -> None:
    waiting = FairWaiting()
    for _ in range(50):
        waiting.add(Caller("steady"), 0, Waiter(10, loop.create_future()))
    for _ in range(20):
        waiting.pop()
    late = [Waiter(10, loop.create_future()) for _ in range(10)]
    for waiter in late:
        waiting.add(Caller("late"), 0, waiter)
    first = drained(waiting)[:10]
    assert 4 <= sum(waiter in late for waiter in first) <= 6
    loop.close()


def test_one_that_has_gone_is_taken_out_once(loop: asyncio.AbstractEventLoop) -> None:
    waiting = FairWaiting()
    here, gone = Waiter(10, loop.create_future()), Waiter(20, loop.create_future())
    waiting.add(Caller("a"), 0, here)
    waiting.add(Caller("b"), 0, gone)
    gone.granted.cancel()
    for _ in range(2):
        waiting.drop_gone()
        assert waiting.tokens == 10
        assert waiting.callers == 1
    assert drained(waiting) == [here]
    loop.close()


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
    shares.promise(_B, 0.1, 10)
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
    clock = Clock()
    shares = CallerShares(clock)
    told = [shares.promise(_A, 0.1, 10) for _ in range(1000)]
    assert told == sorted(told)
    assert told[0] == pytest.approx(0.1)
    assert told[-1] == pytest.approx(10)
    assert shares.promise(Caller("c"), 0.1, 10) == pytest.approx(0.2), "it has half of the turns"
    clock.now_s += 9.95
    assert shares.promise(_A, 0.1, 10) == pytest.approx(0.05 + 0.1), "what was promised is nearly over, and it is alone"


@pytest.mark.parametrize(
    "ask",
    [lambda shares, caller: shares.has_few(caller, 1), lambda shares, caller: shares.promise(caller, 0.01, 10)],
)
def test_callers_that_come_once_are_forgotten(ask: Callable[[CallerShares, Caller], object]) -> None:
    clock = Clock()
    shares = CallerShares(clock)
    most = 0
    for number in range(10_000):
        clock.now_s += 0.001
        ask(shares, Caller(str(number)))
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


def test_a_caller_with_less_than_half_of_its_share_of_requests_has_few() -> None:
    shares = CallerShares(Clock())
    assert not shares.has_few(_A, 0)
    for _ in range(100):
        shares.enter(_A, 0)
    assert not shares.has_few(_A, 100), "it is alone"
    assert shares.has_few(_B, 100)
    for _ in range(59):
        shares.enter(_B, 0)
    assert shares.has_few(_B, 159), "three quarters are its share"
    for _ in range(2):
        shares.enter(_B, 0)
    assert not shares.has_few(_B, 161)
    for _ in range(2):
        shares.leave(_B, 0)
    assert shares.has_few(_B, 159)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=40))
def test_not_all_have_few_requests(begun: list[int]) -> None:
    shares = CallerShares(Clock())
    for number in begun:
        shares.enter(Caller(str(number)), 0)
    assert not all(shares.has_few(Caller(str(number)), len(begun)) for number in set(begun))
