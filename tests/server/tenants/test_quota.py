"""A quota of text: what is let through, what is slowed, and for how long."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.tenants.quota import TokenBucket, text_tokens


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.mark.parametrize(("size_bytes", "tokens"), [(0, 0), (1, 1), (4, 1), (5, 2), (4000, 1000)])
def test_a_token_is_four_bytes(size_bytes: int, tokens: int) -> None:
    assert text_tokens(size_bytes) == tokens


def test_what_is_refused_goes_through_after_the_time_that_was_said() -> None:
    clock = Clock()
    bucket = TokenBucket(60, clock=clock)
    assert bucket.take(50) == 0
    assert bucket.take(20) == pytest.approx(10), "one token a second, ten are missing"
    clock.now_s = 9.9
    assert bucket.take(20) > 0
    clock.now_s = 10.01
    assert bucket.take(20) == 0


def test_a_message_beyond_the_quota_needs_a_full_bucket_and_leaves_a_debt() -> None:
    clock = Clock()
    bucket = TokenBucket(60, clock=clock)
    assert bucket.take(1) == 0
    assert bucket.take(600) == pytest.approx(1)
    clock.now_s = 1
    assert bucket.take(600) == 0
    assert bucket.take(1) == pytest.approx(541)


def test_another_rate_gives_nothing_away() -> None:
    clock = Clock()
    bucket = TokenBucket(60, clock=clock)
    bucket.take(60)
    bucket.set_rate(120)
    assert bucket.take(61) > 0
    assert bucket.take(60) == 0
    bucket.set_rate(30)
    assert bucket.take(1) == pytest.approx(2 * (90 + 1)), "120 were drawn of 30: 90 have to come back, one in 2 s"


async def test_who_waits_first_is_served_first_and_a_cancelled_one_takes_nothing() -> None:
    bucket = TokenBucket(6_000)  # one a hundredth of a second
    await bucket.wait(6_000)
    order: list[str] = []

    async def one(name: str) -> None:
        await bucket.wait(5)
        order.append(name)

    first = asyncio.create_task(one("first"))
    gone = asyncio.create_task(one("gone"))
    second = asyncio.create_task(one("second"))
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.gather(first, second)
    assert order == ["first", "second"]


@given(
    st.integers(1, 10_000),
    st.lists(st.tuples(st.floats(0, 30), st.floats(0, 1)), max_size=60),
)
def test_no_more_passes_than_a_minute_and_what_has_come_since(rate: int, calls: list[tuple[float, float]]) -> None:
    clock = Clock()
    bucket = TokenBucket(rate, clock=clock)
    passed = 0
    for pause_s, share in calls:
        clock.now_s += pause_s
        tokens = int(share * rate)
        refused_for_s = bucket.take(tokens)
        passed += 0 if refused_for_s else tokens
        assert passed <= rate + clock.now_s * rate / 60 + 1e-6
        assert 0 <= refused_for_s <= 60
