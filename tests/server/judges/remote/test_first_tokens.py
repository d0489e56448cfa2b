"""A judge whose first token decides writes no second one, and the verdict is the same as with it."""

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.server.judges.remote.remote_judges import Counted, choose, generate, opened
from tests.support.examples import example_count
from tests.support.fakes.odd_openai import Heard, OddServer, completion, reply

from gradewire_server.domain.items import Failure
from gradewire_server.domain.judge import Choice
from gradewire_server.judges.remote.first_tokens import _ENOUGH, FirstTokens
from gradewire_server.judges.remote.labels import Labels, Step
from gradewire_server.judges.remote.openai_dialect import Dialect
from gradewire_server.judges.remote.server import Answer, Question

OPTIONS = st.sampled_from([("1", "2", "3"), ("incorrect", "correct"), ("A", "B", "wrong"), ("A", "answered", "the")])
TOKENS = (
    *("", " ", "**", ": ", "1", " 2", " in", "correct", " correct", "A", " a", "a ", "B", "wrong"),
    *("answer", " the", "The "),
)
TOKEN = st.sampled_from(TOKENS)
STEP = st.builds(
    lambda token, others: Step(token, ((token, -0.2), *((other, -3.0 - at) for at, other in enumerate(others)))),
    TOKEN,
    st.lists(TOKEN, max_size=3, unique=True),
)


@given(OPTIONS, st.lists(STEP, min_size=1, max_size=4))
@settings(max_examples=example_count(400))
def test_where_the_first_token_decides_later_ones_change_nothing(options: tuple[str, ...], steps: list[Step]) -> None:
    labels = Labels(options)
    if labels.decides(steps):
        assert labels.read(steps[:1]) == labels.read(steps)


def test_single_letters_and_words_before_them_do_not_decide() -> None:
    def decides(token: str, *options: str) -> bool:
        return Labels(options).decides([Step(token, ((token, -0.1),))])

    assert decides(" correct", "incorrect", "correct")
    assert decides(" in", "incorrect", "correct")
    assert decides(" B", "A", "B")
    assert not any(decides(token, "A", "wrong") for token in ("A", " a", "answer", "wr", " "))
    assert not decides(" in", "incorrect", "incomplete")
    assert not Labels(("A", "B")).decides([])


LIMITS = {"prompt_tokens": 100}
SURE = [{"2": -0.1, "1": -3.0}, {"\n": 0.0}]
SPACED = [{" ": -0.1, "2": -3.0}, {"3": -0.1, "1": -3.0}]


def server_that(spaced: str) -> Any:
    """Write a blank before the label of items with this text, and no more tokens than allowed."""

    def answer(heard: Heard) -> bytes:
        tops = SPACED if spaced in str(heard.body) else SURE
        most = heard.body["max_tokens"]
        text = "".join(next(iter(top)) for top in tops[:most])
        finish = "length" if most == 1 else "stop"
        return completion(text, tops[:most], finish=finish, completion_tokens=min(most, 2), **LIMITS)

    return answer


async def test_after_some_answers_a_server_is_asked_for_one_token_and_again_where_that_is_too_few() -> None:
    observer = Counted()
    async with OddServer(owner="vllm", answers=[server_that("spaced")]) as server:
        async with opened(server.url, observer) as judge:
            items = [f"item {number}" for number in range(_ENOUGH + 2)]
            sure = [(await judge.choose(choose(item))).answer for item in items]
            spaced = (await judge.choose(choose("spaced"))).answer
            after = (await judge.choose(choose("another"))).answer
        limits = [heard.body["max_tokens"] for heard in server.heard]
    assert limits == [2] * _ENOUGH + [1, 1] + [1, 2] + [2]
    assert len({each.probabilities for each in sure if isinstance(each, Choice)}) == 1
    assert isinstance(spaced, Choice)
    assert spaced.probabilities[2] > 0.9
    assert isinstance(after, Choice)
    # Both requests of the item with the blank are paid for.
    assert [usage.generated_tokens for usage in observer.usages[-4:]] == [1, 1, 3, 2]


def refusal(message: str, status: int = 400) -> bytes:
    return reply(status, {"error": {"message": message, "type": "invalid_request_error", "param": "max_tokens"}})


