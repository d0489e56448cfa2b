"""Decision servers on bad days: each failure is its status and never a score, and neighbours are judged."""

import asyncio
import json
import logging
import re
import time

import pytest
from tests.server.judges.remote.decision_models import SURE, after_own, decided, is_own, listed, opened
from tests.server.judges.remote.remote_judges import Counted, choose, eventually, generate
from tests.support.fakes.odd_openai import HANG_UP, Heard, OddServer, reply

from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.judge import Choice
from gradewire_server.judges.backend import JudgeUnavailableError
from gradewire_server.judges.remote.decisions import DecisionJudges
from gradewire_server.settings.judge import RemoteJudgeConfig

GOOD = decided(SURE)
OWN = {"true": 0.9, "false": 0.1}


async def test_labels_get_their_probabilities() -> None:
    async with OddServer(answers=after_own(GOOD)) as server, opened(server.url) as judge:
        judged = await judge.choose(choose(), deadline_s=time.monotonic() + 5)
        assert [heard.path for heard in server.heard] == ["/v1/systemone", "/v1/systemone"]
        assert server.heard[1].headers["authorization"] == "Bearer key"
    assert isinstance(judged.answer, Choice)
    assert judged.answer.probabilities == pytest.approx((0.1, 0.2, 0.7))
    assert (judged.answer.mass, judged.answer.demonstrated) == (None, False)
    assert judged.timing.inference_s > 0


async def test_a_need_is_one_request_with_one_question() -> None:
    async with OddServer(answers=after_own(GOOD)) as server, opened(server.url) as judge:
        await asyncio.gather(*(judge.choose(choose(str(n)), deadline_s=None) for n in range(5)))
        asked = [heard.body["questions"] for heard in server.heard[1:]]
    assert [list(each) for each in asked] == [["verdict"]] * 5


async def test_text_is_refused_without_a_request_and_the_server_is_well() -> None:
    async with OddServer(answers=after_own(GOOD)) as server, opened(server.url) as judge:
        failure = (await judge.generate(generate(), deadline_s=None)).answer
        assert isinstance(failure, Failure)
        assert failure.status is Status.INVALID_PARAMETER
        assert "cannot write" in failure.message
        assert "lave?mode=rating" in failure.message
        assert len(server.heard) == 1
        assert judge.trouble() == ""
        assert isinstance((await judge.choose(choose(), deadline_s=None)).answer, Choice)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (reply(429, {"error": "slow down"}, retry_after="0"), "rate_limited"),
        (reply(500, b"oops"), "server_error"),
        (reply(503, b"", retry_after="0"), "server_error"),
        (b"garbage\r\n\r\n", "unreachable"),
    ],
)
async def test_what_passes_is_tried_again(bad: bytes, reason: str) -> None:
    observer = Counted()
    async with OddServer(answers=after_own(bad, GOOD)) as server, opened(server.url, observer) as judge:
        answer = (await judge.choose(choose(), deadline_s=time.monotonic() + 10)).answer
    assert isinstance(answer, Choice)
    assert observer.retries == [reason]
    assert observer.flying == 0


async def test_a_wait_beyond_the_deadline_is_told_to_the_caller_at_once() -> None:
    slow = reply(429, {}, retry_after="600")
    async with OddServer(answers=after_own(slow)) as server, opened(server.url) as judge:
        failure = (await judge.choose(choose(), deadline_s=time.monotonic() + 5)).answer
    assert isinstance(failure, Failure)
    assert failure.status is Status.UNAVAILABLE
    assert failure.retry_after_s is not None
    assert failure.retry_after_s >= 600


