"""Bodies in any pieces: lines come out whole, what is held is bounded and given back."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers

from gradewire_gateway.body import Body, Budget, DisconnectedError, Share
from gradewire_gateway.problems import ProblemError
from gradewire_gateway.settings import Bounds

GONE = {"type": "http.disconnect"}


def receiving(*chunks: bytes, then: dict[str, Any] | None = None) -> Any:
    """ASGI's receive: these pieces of a body, and then what comes."""
    last = len(chunks) - 1
    messages = [
        {"type": "http.request", "body": chunk, "more_body": then is not None or index < last}
        for index, chunk in enumerate(chunks)
    ]
    waiting = iter([*messages, then or GONE])

    async def receive() -> dict[str, Any]:
        return next(waiting)

    return receive


def body_of(*chunks: bytes, budget: Budget | None = None, then: dict[str, Any] | None = None) -> Body:
    share = Share(budget or Budget(250, "too much is held"), "a caller")
    return Body(receiving(*chunks, then=then), Headers(), Bounds(max_body_bytes=100), share)


async def lines_of(body: Body) -> list[bytes]:
    return [line async for line in body.lines()]


@given(st.lists(st.binary(max_size=30), min_size=1, max_size=6), st.data())
def test_lines_do_not_depend_on_the_pieces(lines: list[bytes], data: st.DataObject) -> None:
    whole = b"\n".join(line.replace(b"\n", b"") for line in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=5)))
    pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    found = asyncio.run(lines_of(body_of(*pieces)))
    assert found == [line for line in whole.split(b"\n") if line.strip()]


@given(st.integers(1, 40), st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5), st.integers(0, 45)), max_size=60))
def test_callers_hold_no_more_than_they_leave_free_and_all_of_it_comes_back(
    most: int, steps: list[tuple[int, int, int]]
) -> None:
    budget = Budget(most, "too much is held")
    shares = {(caller, number): Share(budget, caller) for caller in range(4) for number in range(6)}
    held: dict[tuple[int, int], int] = dict.fromkeys(shares, 0)
    for caller, number, count in steps:
        own = sum(held[caller, each] for each in range(6)) - held[caller, number] + count
        others = sum(held.values()) - held[caller, number] + count - own
        fits = count <= held[caller, number] or 2 * own + others <= most + 1
        try:
            shares[caller, number].hold(count)
        except ProblemError:
            assert not fits
        else:
            assert fits
            held[caller, number] = count
        assert budget.held == sum(held.values()) <= most
    for share in shares.values():
        with share:
            pass
    assert budget.held == 0
    for caller in range(4):  # nothing is left of any caller
        with Share(budget, caller) as share:
            share.hold((most + 1) // 2)


async def test_a_line_that_is_too_large_is_refused() -> None:
    with pytest.raises(ProblemError) as caught:
        await lines_of(body_of(b"x" * 60, b"y" * 60))
    assert caught.value.problem.status == 413


async def test_what_is_held_is_given_back() -> None:
    budget = Budget(250, "too much is held")
    with body_of(b"x" * 100, budget=budget) as body:
        await body.read()
        assert budget.held == 100
        with body_of(b"y" * 51, budget=budget) as other, pytest.raises(ProblemError) as caught:
            await other.read()
        assert caught.value.problem.status == 429
    assert budget.held == 0


async def test_a_caller_that_goes_away_is_noticed() -> None:
    with body_of(b"half", then=GONE) as body, pytest.raises(DisconnectedError):
        await body.read()
    with body_of(b"a\nb", then=GONE) as body, pytest.raises(DisconnectedError):
        await lines_of(body)
    with body_of(b"all") as body:
        assert await body.read() == b"all"
        await asyncio.wait_for(body.disconnected(), 5)


def test_a_caller_holds_no_more_than_it_leaves_free() -> None:
    budget = Budget(128, "too much is held")

    def taken_by(caller: str) -> int:
        count = 0
        with suppress(ProblemError):
            while True:
                budget.change(caller, 1)
                count += 1
        return count

    assert [taken_by(caller) for caller in "abcdefg"] == [64, 32, 16, 8, 4, 2, 1]
    budget.change("a", -64)
    assert budget.held == 63
    assert taken_by("h") == 33
    budget = Budget(1, "too much is held")
    assert (taken_by("a"), taken_by("b")) == (1, 0), "the only one is not kept for nobody"


async def test_a_line_that_was_begun_has_a_time_limit_and_the_wait_for_one_has_none() -> None:
    coming: asyncio.Queue[bytes] = asyncio.Queue()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": await coming.get(), "more_body": True}

    share = Share(Budget(250, "too much is held"), "a caller")
    lines = Body(receive, Headers(), Bounds(body_s=0.1), share).lines()
    first = asyncio.ensure_future(anext(lines))
    await asyncio.sleep(0.3)
    assert not first.done()
    coming.put_nowait(b"a\nb")
    assert await first == b"a"

    async def trickle() -> None:
        while True:
            coming.put_nowait(b"b")
            await asyncio.sleep(0.03)

    trickling = asyncio.create_task(trickle())
    with pytest.raises(ProblemError) as caught:
        await asyncio.wait_for(anext(lines), 10)
    trickling.cancel()
    assert caught.value.problem.status == 408
