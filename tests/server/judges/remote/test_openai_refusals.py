"""Refused items: only our own question can tell whether a server refuses one item or everything."""

import asyncio
import json

import pytest
from tests.server.judges.remote.remote_judges import choose, eventually, opened
from tests.support.fakes.odd_openai import Heard, OddServer, completion, reply

from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.judge import Choice

GOOD = completion("Rating: 2", [{"2": -0.1, "1": -3.0, "3": -4.0}])


@pytest.mark.parametrize(
    ("refusal", "status", "words"),
    [
        (reply(403, {"error": "moderated: Paris"}), Status.UNPARSABLE, "rejects a request (status 403)"),
        (reply(404, {}), Status.UNPARSABLE, "rejects a request (status 404)"),
        (reply(400, {"error": "odd"}), Status.UNPARSABLE, "rejects a request (status 400)"),
        (reply(200, b"<html>"), Status.UNPARSABLE, "a web page"),
    ],
)
async def test_one_refused_item_does_not_stop_the_judge(refusal: bytes, status: Status, words: str) -> None:
    def answer(heard: Heard) -> bytes:
        return refusal if "poison" in json.dumps(heard.body) else GOOD

    async with OddServer(answers=[answer]) as server, opened(server.url) as judge:
        failure = (await judge.choose(choose("poison"), deadline_s=None)).answer
        assert isinstance(failure, Failure)
        assert (failure.status, words in failure.message) == (status, True)
        assert "moderated" not in failure.message
        assert judge.trouble() == ""
        good = (await judge.choose(choose(), deadline_s=None)).answer
        assert isinstance(good, Choice)
        again = (await judge.choose(choose("poison 2"), deadline_s=None)).answer
        assert isinstance(again, Failure)
    # The poison, our own question, the good item, the other poison, though this may be a refused key.
    assert len(server.heard) == 4


async def test_a_key_that_is_refused_in_between_stops_the_judge_at_once() -> None:
    blocked = False

    def answer(_: Heard) -> bytes:
        return reply(403, {"error": "blocked"}) if blocked else completion("Rating: 2")

    async with OddServer(answers=[answer]) as server, opened(server.url) as judge:
        first = (await judge.choose(choose(), deadline_s=None)).answer
        assert isinstance(first, Choice)
        assert len(server.heard) == 2, "our own question was accepted, because no probabilities came"
        blocked = True
        failure = (await judge.choose(choose("again"), deadline_s=None)).answer
        assert isinstance(failure, Failure)
        assert (failure.status, "'blocked'" in failure.message) == (Status.MODEL_UNAVAILABLE, True)


async def test_our_own_question_is_asked_again_after_some_seconds_and_for_each_refused_key() -> None:
    status, now_s = 403, 1000.0

    def clock() -> float:
        nonlocal now_s
        now_s += 1e-6
        return now_s

    def answer(heard: Heard) -> bytes:
        return reply(status, {}) if "poison" in json.dumps(heard.body) else GOOD

    async with OddServer(answers=[answer]) as server, opened(server.url) as judge:
        judge._server._learner._clock = clock

        async def poisons(count: int) -> int:
            before = len(server.heard)
            for _ in range(count):
                failure = (await judge.choose(choose("poison"), deadline_s=None)).answer
                assert isinstance(failure, Failure)
                assert failure.status is Status.UNPARSABLE
            return len(server.heard) - before - count

        assert await poisons(4) == 1
        now_s += 4.9
        assert await poisons(3) == 0
        now_s += 0.2  # a refusal that was spared our own question does not spare it to others
        assert await poisons(3) == 1
        now_s, status = now_s + 10, 401
        assert await poisons(3) == 3


@pytest.mark.parametrize("refusal", [403, 404])
@pytest.mark.parametrize("wait_s", ["0", "1800"])
async def test_a_refused_item_does_not_stop_others_while_our_own_question_is_not_taken(
    refusal: int, wait_s: str
) -> None:
    def answer(heard: Heard) -> bytes:
        text = json.dumps(heard.body)
        if "wet" in text:
            return reply(429, {}, retry_after=wait_s)
        return reply(refusal, {"error": "blocked"}) if "poison" in text else GOOD

    async with OddServer(answers=[answer]) as server, opened(server.url, attempts=1) as judge:
        for _ in range(3):
            failure = (await judge.choose(choose("poison"), deadline_s=None)).answer
            assert isinstance(failure, Failure)
            assert failure.status is Status.UNAVAILABLE
            assert failure.retry_after_s is not None
            assert judge.trouble() == ""
            assert isinstance((await judge.choose(choose(), deadline_s=None)).answer, Choice)
        own = sum("wet" in json.dumps(heard.body) for heard in server.heard)
    assert own == (3 if wait_s == "0" else 1), "a limited server is not asked before it wants to be"


@pytest.mark.parametrize("own", [completion("", finish="content_filter"), completion(None)])
async def test_a_refused_item_does_not_stop_others_if_our_own_question_tells_nothing(own: bytes) -> None:
    def answer(heard: Heard) -> bytes:
        text = json.dumps(heard.body)
        return own if "wet" in text else reply(403, {}) if "poison" in text else GOOD

    async with OddServer(answers=[answer]) as server, opened(server.url) as judge:
        failure = (await judge.choose(choose("poison"), deadline_s=None)).answer
        assert isinstance(failure, Failure)
        assert failure.status is Status.UNPARSABLE
        assert isinstance((await judge.choose(choose(), deadline_s=None)).answer, Choice)


async def test_a_refusal_of_all_is_asked_about_once() -> None:
    async with OddServer(answers=[reply(401, {"error": "unknown user"})]) as server, opened(server.url) as judge:
        server.gate.clear()
        calls = [asyncio.create_task(judge.choose(choose(str(n)), deadline_s=None)) for n in range(6)]
        await eventually(lambda: len(server.heard) == 6)
        server.gate.set()
        failures = [(await call).answer for call in calls]
    assert all(isinstance(each, Failure) and "'unknown user'" in each.message for each in failures)
    assert len(server.heard) == 7


def geminis(**error: object) -> bytes:
    return reply(400, [{"error": {"code": 400, "status": "INVALID_ARGUMENT", **error}}])


KEY_INFO = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}


@pytest.mark.parametrize(
    "refusal",
    [
        geminis(message="Give another one.", details=[KEY_INFO]),
        geminis(message="API key not valid."),
        geminis(message="The API key expired."),
        reply(400, {"error": {"code": "invalid_api_key"}}),
        reply(200, {"error": {"code": "invalid_api_key", "type": "invalid_request_error"}}),
    ],
)
async def test_geminis_refusal_of_a_key_names_the_setting_of_the_key(refusal: bytes) -> None:
    async with OddServer(answers=[refusal]) as server, opened(server.url) as judge:
        failure = (await judge.choose(choose(), deadline_s=None)).answer
    assert isinstance(failure, Failure)
    assert failure.status is Status.MODEL_UNAVAILABLE
    assert "refuses this key" in failure.message
    assert "judge_token" in failure.message


async def test_words_about_a_key_in_one_items_refusal_stop_no_other_item() -> None:
    def answer(heard: Heard) -> bytes:
        return geminis(message="API key not valid") if "poison" in json.dumps(heard.body) else GOOD

    async with OddServer(answers=[answer]) as server, opened(server.url) as judge:
        failure = (await judge.choose(choose("poison"), deadline_s=None)).answer
        assert isinstance(failure, Failure)
        assert failure.status is Status.UNPARSABLE
        assert isinstance((await judge.choose(choose(), deadline_s=None)).answer, Choice)
