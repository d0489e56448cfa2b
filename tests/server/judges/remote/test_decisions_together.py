"""Questions about one item share a request where that moves no answer, and no one of them spoils the others'."""

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.server.judges.remote.decision_models import Answers, Decider, about, chosen, is_own, opened, unchanged
from tests.server.judges.remote.remote_judges import Counted, eventually
from tests.support.fakes.odd_openai import HANG_UP, Heard, OddServer, reply

from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.judge import Choice
from gradewire_server.judges.remote import decisions as server_module
from gradewire_server.judges.remote.decision_forms import DecisionQuestion, decision_question
from gradewire_server.judges.remote.server import Question

ABOUT_ONE = ("a", "b", "c")


def changed(change: Callable[[Answers], Answers | bytes]) -> Callable[[Heard, Answers], Answers | bytes]:
    """Changes what is sent for several questions about an item."""
    return lambda heard, answers: answers if is_own(heard) or len(answers) == 1 else change(answers)


async def test_questions_about_one_item_share_a_request_and_get_the_answers_they_get_alone() -> None:
    decider = Decider()
    async with OddServer(answers=[decider]) as server, opened(server.url) as judge:
        decider.sizes.clear()
        together = await chosen(judge, *(about(text, what) for text in ("x", "y") for what in ABOUT_ONE))
        assert decider.sizes == [3, 3]
        alone = [(await chosen(judge, about(text, what)))[0] for text in ("x", "y") for what in ABOUT_ONE]
    assert together == alone
    assert decider.sizes[2:] == [1] * 6


async def test_openai_s_form_takes_several_questions_too() -> None:
    sizes: list[int] = []

    def answer(heard: Heard) -> bytes:
        if heard.path != "/v1/decisions":
            return reply(404, {})
        if not is_own(heard):
            sizes.append(len(heard.body["questions"]))
        answers = [
            {
                "type": "choice",
                "name": each["name"],
                "probabilities": [
                    {"value": choice["value"], "probability": (0.2 if n else 1 - 0.2 * (len(each["choices"]) - 1))}
                    for n, choice in enumerate(each["choices"])
                ],
            }
            for each in heard.body["questions"]
        ]
        return reply(200, {"answers": answers})

    async with OddServer(answers=[answer]) as server, opened(server.url, questions_per_request=2) as judge:
        await chosen(judge, *(about("x", what) for what in ABOUT_ONE))
    assert sizes == [2, 1]


async def test_other_items_and_other_tenants_go_apart() -> None:
    decider = Decider()
    async with OddServer(answers=[decider]) as server, opened(server.url) as judge:
        decider.sizes.clear()
        await chosen(judge, about("x"), about("y"), about("z", namespace="one"), about("z", "b", namespace="two"))
        assert decider.sizes == [1] * 4


async def test_long_items_and_many_questions_are_not_read_again_for_each_that_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """64 questions about 20 000 characters held the event loop up for 0.24 s."""
    read: list[str] = []

    def counted(question: Question) -> DecisionQuestion:
        read.append(question.prompt.prediction)
        return decision_question(question)

    monkeypatch.setattr(server_module, "decision_question", counted)
    async with OddServer(answers=[Decider()]) as server, opened(server.url, questions_per_request=2) as judge:
        read.clear()
        await chosen(judge, *(about("long " * 700, str(what)) for what in range(32)))
        assert len(read) <= 6 * 32


async def test_one_a_request_never_asks_several() -> None:
    decider = Decider()
    async with OddServer(answers=[decider]) as server, opened(server.url, questions_per_request=1) as judge:
        await chosen(judge, *(about("x", what) for what in ABOUT_ONE))
        await chosen(judge, *(about("y", what) for what in ABOUT_ONE))
        assert len(server.heard) == 1 + 6
    assert decider.sizes == [1] * 6


async def test_no_question_waits_for_another_one() -> None:
    decider = Decider()
    async with OddServer(answers=[decider]) as server, opened(server.url, max_in_flight=2) as judge:
        decider.sizes.clear()
        server.gate.clear()
        heard = len(server.heard)
        calls = [asyncio.create_task(judge.choose(about("x")))]
        await eventually(lambda: len(server.heard) == heard + 1)  # at once, alone
        calls += [asyncio.create_task(judge.choose(about("y", what))) for what in ABOUT_ONE]
        await eventually(lambda: len(server.heard) == heard + 2)
        # Both requests are under way: these wait, and go together.
        for what in ABOUT_ONE:
            calls.append(asyncio.create_task(judge.choose(about("z", what))))
            await asyncio.sleep(0.01)
        server.gate.set()
        assert all(isinstance(each.answer, Choice) for each in await asyncio.gather(*calls))
    assert decider.sizes == [1, 3, 3]