@pytest.mark.parametrize(
    "to_one_token",
    [
        refusal("Could not finish the message because max_tokens or model output limit was reached."),
        refusal("max_tokens must be at least 2"),
        refusal("Invalid 'max_tokens': integer below minimum value. Expected a value >= 2, but got 1 instead."),
        refusal("internal error", 500),
        reply(200, "no answer"),
        completion("2", None),
        completion(None, None, finish="length"),
        completion("", [{"2": 0.0}], finish="content_filter"),
    ],
)
async def test_a_server_that_does_not_answer_with_one_token_is_asked_with_room_from_then_on(
    to_one_token: bytes,
) -> None:
    def answer(heard: Heard) -> bytes:
        return to_one_token if heard.body["max_tokens"] == 1 else completion("2", SURE, completion_tokens=2, **LIMITS)

    observer = Counted()
    async with OddServer(owner="vllm", answers=[answer]) as server, opened(server.url, observer) as judge:
        answers = [(await judge.choose(choose(f"item {number}"))).answer for number in range(3 * _ENOUGH)]
        limits = [heard.body["max_tokens"] for heard in server.heard]
    assert not any(isinstance(each, Failure) for each in answers)
    assert limits == [2] * _ENOUGH + [1] + [2] * 2 * _ENOUGH
    assert observer.retries == []


async def test_a_refused_item_is_refused_with_room_too_and_takes_one_token_from_nobody_for_long() -> None:
    def answer(heard: Heard) -> bytes:
        bad = "refused" in str(heard.body)
        return refusal("no such text", 400) if bad else server_that("spaced")(heard)  # type: ignore[no-any-return]

    async with OddServer(owner="vllm", answers=[answer]) as server, opened(server.url) as judge:
        for number in range(_ENOUGH):
            await judge.choose(choose(f"item {number}"))
        assert isinstance((await judge.choose(choose("refused"))).answer, Failure)
        del server.heard[:]
        for number in range(_ENOUGH + 1):
            assert isinstance((await judge.choose(choose(f"other {number}"))).answer, Choice)
        limits = [heard.body["max_tokens"] for heard in server.heard]
    assert limits == [2] * _ENOUGH + [1]


async def test_a_server_that_wants_fewer_requests_is_not_asked_twice_at_once() -> None:
    slow = [reply(429, {"error": {"message": "slow down"}}, **{"retry-after": "0"})]

    def answer(heard: Heard) -> bytes:
        return slow.pop() if heard.body["max_tokens"] == 1 and slow else server_that("spaced")(heard)  # type: ignore[no-any-return]

    observer = Counted()
    async with OddServer(owner="vllm", answers=[answer]) as server, opened(server.url, observer) as judge:
        for number in range(_ENOUGH + 1):
            assert isinstance((await judge.choose(choose(f"item {number}"))).answer, Choice)
        limits = [heard.body["max_tokens"] for heard in server.heard]
    assert limits == [2] * _ENOUGH + [1, 1]
    assert observer.retries == ["rate_limited"]


async def test_questions_asked_together_have_the_verdicts_of_questions_asked_with_room() -> None:
    async with OddServer(owner="vllm", answers=[server_that("spaced")]) as server, opened(server.url) as judge:
        asked = [choose(f"{'spaced' if number % 3 == 2 else 'item'} {number}") for number in range(60)]
        replies = await asyncio.gather(*(judge.choose(each) for each in asked))
    best = [max(range(3), key=reply.answer.probabilities.__getitem__) for reply in replies]  # type: ignore[union-attr]
    assert best == [2 if number % 3 == 2 else 1 for number in range(60)]


async def test_a_server_that_refuses_so_few_tokens_is_asked_with_room_from_then_on() -> None:
    def answer(heard: Heard) -> bytes:
        if heard.body["max_tokens"] == 1:
            return reply(400, {"error": {"message": "max_tokens or model output limit was reached"}})
        return completion("2", SURE, finish="stop", completion_tokens=2, **LIMITS)

    async with OddServer(owner="vllm", answers=[answer]) as server, opened(server.url) as judge:
        found = [(await judge.choose(choose(f"item {number}"))).answer for number in range(_ENOUGH + 2)]
        assert [heard.body["max_tokens"] for heard in server.heard] == [2] * _ENOUGH + [1, 2] + [2]
    assert all(isinstance(each, Choice) for each in found)


async def test_texts_and_servers_that_do_not_continue_an_answer_are_asked_as_before() -> None:
    async with OddServer(answers=[server_that("spaced")]) as server, opened(server.url) as judge:
        for number in range(_ENOUGH + 1):
            await judge.choose(choose(str(number)))
        assert {heard.body["max_tokens"] for heard in server.heard} == {9}
        await judge.generate(generate(1))
    assert server.heard[-1].body["max_tokens"] == 1


def test_an_answer_without_probabilities_makes_it_ask_for_more() -> None:
    tokens, full = FirstTokens(), Question(choose().prompt, ("1", "2", "3"))
    dialect = Dialect(continues=True)
    good = Answer("2", whole=True, steps=(Step("2", (("2", -0.1),)),), continued=True)
    assert all(tokens.is_enough(full, good) for _ in range(_ENOUGH))
    short = tokens.shortened(full, dialect)
    assert short.one_token
    assert not tokens.is_enough(short, Answer("2", whole=False, steps=None, continued=True))
    assert not tokens.shortened(full, dialect).one_token
    assert not tokens.shortened(full, Dialect(continues=True, reasoning_tokens=9)).one_token
