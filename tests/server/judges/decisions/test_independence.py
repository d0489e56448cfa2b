"""A server is shown to answer questions independently, or each is asked alone and the judge says why."""

import asyncio
import json
from collections.abc import Callable, Sequence

import pytest
from tests.server.judges.decisions.decisions import Answers, Decider, about, chosen, is_own, looked_at, opened
from tests.server.judges.remote.remote import eventually
from tests.support.fakes.odd_openai import Heard, OddServer, reply

from gradewire_server.judges.decisions import independence as independence_module
from gradewire_server.judges.decisions.asked import Asked
from gradewire_server.judges.decisions.independence import Independence
from gradewire_server.judges.decisions.own_questions import MOST, own_questions
from gradewire_server.judges.remote.errors import server_error
from gradewire_server.judges.remote.server import Answer
from gradewire_server.settings.judge import RemoteJudgeConfig


def several(change: Callable[[Answers], object]) -> Callable[[Heard, Answers], Answers | bytes]:
    """Changes what is sent for several questions, our own or not."""
    return lambda _, answers: answers if len(answers) == 1 else change(answers)  # type: ignore[return-value]


def certain(heard: Heard, answers: Answers) -> Answers:
    del heard
    for answer in answers.values():
        first, *others = answer["probabilities"]
        answer["probabilities"] = {first: 1.0} | dict.fromkeys(others, 0.0)
    return answers


def first_only(heard: Heard, answers: Answers) -> Answers:
    """Moves the answers to all questions but the first: only another order shows that of the first."""
    for name in list(answers)[1:]:
        text = json.dumps(heard.body["questions"][name])
        if "gauge was read carefully" in text:
            answers[name]["probabilities"] = {"careless": 0.5, "careful": 0.5}
    return answers


