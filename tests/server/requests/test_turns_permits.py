"""Permits are never lost nor made up, whoever waits, gives up or fails."""

import asyncio
import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.requests.errors import OverloadedError
from gradewire_server.requests.turns import Permits, SlowedMessages


def test_holds_up_to_the_limit_and_says_when_to_come_back() -> None:
    permits = Permits(10, "items")
    with permits.hold(6), permits.hold(4):
        assert permits.taken == 10
        with (
            pytest.raises(OverloadedError, match="10 items are in flight; 1 more would exceed") as caught,
            permits.hold(1),
        ):
            pass
        assert 0 < caught.value.retry_after_s <= 5
    assert permits.taken == 0


def test_gives_back_when_the_work_fails() -> None:
    permits = Permits(10, "items")
    with contextlib.suppress(ZeroDivisionError), permits.hold(6):
        raise ZeroDivisionError
    assert permits.taken == 0


def test_what_is_larger_than_all_is_served_alone() -> None:
    permits = Permits(10, "items")
    with permits.hold(100), pytest.raises(OverloadedError), permits.hold(1):
        pass
    with permits.hold(1), pytest.raises(OverloadedError), permits.hold(100):
        pass


async def test_what_is_larger_than_all_is_waited_for_alone() -> None:
    permits = Permits(4, "items")
    await asyncio.wait_for(permits.acquire(9), timeout=1)
    waiting = asyncio.create_task(permits.acquire(1))
    await asyncio.sleep(0)
    assert not waiting.done()
    permits.release(9)
    await asyncio.wait_for(waiting, timeout=1)


async def test_waiters_are_served_first_come_first_served() -> None:
    permits = Permits(10, "items")
    order: list[int] = []

    async def take(number: int, count: int) -> None:
        await permits.acquire(count)
        order.append(number)

    await permits.acquire(10)
    waiting = [asyncio.create_task(take(number, count)) for number, count in enumerate((8, 1, 1))]
    await asyncio.sleep(0)
    permits.release(2)
    await asyncio.sleep(0)
    assert order == [], "a small one must not overtake the large one that came first"
    permits.release(8)
    await asyncio.gather(*waiting)
    assert order == [0, 1, 2]
    assert permits.taken == 10


@given(
    counts=st.lists(st.integers(1, 6), min_size=1, max_size=12),
    cancelled=st.sets(st.integers(0, 11)),
    pauses=st.lists(st.integers(0, 3), min_size=12, max_size=12),
)
def test_no_permit_is_lost_or_made_up_by_cancelling(counts: list[int], cancelled: set[int], pauses: list[int]) -> None:
    async def run() -> None:
        permits = Permits(6, "items")

        async def work(count: int, pause: int) -> None:
            await permits.acquire(count)
            try:
                assert permits.taken <= 6
                for _ in range(pause):
                    await asyncio.sleep(0)
            finally:
                permits.release(count)

        tasks = [asyncio.create_task(work(count, pause)) for count, pause in zip(counts, pauses, strict=False)]
        for number in sorted(cancelled & set(range(len(tasks)))):
            await asyncio.sleep(0)
            tasks[number].cancel()
        done = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), timeout=5)
        assert all(result is None or isinstance(result, asyncio.CancelledError) for result in done)
        assert permits.taken == 0

    asyncio.run(run())


def test_one_tenant_has_a_quarter_and_leaves_the_rest_to_others() -> None:
    slowed = SlowedMessages(400)
    with slowed.hold("a", 100):
        with pytest.raises(OverloadedError, match="waiting for a quota") as caught, slowed.hold("a", 1):
            pass
        assert caught.value.retry_after_s > 0
        with slowed.hold("b", 100):
            assert slowed.taken == 200
        assert slowed.taken == 100
    with slowed.hold("a", 5000):  # larger than all: alone
        pass
    assert slowed.taken == 0


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 300))))
def test_what_is_held_is_bounded_and_all_comes_back(messages: list[tuple[str, int]]) -> None:
    slowed = SlowedMessages(1000)
    with contextlib.ExitStack() as stack:
        for tenant, size in messages:
            with contextlib.suppress(OverloadedError):
                stack.enter_context(slowed.hold(tenant, size))
            assert slowed.taken <= 1000
    assert slowed.taken == 0
    assert not slowed._by_tenant