@pytest.mark.parametrize(
    ("bad", "status", "words"),
    [
        (reply(401, {"error": "key is wrong"}), Status.MODEL_UNAVAILABLE, "judge_token"),
        (reply(404, {}), Status.MODEL_UNAVAILABLE, "no decisions of a decision model at this address"),
        (reply(501, {}), Status.MODEL_UNAVAILABLE, "judge_remote_model (--judge-remote-model)"),
        (reply(307, b"", location="https://elsewhere.example/v1"), Status.MODEL_UNAVAILABLE, "judge_url"),
        (reply(422, {"error": "no"}), Status.UNPARSABLE, "rejects"),
        (reply(200, b"<html><body>Welcome!</body></html>"), Status.UNPARSABLE, "JSON"),
        (reply(200, b"[]"), Status.UNPARSABLE, "JSON object"),
        (reply(200, {"answers": {}}), Status.UNPARSABLE, "no answer"),
        (decided({"1": 0.1, "2": 0.2, "3": 0.3}), Status.UNPARSABLE, "sum to 0.6"),
        (decided({"1": 0.1, "3": 0.9}), Status.UNPARSABLE, "the wrong labels"),
        (decided({"1": float("nan"), "2": 0.5, "3": 0.5}), Status.UNPARSABLE, "from 0 to 1"),
        (decided(SURE, name="other"), Status.UNPARSABLE, "no answer"),
        (decided(SURE, type="refusal"), Status.UNPARSABLE, "refusal"),
        (listed(SURE), Status.UNPARSABLE, "than decisions"),
        (reply(200, b" " * (1 << 20) + b"{}"), Status.UNPARSABLE, "more than 1 MiB"),
        (reply(200, b"no gzip at all, though it says so", content_encoding="gzip"), Status.UNPARSABLE, "encoding"),
        (reply(500, b""), Status.UNAVAILABLE, "Try again"),
    ],
)
async def test_what_does_not_pass_is_a_status_and_neighbours_are_judged(bad: bytes, status: Status, words: str) -> None:
    def answer(heard: Heard) -> bytes:
        if is_own(heard):
            return decided(OWN)
        return bad if "poison" in json.dumps(heard.body) else GOOD

    async with OddServer(answers=[answer]) as server, opened(server.url, attempts=1) as judge:
        replies = await asyncio.gather(
            *(judge.choose(choose(text), deadline_s=time.monotonic() + 10) for text in ("a", "b", "p", "poison", "c"))
        )
    *good, failure, last = [each.answer for each in replies]
    assert all(isinstance(each, Choice) for each in (*good, last))
    assert isinstance(failure, Failure)
    assert failure.status is status
    assert words in failure.message
    assert "elsewhere" not in failure.message


@pytest.mark.parametrize("own_fails", [True, False])
async def test_an_item_that_always_fails_leaves_the_next_call_alone(own_fails: bool) -> None:  # noqa: FBT001
    opening = True

    def answer(heard: Heard) -> bytes:
        if is_own(heard):
            return reply(503, b"") if own_fails and not opening else decided(OWN)
        return reply(500, b"") if "poison" in json.dumps(heard.body) else GOOD

    async with OddServer(answers=[answer]) as server, opened(server.url, attempts=1) as judge:
        opening = False
        failure = (await judge.choose(choose("poison"), deadline_s=None)).answer
        assert isinstance(failure, Failure)
        assert "(status 500) failed" in failure.message
        assert ("(status 503) failed" in judge.trouble()) == own_fails
        following = (await judge.choose(choose(), deadline_s=None)).answer
        assert isinstance(following, Failure if own_fails else Choice)


@pytest.mark.parametrize("refusal", [reply(400, b"exceeds the available context size"), reply(413, b"")])
async def test_an_over_long_item_is_cut_at_the_prediction_until_it_fits(refusal: bytes) -> None:
    def answer(heard: Heard) -> bytes:
        if is_own(heard):
            return decided(OWN)
        return refusal if len(heard.body["state"]) > 2000 else GOOD

    async with OddServer(answers=[answer]) as server, opened(server.url) as judge:
        cut = (await judge.choose(choose("word " * 200_000), deadline_s=None)).answer
        assert isinstance(cut, Choice)
        assert cut.truncated
        fits = (await judge.choose(choose(), deadline_s=None)).answer
        assert isinstance(fits, Choice)
        assert not fits.truncated


async def test_demonstrations_do_not_count_against_the_longest_prompt() -> None:
    instructions = len("You compare answers with a reference and rate them: 1 is wrong, 2 is unclear, 3 is right.")
    fits = instructions + len("Question: capital of France?\nReference: Paris\nAnswer: ParisRating:")
    async with (
        OddServer(answers=after_own(GOOD)) as server,
        opened(server.url, max_prompt_characters=fits) as judge,
    ):
        answer = (await judge.choose(choose(), deadline_s=None)).answer
    assert isinstance(answer, Choice)
    assert not answer.truncated


async def test_a_dead_server_is_refused_at_once_probed_and_found_again() -> None:
    def answer(heard: Heard) -> bytes:
        return decided(OWN) if is_own(heard) else GOOD

    async with OddServer(answers=[answer]) as server, opened(server.url, attempts=1) as judge:
        await server.stop()
        failure = (await judge.choose(choose(), deadline_s=None)).answer
        assert isinstance(failure, Failure)
        assert failure.status is Status.UNAVAILABLE
        assert "judge_url (--judge-url)" in failure.message
        assert judge.trouble()
        heard = len(server.heard)
        again = (await judge.choose(choose(), deadline_s=None)).answer
        assert isinstance(again, Failure)
        assert again.retry_after_s is not None
        assert len(server.heard) == heard  # not asked
        await server.start()
        await eventually(lambda: not judge.trouble())
        assert is_own(server.heard[-1])  # no user's item was the probe
        assert isinstance((await judge.choose(choose(), deadline_s=None)).answer, Choice)


