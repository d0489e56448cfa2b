"""gradewire's own small questions: a rate limit at one costs no row its verdict, and what they cost is counted."""

import asyncio
import time

import pytest
from tests.server.judges.remote.remote_judges import Counted, choose, opened
from tests.server.judges.remote.test_openai_server import own
from tests.support.fakes.odd_openai import Heard, OddServer, completion, reply

from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.judge import Choice

ITEM = completion("Rating: 3", prompt_tokens=100, completion_tokens=4)
SMALL = completion("Answer: yes", prompt_tokens=10, completion_tokens=2)
LIMITED = reply(429, {}, retry_after="0")


def answer(heard: Heard) -> bytes:
    return SMALL if own(heard) else ITEM


class EverySecond:
    """Takes no more requests at every second one."""

    def __init__(self, limited: bytes = LIMITED) -> None:
        self.limited = limited
        self.asked = 0

    def __call__(self, heard: Heard) -> bytes:
        self.asked += 1
        return answer(heard) if self.asked % 2 else self.limited


async def test_a_rate_limit_at_a_small_question_is_waited_out() -> None:
    observer = Counted()
    async with OddServer(answers=[EverySecond()]) as server, opened(server.url, observer) as judge:
        found = (await judge.choose(choose(), deadline_s=time.monotonic() + 10)).answer
    assert isinstance(found, Choice)
    assert (found.probabilities, found.mass) == ((0, 0, 1), None)
    assert set(observer.retries) == {"rate_limited"}
    # The item, the small question in vain and again, the item in vain and again.
    assert [own(heard) for heard in server.heard] == [False, True, True, False, False]
    assert (found.prompt_tokens, found.generated_tokens) == (100 + 10 + 100, 4 + 2 + 4)


async def test_many_rows_do_not_all_ask_the_small_question_that_is_not_taken() -> None:
    def limiting(heard: Heard) -> bytes:
        return reply(429, {}, retry_after="900") if own(heard) else ITEM

    async with OddServer(answers=[limiting]) as server, opened(server.url) as judge:
        asked = (judge.choose(choose(f"Paris {place}"), deadline_s=time.monotonic() + 10) for place in range(8))
        failures = [each.answer for each in await asyncio.gather(*asked)]
    for failure in failures:
        assert isinstance(failure, Failure)
        assert failure.status is Status.UNAVAILABLE
        assert failure.retry_after_s is not None
        assert failure.retry_after_s > 800
    assert sum(map(own, server.heard)) == 1


async def test_a_reply_that_is_whole_is_not_asked_for_twice_and_all_requests_are_counted() -> None:
    observer = Counted()
    settings = {"prices": (2.0, 10.0)}
    async with OddServer(answers=[answer]) as server, opened(server.url, observer, **settings) as judge:
        found = [(await judge.choose(choose(), deadline_s=None)).answer for _ in range(2)]
    assert [own(heard) for heard in server.heard] == [False, True, False]
    tokens = [(each.prompt_tokens, each.generated_tokens) for each in found if isinstance(each, Choice)]
    assert tokens == [(110, 6), (100, 4)]
    assert [usage.prompt_tokens for usage in observer.usages] == [110, 100]
    assert sum(usage.cost or 0 for usage in observer.usages) == pytest.approx((210 * 2.0 + 10 * 10.0) / 1e6)


async def test_a_reply_that_was_cut_is_asked_for_again_and_counted() -> None:
    cut = completion("Rat", finish="length", prompt_tokens=100, completion_tokens=1)
    async with OddServer(answers=[cut, SMALL, ITEM]) as server, opened(server.url) as judge:
        found = (await judge.choose(choose(), deadline_s=None)).answer
    assert isinstance(found, Choice)
    assert (found.prompt_tokens, found.generated_tokens) == (210, 7)
    assert len(server.heard) == 3


async def test_one_request_that_is_not_counted_makes_the_sum_unknown() -> None:
    answers = [ITEM, completion("Answer: yes"), ITEM]
    async with OddServer(answers=[*answers]) as server, opened(server.url) as judge:
        found = [(await judge.choose(choose(), deadline_s=None)).answer for _ in range(2)]
    assert [each.prompt_tokens for each in found if isinstance(each, Choice)] == [None, 100]
    assert len(server.heard) == 3


NO_ROOM = reply(400, {"error": {"message": "max_tokens or model output limit was reached"}})


async def test_an_own_question_without_room_for_its_answer_loses_no_count() -> None:
    cut = completion("Rat", finish="length", prompt_tokens=100, completion_tokens=1)
    whole = completion("3", [{"3": -0.1, "1": -3.0}], prompt_tokens=100, completion_tokens=1)
    async with OddServer(answers=[cut, NO_ROOM, whole]) as server, opened(server.url) as judge:
        found = [(await judge.choose(choose(), deadline_s=None)).answer for _ in range(2)]
    assert sum(map(own, server.heard)) == 1
    counts = [each.prompt_tokens if isinstance(each, Choice) else None for each in found]
    assert counts == [None, 200], "the first item has no verdict, because the own question says nothing"


async def test_an_item_without_room_for_its_answer_leaves_the_count_to_the_next() -> None:
    observer = Counted()
    cut = completion("Rat", finish="length", prompt_tokens=100, completion_tokens=1)
    answers = [cut, SMALL, NO_ROOM, ITEM]
    async with OddServer(answers=[*answers]) as server, opened(server.url, observer) as judge:
        first, second = [(await judge.choose(choose(), deadline_s=None)).answer for _ in range(2)]
    assert isinstance(first, Failure)
    assert isinstance(second, Choice)
    assert (second.prompt_tokens, second.generated_tokens) == (100 + 10 + 100, 1 + 2 + 4)
    assert [usage.prompt_tokens for usage in observer.usages] == [None, 210]