async def test_a_bad_answer_is_asked_for_alone_and_the_others_are_not() -> None:
    def spoil(answers: Answers) -> Answers:
        answers["verdict_2"]["probabilities"]["1"] = 0.9
        return answers

    decider = Decider(change=changed(spoil), tokens=90)
    observer = Counted()
    async with OddServer(answers=[decider]) as server, opened(server.url, observer) as judge:
        (alone,) = await chosen(judge, about("x", "b"))
        decider.sizes.clear()
        seen = len(observer.usages)
        one, bad, other = (
            each.answer for each in await asyncio.gather(*(judge.choose(about("x", what)) for what in ABOUT_ONE))
        )
    assert decider.sizes == [3, 1]
    assert isinstance(bad, Choice)
    assert bad.probabilities == alone  # in company it had no score, and alone it had
    assert isinstance(one, Choice)
    assert isinstance(other, Choice)
    # What was paid for is counted once, and shared by those that were answered.
    assert (one.prompt_tokens, other.prompt_tokens, bad.prompt_tokens) == (45, 45, 90)
    assert [usage.prompt_tokens for usage in observer.usages[seen:]] == [90, 90]


async def test_an_answer_that_is_bad_alone_too_fails_alone() -> None:
    def spoil(heard: Heard, answers: Answers) -> Answers:
        for name, asked in heard.body["questions"].items():
            if "by b." in json.dumps(asked):
                answers[name]["probabilities"]["1"] = 0.9
        return answers

    decider = Decider()
    async with OddServer(answers=[decider]) as server, opened(server.url) as judge:
        decider.change = spoil
        replies = await asyncio.gather(*(judge.choose(about("x", what)) for what in ABOUT_ONE))
        one, bad, other = (each.answer for each in replies)
        assert isinstance(bad, Failure)
        assert bad.status is Status.UNPARSABLE
        assert "sum to" in bad.message
        assert isinstance(one, Choice)
        assert isinstance(other, Choice)


async def test_tokens_are_shared_out_without_a_rest() -> None:
    decider = Decider(tokens=100)
    observer = Counted()
    async with OddServer(answers=[decider]) as server, opened(server.url, observer, prices=(2.0, 0.0)) as judge:
        assert isinstance((await judge.choose(about("before"))).answer, Choice)
        # Its first small question, and this one.
        assert sum(usage.prompt_tokens or 0 for usage in observer.usages) == 100 * 2
        replies = await asyncio.gather(*(judge.choose(about("x", what)) for what in ABOUT_ONE))
    assert [each.answer.prompt_tokens for each in replies if isinstance(each.answer, Choice)] == [34, 33, 33]
    assert observer.usages[-1].cost == pytest.approx(100 * 2e-6)
    assert observer.flying == 0


@pytest.mark.parametrize(
    "change",
    [
        lambda _: reply(400, {"error": "one of them is bad"}),
        lambda _: reply(400, b"exceeds the available context size"),
        lambda _: reply(413, b""),
        lambda _: reply(200, b"<html>"),
        lambda answers: {"verdict": answers["verdict"]},
        lambda answers: {f"{name}?": answer for name, answer in answers.items()},
        lambda answers: answers | {"more": answers["verdict"]},
        lambda answers: list(answers.values()),
    ],
)
async def test_a_request_that_fails_for_several_is_made_for_each(change: Callable[[Answers], Any]) -> None:
    decider = Decider(change=changed(change))
    async with OddServer(answers=[decider]) as server, opened(server.url) as judge:
        decider.sizes.clear()
        together = await chosen(judge, *(about("x", what) for what in ABOUT_ONE))
        assert decider.sizes == [3, 1, 1, 1]
        assert together == [(await chosen(judge, about("x", what)))[0] for what in ABOUT_ONE]
        assert judge.trouble() == ""