@pytest.mark.parametrize(
    ("decider", "words"),
    [
        (Decider(leak=0.0003), "its answers hang on what else is asked"),
        (Decider(change=first_only), "its answers hang on what else is asked"),
        (Decider(change=certain), "certain of its answers"),
        (Decider(change=several(lambda answers: {"verdict": answers["verdict"]})), "does not answer several"),
        (Decider(change=several(lambda answers: {f"q{n}": a for n, a in enumerate(answers.values())})), "several"),
        (Decider(change=several(lambda _: reply(400, {"error": "one question please"}))), "several"),
        (Decider(change=several(lambda _: reply(422, b""))), "several"),
    ],
)
async def test_a_server_that_does_not_answer_independently_gets_one_question_a_request(
    decider: Decider, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    async with OddServer(answers=[decider]) as server, opened(server.url) as judge:
        remark = await looked_at(judge)
        decider.sizes.clear()
        await chosen(judge, *(about("x", what) for what in "abc"))
    assert remark.startswith("It is asked one question a request: ")
    assert words in remark
    assert remark in caplog.text
    assert decider.sizes == [1, 1, 1]


async def test_our_own_questions_hold_no_item_and_are_asked_only_where_two_could_share_a_request() -> None:
    async with OddServer(answers=[Decider()]) as server, opened(server.url) as judge:
        await chosen(judge, about("x"), about("y"), about("z"))
        assert len(server.heard) == 1 + 3
        await looked_at(judge)
        own = [heard for heard in server.heard[4:] if is_own(heard)]
    assert [len(heard.body["questions"]) for heard in own] == [1, 1, 1, 1, 4, 4]
    first, last = (list(heard.body["questions"].values()) for heard in own[-2:])
    assert first == last[::-1]
    assert "first of all" not in json.dumps([heard.body for heard in own])


@pytest.mark.parametrize("leak", [0.0, 0.00003, 0.0001 / 3])
async def test_a_difference_that_rounding_makes_is_none(leak: float) -> None:
    async with OddServer(answers=[Decider(leak=leak)]) as server, opened(server.url) as judge:
        assert "up to 4" in await looked_at(judge)


async def test_what_is_shown_is_shown_for_no_more_and_nothing_longer() -> None:
    async def ask(asked: Sequence[Asked]) -> list[Answer]:
        return [Answer("", True, None, False, probabilities=(0.4, 0.6)) for _ in asked]  # noqa: FBT003 - as it is

    independence = Independence("m", 3, ask)
    own = own_questions(3)
    assert not independence.allows(own)
    await eventually(lambda: bool(independence.remark))
    assert independence.allows(own)
    assert independence.allows(own[:2])
    assert not independence.allows(own_questions(4))
    longer = [Asked(f"{own[0].state}.", each.instructions, each.options) for each in own]
    assert not independence.allows(longer)
    # Bytes, since texts in other alphabets have more tokens for each character.
    spread = [Asked("語" * (len(own[0].state) // 2), each.instructions, each.options) for each in own]
    assert not independence.allows(spread)
    await independence.close()


@pytest.mark.parametrize("fails_at", [0, 3, 4])
async def test_our_own_questions_that_are_not_answered_are_asked_again_ten_minutes_later(fails_at: int) -> None:
    now_s, asked_for = 0.0, 0

    async def ask(asked: Sequence[Asked]) -> list[Answer]:
        nonlocal asked_for
        asked_for += 1
        if asked_for == fails_at + 1:
            raise server_error()
        return [Answer("", True, None, False, probabilities=(0.4, 0.6)) for _ in asked]  # noqa: FBT003 - as it is

    independence = Independence("m", 4, ask, clock=lambda: now_s)
    assert not independence.allows(own_questions(2))
    await eventually(lambda: "for now" in independence.remark)
    now_s = 599.0
    assert not independence.allows(own_questions(2))
    await asyncio.sleep(0)
    assert asked_for == fails_at + 1
    now_s = 600.0
    assert not independence.allows(own_questions(2))
    await eventually(lambda: "up to 4" in independence.remark)
    assert independence.allows(own_questions(2))
    await independence.close()


async def test_failures_count_only_in_a_row() -> None:
    def refuse(heard: Heard, answers: Answers) -> Answers | bytes:
        return reply(422, {}) if len(answers) > 1 and "bad" in heard.body["state"] else answers

    decider = Decider()
    async with OddServer(answers=[decider]) as server, opened(server.url) as judge:
        await looked_at(judge)
        decider.change = refuse
        for text in ("bad 1", "bad 2", "good 1", "bad 3", "bad 4", "good 2"):
            decider.sizes.clear()
            await chosen(judge, about(text, "a"), about(text, "b"))
        assert decider.sizes == [2]


async def test_a_defect_leaves_one_question_a_request() -> None:
    async def ask(asked: Sequence[Asked]) -> list[Answer]:
        raise KeyError(len(asked))

    independence = Independence("m", 4, ask)
    assert not independence.allows(own_questions(2))
    await eventually(lambda: "defect" in independence.remark)
    assert not independence.allows(own_questions(2))
    await independence.close()


async def test_what_a_server_shows_that_has_gone_away_since_counts_for_nothing() -> None:
    gate, asked_for = asyncio.Event(), 0

    async def ask(asked: Sequence[Asked]) -> list[Answer]:
        nonlocal asked_for
        asked_for += 1
        await gate.wait()
        probabilities = [tuple(1 / len(each.options) for _ in each.options) for each in asked]
        return [Answer("", whole=True, steps=None, continued=False, probabilities=each) for each in probabilities]

    independence = Independence("m", 4, ask)
    assert not independence.allows(own_questions(2))
    await eventually(lambda: asked_for == 1)
    independence.forget()  # another server may be there now
    gate.set()
    for _ in range(20):
        await asyncio.sleep(0)
    assert (independence.remark, asked_for) == ("", 1)
    assert not independence.allows(own_questions(2))
    await eventually(lambda: "up to 4" in independence.remark)
    await independence.close()


async def test_a_server_that_takes_too_long_over_our_own_is_asked_one_a_request(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def ask(asked: Sequence[Asked]) -> list[Answer]:
        await asyncio.Event().wait()
        raise AssertionError(asked)

    monkeypatch.setattr(independence_module, "_TIMEOUT_S", 0.01)
    independence = Independence("m", 4, ask)
    assert not independence.allows(own_questions(2))
    await eventually(lambda: "it took too long to answer our own" in independence.remark)
    assert not independence.allows(own_questions(2))
    assert [each.levelname for each in caplog.records if each.levelname == "ERROR"] == []
    await independence.close()


async def test_closing_ends_what_is_under_way() -> None:
    async def ask(asked: Sequence[Asked]) -> list[Answer]:
        await asyncio.Event().wait()
        raise AssertionError(asked)

    independence = Independence("m", 4, ask)
    assert not independence.allows(own_questions(2))
    await asyncio.sleep(0)
    await independence.close()
    assert independence.remark == ""


def test_there_are_as_many_own_questions_as_the_setting_may_ask_for() -> None:
    assert RemoteJudgeConfig("http://h", "m", questions_per_request=MOST).questions_per_request == MOST
    with pytest.raises(ValueError, match="questions_per_request"):
        RemoteJudgeConfig("http://h", "m", questions_per_request=MOST + 1)
    texts = {(each.instructions, *each.options) for each in own_questions(MOST)}
    assert len(texts) == MOST
    assert len({each.state for each in own_questions(MOST)}) == 1
