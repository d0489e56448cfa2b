"""Turns: nobody is lost, callers share by weight, sources of one caller equally."""

import asyncio
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.domain.caller import Caller
from gradewire_server.requests.admission.fair_waiting import FairWaiting, Waiter


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
    for _ in range(2):
        waiting.remove(Caller("b"), 0, gone)
        assert waiting.tokens == 10
        assert waiting.callers == 1
    assert drained(waiting) == [here]
    loop.close()