async def test_only_the_question_that_is_refused_alone_fails() -> None:
    def refuse(heard: Heard, answers: Answers) -> Answers | bytes:
        return reply(422, {"error": "no"}) if "by b." in json.dumps(heard.body["questions"]) else answers

    decider = Decider()
    async with OddServer(answers=[decider]) as server, opened(server.url) as judge:
        decider.change = refuse
        replies = await asyncio.gather(*(judge.choose(about("x", what)) for what in ABOUT_ONE))
    one, bad, other = (each.answer for each in replies)
    assert isinstance(one, Choice)
    assert isinstance(other, Choice)
    assert isinstance(bad, Failure)
    assert bad.status is Status.UNPARSABLE


async def test_a_server_that_dies_in_the_middle_fails_all_of_a_request_and_is_found_again() -> None:
    decider = Decider()
    async with OddServer(answers=[decider]) as server, opened(server.url, attempts=1) as judge:
        decider.change = changed(lambda _: HANG_UP)
        replies = await asyncio.gather(*(judge.choose(about("x", what)) for what in ABOUT_ONE))
        assert all(isinstance(each.answer, Failure) and each.answer.status is Status.UNAVAILABLE for each in replies)
        assert judge.trouble()
        decider.change = unchanged
        await eventually(lambda: not judge.trouble())
        assert all(
            isinstance(each.answer, Choice)
            for each in await asyncio.gather(*(judge.choose(about("y", what)) for what in ABOUT_ONE))
        )


async def test_what_passes_is_tried_again_together() -> None:
    bad = [reply(503, b"", retry_after="0")]
    observer = Counted()
    decider = Decider(change=changed(lambda answers: bad.pop() if bad else answers))
    async with OddServer(answers=[decider]) as server, opened(server.url, observer) as judge:
        decider.sizes.clear()
        await chosen(judge, *(about("x", what) for what in ABOUT_ONE))
    assert decider.sizes == [3, 3]
    assert observer.retries == ["server_error"]


async def test_a_server_that_has_too_much_is_not_asked_each_apart() -> None:
    decider = Decider(change=changed(lambda _: reply(429, b"", retry_after="0")))
    async with OddServer(answers=[decider]) as server, opened(server.url, attempts=2) as judge:
        decider.sizes.clear()
        replies = await asyncio.gather(*(judge.choose(about("x", what)) for what in ABOUT_ONE))
    assert all(isinstance(each.answer, Failure) and each.answer.status is Status.UNAVAILABLE for each in replies)
    assert decider.sizes == [3, 3]


async def test_one_who_leaves_hurts_nobody_and_the_last_takes_the_request_along() -> None:
    async with OddServer(answers=[Decider()]) as server, opened(server.url, max_in_flight=1) as judge:
        server.gate.clear()
        heard = len(server.heard)
        calls = [asyncio.create_task(judge.choose(about("x", what))) for what in ABOUT_ONE]
        await eventually(lambda: len(server.heard) == heard + 1)
        calls[0].cancel()  # the one that began the request
        await asyncio.gather(calls[0], return_exceptions=True)
        server.gate.set()
        assert all(isinstance(each.answer, Choice) for each in await asyncio.gather(*calls[1:]))
        assert server.hung_up == 0

        server.gate.clear()
        calls = [asyncio.create_task(judge.choose(about("y", what))) for what in ABOUT_ONE]
        await eventually(lambda: len(server.heard) == heard + 2)
        for call in calls:
            call.cancel()
        await eventually(lambda: server.hung_up == 1)
        server.gate.set()
        await chosen(judge, about("z"))  # and its place is free


async def test_each_has_its_own_deadline() -> None:
    async with OddServer(answers=[Decider()]) as server, opened(server.url) as judge:
        server.gate.clear()
        soon = asyncio.create_task(judge.choose(about("x", "a"), deadline_s=time.monotonic() + 0.05))
        later = asyncio.create_task(judge.choose(about("x", "b"), deadline_s=time.monotonic() + 60))
        late = (await soon).answer
        server.gate.set()
        assert isinstance((await later).answer, Choice)
    assert isinstance(late, Failure)
    assert late.status is Status.TIMEOUT


async def test_closing_answers_what_shares_a_request() -> None:
    async with OddServer(answers=[Decider()]) as server, opened(server.url) as judge:
        server.gate.clear()
        heard = len(server.heard)
        calls = [asyncio.create_task(judge.choose(about("x", what))) for what in ABOUT_ONE]
        await eventually(lambda: len(server.heard) == heard + 1)
        await judge.close()
        replies = await asyncio.gather(*calls)
    assert all(isinstance(each.answer, Failure) and each.answer.status is Status.UNAVAILABLE for each in replies)