async def test_a_slow_server_is_given_up_and_a_deadline_ends_what_waits() -> None:
    async with OddServer(answers=after_own(GOOD)) as server, opened(server.url, timeout_s=0.2) as judge:
        server.gate.clear()
        past = (await judge.choose(choose(), deadline_s=time.monotonic() - 1)).answer
        assert isinstance(past, Failure)
        assert past.status is Status.TIMEOUT
        slow = (await judge.choose(choose(), deadline_s=None)).answer
    assert isinstance(slow, Failure)
    assert slow.status is Status.UNAVAILABLE
    assert "judge_timeout_s" in slow.message


async def test_no_more_are_under_way_than_allowed_and_one_who_leaves_takes_its_request_along() -> None:
    observer = Counted()
    async with OddServer(answers=after_own(GOOD)) as server, opened(server.url, observer, max_in_flight=3) as judge:
        server.gate.clear()
        calls = [asyncio.create_task(judge.choose(choose(str(n)), deadline_s=None)) for n in range(10)]
        await eventually(lambda: len(server.heard) == 1 + 3)
        calls[0].cancel()
        await eventually(lambda: server.hung_up == 1)
        server.gate.set()
        replies = await asyncio.gather(*calls, return_exceptions=True)
    assert isinstance(replies[0], asyncio.CancelledError)
    assert all(not isinstance(each, BaseException) and isinstance(each.answer, Choice) for each in replies[1:])
    assert observer.most_flying == 3


@pytest.mark.parametrize(
    ("own", "status", "words"),
    [
        (reply(401, {}), Status.MODEL_UNAVAILABLE, "judge_token"),
        (reply(404, {}), Status.MODEL_UNAVAILABLE, "judge_url"),
        (reply(422, {}), Status.MODEL_UNAVAILABLE, "rejects"),
        (reply(503, b""), Status.UNAVAILABLE, "Try again"),
        (HANG_UP, Status.UNAVAILABLE, "cannot be reached"),
        (reply(200, b"<html>"), Status.MODEL_UNAVAILABLE, "a decision (something other than JSON). Check judge_url"),
        (decided({"true": 0.9}), Status.MODEL_UNAVAILABLE, "other than a decision"),
        (reply(302, b"", location="/login"), Status.MODEL_UNAVAILABLE, "redirects"),
    ],
)
async def test_a_server_that_is_of_no_use_is_not_opened(own: bytes, status: Status, words: str) -> None:
    async with OddServer(answers=[own]) as server:
        with pytest.raises(JudgeUnavailableError, match=re.escape(words)) as caught:
            async with opened(server.url):
                pass
    assert caught.value.failure.status is status
    assert (caught.value.failure.retry_after_s is not None) == (status is Status.UNAVAILABLE)


async def test_tokens_and_their_cost_are_counted_own_questions_too() -> None:
    def answer(heard: Heard) -> bytes:
        body = json.loads((decided(OWN) if is_own(heard) else GOOD).partition(b"\r\n\r\n")[2])
        return reply(200, body | {"usage": {"input_tokens": 40, "output_tokens": 0}})

    observer = Counted()
    async with OddServer(answers=[answer]) as server, opened(server.url, observer, prices=(2.0, 0.0)) as judge:
        first = (await judge.choose(choose(), deadline_s=None)).answer
        second = (await judge.choose(choose("Rome"), deadline_s=None)).answer
    assert isinstance(first, Choice)
    assert isinstance(second, Choice)
    assert (first.prompt_tokens, second.prompt_tokens, second.generated_tokens) == (80, 40, 0)
    # What is not written costs nothing, whatever its price.
    assert [usage.cost for usage in observer.usages] == pytest.approx([80 * 2e-6, 40 * 2e-6])


async def test_the_key_is_shown_to_the_server_and_to_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    bad = [reply(422, {"error": "key sk-hidden is odd"}), reply(401, b"sk-hidden")]
    async with (
        OddServer(answers=after_own(*bad)) as server,
        opened(server.url, token="sk-hidden", attempts=1) as judge,  # noqa: S106 - no secret
    ):
        for _ in bad:
            failure = (await judge.choose(choose(), deadline_s=None)).answer
            assert isinstance(failure, Failure)
            assert "sk-hidden" not in failure.message
        assert server.heard[0].headers["authorization"] == "Bearer sk-hidden"
    assert "sk-hidden" not in caplog.text


@pytest.mark.parametrize("url", ["host:8000/v1", "", "ftp://host/v1", "https://user:pass@host/v1", "https://h/v1?k=1"])
def test_addresses_that_are_none_are_refused_at_start(url: str) -> None:
    with pytest.raises(ValueError, match="judge_url"):
        DecisionJudges(RemoteJudgeConfig(url, "m"), Counted())
