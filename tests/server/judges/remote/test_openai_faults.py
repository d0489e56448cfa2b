"""OpenAI-compatible servers on bad days."""

import asyncio
import gzip
import json
import logging
import re
import time

import pytest
from tests.server.judges.remote.remote_judges import Counted, choose, eventually, generate, opened
from tests.support.fakes.odd_openai import HANG_UP, Heard, OddServer, completion, reply

from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.judge import Choice, Generated
from gradewire_server.judges.backend import JudgeUnavailableError
from gradewire_server.judges.remote.openai import OpenAIJudges
from gradewire_server.settings.judge import RemoteJudgeConfig

GOOD = completion("Rating: 2", [{"2": -0.1, "1": -3.0, "3": -4.0}], prompt_tokens=100, completion_tokens=3)


async def failure_of(answers: list[bytes], observer: Counted | None = None, **settings: object) -> Failure:
    async with OddServer(answers=[*answers]) as server, opened(server.url, observer, **settings) as judge:
        answer = (await judge.choose(choose(), deadline_s=time.monotonic() + 5)).answer
    assert isinstance(answer, Failure)
    return answer


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (reply(429, {"error": "slow down"}, retry_after="0"), "rate_limited"),
        (reply(500, b"oops"), "server_error"),
        (reply(503, b"", retry_after="0"), "server_error"),
        (b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 99\r\n\r\n{", "unreachable"),
        (b"garbage\r\n\r\n", "unreachable"),
    ],
)
async def test_what_passes_is_tried_again(bad: bytes, reason: str) -> None:
    observer = Counted()
    async with OddServer(answers=[bad, GOOD]) as server, opened(server.url, observer) as judge:
        judged = await judge.choose(choose(), deadline_s=time.monotonic() + 10)
    assert isinstance(judged.answer, Choice)
    assert judged.answer.probabilities[1] > 0.9
    assert observer.retries == [reason]
    assert observer.flying == 0
    assert judged.timing.inference_s > 0


async def test_a_connection_that_is_closed_again_and_again_is_tried_again_later() -> None:
    observer = Counted()
    async with OddServer(answers=[HANG_UP, HANG_UP, GOOD]) as server, opened(server.url, observer) as judge:
        assert isinstance((await judge.choose(choose(), deadline_s=time.monotonic() + 10)).answer, Choice)
    assert observer.retries == ["unreachable"]


async def test_the_wait_that_a_server_asks_for_is_kept() -> None:
    answers = [reply(429, {}, retry_after="1"), GOOD]
    async with OddServer(answers=[*answers]) as server, opened(server.url) as judge:
        started_s = time.monotonic()
        answer = (await judge.choose(choose(), deadline_s=None)).answer
    assert isinstance(answer, Choice)
    assert time.monotonic() - started_s >= 1


async def test_a_wait_beyond_the_deadline_is_told_to_the_caller_at_once() -> None:
    observer = Counted()
    failure = await failure_of([reply(429, {}, retry_after="600")], observer)
    assert failure.status is Status.UNAVAILABLE
    assert failure.retry_after_s is not None
    assert failure.retry_after_s >= 600
    assert observer.retries == []


async def test_attempts_have_an_end_and_then_nobody_is_kept_waiting() -> None:
    observer = Counted()
    async with OddServer(answers=[reply(500, b"")]) as server, opened(server.url, observer, attempts=2) as judge:
        failure = (await judge.choose(choose(), deadline_s=None)).answer
        assert isinstance(failure, Failure)
        assert failure.status is Status.UNAVAILABLE
        assert failure.retry_after_s is not None
        assert len(server.heard) == 2 + 1  # the test question fails too
        assert "failed" in judge.trouble()
        again = (await judge.choose(choose(), deadline_s=None)).answer
        assert isinstance(again, Failure)
        assert again.retry_after_s is not None
        assert len(server.heard) == 3  # not asked


async def test_a_server_that_comes_back_is_found_and_not_bothered_before() -> None:
    async with OddServer(answers=[GOOD]) as server, opened(server.url, attempts=1) as judge:
        await server.stop()
        failure = (await judge.choose(choose(), deadline_s=None)).answer
        assert isinstance(failure, Failure)
        assert failure.status is Status.UNAVAILABLE
        assert judge.trouble()
        await server.start()
        listed = server.listed
        await eventually(lambda: not judge.trouble())
        assert server.listed == listed + 1
        answer = (await judge.choose(choose(), deadline_s=None)).answer
        assert isinstance(answer, Choice)


async def test_one_bad_request_among_good_ones_does_not_stop_the_others() -> None:
    def answer(heard: Heard) -> bytes:
        return reply(500, b"") if "poison" in json.dumps(heard.body) else GOOD

    async with OddServer(answers=[answer]) as server, opened(server.url, attempts=3) as judge:
        bad = asyncio.create_task(judge.choose(choose("poison"), deadline_s=None))
        for _ in range(20):
            good = (await judge.choose(choose(), deadline_s=None)).answer
            assert isinstance(good, Choice)
            await asyncio.sleep(0.01)
        while not bad.done():
            await judge.choose(choose(), deadline_s=None)
            await asyncio.sleep(0.01)
        failure = (await bad).answer
        assert isinstance(failure, Failure)
        assert failure.status is Status.UNAVAILABLE
        assert judge.trouble() == ""


@pytest.mark.parametrize("status", [500, 503, 424])
async def test_an_item_that_always_fails_leaves_the_next_call_alone(status: int) -> None:
    def answer(heard: Heard) -> bytes:
        return reply(status, b"", retry_after="0") if "poison" in json.dumps(heard.body) else GOOD

    async with OddServer(answers=[answer]) as server, opened(server.url, attempts=2) as judge:
        for _ in range(3):
            failure = (await judge.choose(choose("poison"), deadline_s=None)).answer
            assert isinstance(failure, Failure)
            assert failure.status is Status.UNAVAILABLE
            assert f"(status {status}) failed" in failure.message
            assert judge.trouble() == ""
            assert isinstance((await judge.choose(choose(), deadline_s=None)).answer, Choice)
        assert len(server.heard) == 3 * (2 + 1 + 1)
        limited = reply(200, {"error": {"code": 429, "message": "slow down"}})
        server.answers = [limited]
        failure = (await judge.choose(choose("other"), deadline_s=time.monotonic() + 0.2)).answer
        assert isinstance(failure, Failure)
        assert "accepts no more requests" in failure.message


async def test_a_server_that_limits_the_test_question_is_not_down() -> None:
    def answer(heard: Heard) -> bytes:
        return reply(429, {}, retry_after="9") if "water" in json.dumps(heard.body) else reply(500, b"")

    async with OddServer(answers=[answer]) as server, opened(server.url, attempts=1) as judge:
        failure = (await judge.choose(choose(), deadline_s=None)).answer
        assert isinstance(failure, Failure)
        assert "(status 500) failed" in failure.message
        assert judge.trouble() == ""
        assert len(server.heard) == 2


async def test_a_server_that_refuses_the_test_question_is_down_for_that_reason() -> None:
    def answer(heard: Heard) -> bytes:
        return reply(401, b"") if "water" in json.dumps(heard.body) else reply(500, b"")

    async with OddServer(answers=[answer]) as server, opened(server.url, attempts=1) as judge:
        failure = (await judge.choose(choose(), deadline_s=None)).answer
        assert isinstance(failure, Failure)
        assert failure.status is Status.UNAVAILABLE
        assert "judge_token" in judge.trouble()


@pytest.mark.parametrize(
    ("bad", "status", "words"),
    [
        (reply(401, {"error": "key is wrong"}), Status.MODEL_UNAVAILABLE, "judge_token"),
        (reply(401, {}), Status.MODEL_UNAVAILABLE, "--judge-key-env"),
        (reply(404, {}), Status.MODEL_UNAVAILABLE, "judge_remote_model (--judge-remote-model)"),
        (reply(404, {}), Status.MODEL_UNAVAILABLE, "judge_url (--judge-url)"),
        (reply(307, b"", location="https://elsewhere.example/v1"), Status.MODEL_UNAVAILABLE, "judge_url"),
        (reply(400, {"error": "no"}), Status.MODEL_UNAVAILABLE, "rejects every request (status 400)"),
        (reply(402, {}), Status.MODEL_UNAVAILABLE, "Raise it or pay there"),
        (reply(429, {"error": {"code": "insufficient_quota"}}), Status.MODEL_UNAVAILABLE, "is used up"),
        (reply(429, {"error": "Insufficient Balance"}), Status.MODEL_UNAVAILABLE, "is used up"),
        (reply(200, b"<html>"), Status.MODEL_UNAVAILABLE, "answers with a web page. Check judge_url"),
        (reply(200, b"hello"), Status.MODEL_UNAVAILABLE, "something other than JSON"),
        (reply(200, b""), Status.MODEL_UNAVAILABLE, "an empty reply"),
        (reply(200, b" " * (2 << 20)), Status.UNPARSABLE, "1 MiB"),
        (reply(200, gzip.compress(b" " * (8 << 20)), content_encoding="gzip"), Status.UNPARSABLE, "1 MiB"),
        (reply(200, b"{}", content_encoding="gzip"), Status.UNPARSABLE, "encoding"),
        (completion("Paris", [{"Paris": -0.1, "The": -2.5}]), Status.UNPARSABLE, "none of the labels"),
        (completion("1", [{"1": float("nan"), "2": -1.0}]), Status.UNPARSABLE, "probabilities"),
        (completion(None), Status.UNPARSABLE, "no text"),
    ],
)
async def test_what_does_not_pass_is_not_tried_again(bad: bytes, status: Status, words: str) -> None:
    observer = Counted()
    failure = await failure_of([bad], observer)
    assert failure.status is status
    assert words in failure.message
    assert status is not Status.MODEL_UNAVAILABLE or re.search(
        r"server at http://127\.0\.0\.1:\d+/v1 ", failure.message
    )
    assert "elsewhere" not in failure.message
    assert observer.retries == []


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (
            reply(401, {"error": {"message": "Bad API key: key.", "code": "x"}}),
            "words: 'Bad API (the key): ",
        ),
        (reply(403, {"detail": "Terms not accepted"}), "words: 'Terms not accepted'"),
        (reply(400, {"error": {"message": "Verify\nyour  org \x1b[31m"}}), r"words: 'Verify your org \x1b[31m'"),
        (reply(400, {"message": "a" * 500}), f"words: '{'a' * 199}…'"),
        (reply(404, b"<html><title>404</title><script>let x</script><body>not <b>here</b>"), "words: '404 not here'"),
        (reply(400, b"Unsupported. Ask key's owner"), 'words: "Unsupported. Ask (the key)\'s owner"'),
        (reply(422, {"detail": [{"msg": "no", "loc": ["body", "top_logprobs"]}]}), "words: 'no body top_logprobs'"),
    ],
)
async def test_the_servers_own_words_are_shown_shortened_and_without_the_key(bad: bytes, words: str) -> None:
    failure = await failure_of([bad])
    assert failure.status is Status.MODEL_UNAVAILABLE
    assert f". The server's {words}" in failure.message
    assert "\n" not in failure.message


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("Paris", {}),
        (None, {}),
        ("Rating: 2", {"finish": "content_filter"}),
        ("x", {"finish": "refusal"}),
    ],
)
async def test_an_answer_that_cannot_be_used_has_its_tokens(text: str | None, more: dict[str, str]) -> None:
    known = completion(text, [{"x": -0.1}] if text == "Paris" else None, prompt_tokens=100, completion_tokens=3, **more)
    failure = await failure_of([known])
    assert failure.status is Status.UNPARSABLE
    assert (failure.prompt_tokens, failure.generated_tokens) == (100, 3)


async def test_a_failure_without_an_answer_has_no_tokens() -> None:
    for bad in (reply(500, b""), reply(400, {"error": "no"})):
        failure = await failure_of([bad], attempts=1)
        assert (failure.prompt_tokens, failure.generated_tokens) == (0, 0)


@pytest.mark.parametrize("body", [b"", b"{}", b"<p></p>"])
async def test_a_refusal_without_words_shows_none(body: bytes) -> None:
    assert "words" not in (await failure_of([reply(401, body)])).message


async def test_words_are_those_to_our_own_question_never_to_a_users() -> None:
    def answer(heard: Heard) -> bytes:
        return reply(403, {"error": f"you said: {heard.body['messages'][-1]['content']}"})

    failure = await failure_of([answer])
    assert "Is water wet?" in failure.message
    assert "capital of France" not in failure.message


async def test_absent_labels_count_nothing() -> None:
    async with OddServer(answers=[completion("2", [{"2": -0.2, "x": -2.0}])]) as server, opened(server.url) as judge:
        answer = (await judge.choose(choose(), deadline_s=None)).answer
    assert isinstance(answer, Choice)
    assert answer.probabilities == (0, 1, 0)
    assert answer.mass == pytest.approx(0.8187, abs=1e-4)  # exp(-0.2)


async def test_text_decides_where_a_server_has_no_probabilities() -> None:
    answers = [
        completion("Rat", finish="length"),
        completion("Answer: yes"),  # to our own question
        completion("Rating: 3"),
        completion("Rating: 3."),
        completion("so?"),
    ]
    async with OddServer(answers=[*answers]) as server, opened(server.url) as judge:
        for _ in range(2):
            answer = (await judge.choose(choose(), deadline_s=None)).answer
            assert isinstance(answer, Choice)
            assert (answer.probabilities, answer.mass) == ((0, 0, 1), None)
        failure = (await judge.choose(choose(), deadline_s=None)).answer
    assert isinstance(failure, Failure)
    assert failure.status is Status.UNPARSABLE
    assert ["logprobs" in heard.body for heard in server.heard] == [True, True, False, False, False]


async def test_a_refused_parameter_is_left_out() -> None:
    def answer(heard: Heard) -> bytes:
        refusal = reply(400, {"error": {"message": "Use 'max_completion_tokens' instead."}})
        return refusal if "max_tokens" in heard.body else GOOD

    async with OddServer(answers=[answer]) as server, opened(server.url) as judge:
        for _ in range(2):
            found = (await judge.choose(choose(), deadline_s=None)).answer
            assert isinstance(found, Choice)
    # The item, our own question, that without it, the item again; and then it is known.
    assert ["max_tokens" in heard.body for heard in server.heard] == [True, True, False, False, False]


async def test_an_over_long_item_is_cut_at_the_prediction_until_it_fits() -> None:
    def answer(heard: Heard) -> bytes:
        long = len(json.dumps(heard.body)) > 5000
        return reply(400, {"error": {"code": "context_length_exceeded"}}) if long else GOOD

    async with OddServer(answers=[answer]) as server, opened(server.url, max_prompt_characters=20_000) as judge:
        cut = (await judge.choose(choose("word " * 200_000), deadline_s=None)).answer
        assert isinstance(cut, Choice)
        assert cut.truncated
        assert len(json.dumps(server.heard[0].body)) < 22_000
        assert server.heard[-1].body["messages"][0] == server.heard[0].body["messages"][0]
        fits = (await judge.choose(choose("Paris"), deadline_s=None)).answer
        assert isinstance(fits, Choice)
        assert not fits.truncated


async def test_instructions_are_never_cut() -> None:
    async with OddServer(answers=[GOOD]) as server, opened(server.url, max_prompt_characters=100) as judge:
        failure = (await judge.choose(choose("Paris"), deadline_s=None)).answer
    assert isinstance(failure, Failure)
    assert failure.status is Status.INVALID_INPUT
    assert server.heard == []
    failure = await failure_of([reply(400, {"error": {"code": "context_length_exceeded"}})])
    assert failure.status is Status.INVALID_INPUT


async def test_no_more_are_under_way_than_allowed() -> None:
    observer = Counted()
    async with OddServer(answers=[GOOD]) as server, opened(server.url, observer, max_in_flight=3) as judge:
        server.gate.clear()
        calls = [asyncio.create_task(judge.choose(choose(str(n)), deadline_s=None)) for n in range(20)]
        await eventually(lambda: len(server.heard) == 3)
        await asyncio.sleep(0.05)
        assert len(server.heard) == 3
        server.gate.set()
        replies = await asyncio.gather(*calls)
    assert all(isinstance(each.answer, Choice) for each in replies)
    assert observer.most_flying == 3
    assert observer.flying == 0


async def test_a_caller_that_leaves_takes_its_request_with_it() -> None:
    async with OddServer(answers=[GOOD]) as server, opened(server.url) as judge:
        server.gate.clear()
        stays = asyncio.create_task(judge.choose(choose("stays"), deadline_s=None))
        leaves = asyncio.create_task(judge.choose(choose("leaves"), deadline_s=None))
        await eventually(lambda: len(server.heard) == 2)
        leaves.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaves
        await eventually(lambda: server.hung_up == 1)
        server.gate.set()
        answer = (await stays).answer
        assert isinstance(answer, Choice)
        assert judge.trouble() == ""
    assert server.hung_up == 1


async def test_a_deadline_ends_what_waits_and_what_is_under_way() -> None:
    async with OddServer(answers=[GOOD]) as server, opened(server.url, max_in_flight=1) as judge:
        server.gate.clear()
        deadline_s = time.monotonic() + 0.2
        calls = [judge.choose(choose(str(n)), deadline_s=deadline_s) for n in range(3)]
        for late in await asyncio.gather(*calls):
            assert isinstance(late.answer, Failure)
            assert late.answer.status is Status.TIMEOUT
        past = (await judge.choose(choose(), deadline_s=time.monotonic() - 1)).answer
        assert isinstance(past, Failure)
        assert past.status is Status.TIMEOUT
        assert len(server.heard) == 1
        assert judge.trouble() == ""


async def test_a_server_that_is_too_slow_is_given_up() -> None:
    async with OddServer(answers=[GOOD]) as server, opened(server.url, timeout_s=0.2) as judge:
        server.gate.clear()
        answer = (await judge.choose(choose(), deadline_s=None)).answer
    assert isinstance(answer, Failure)
    assert answer.status is Status.UNAVAILABLE
    assert "judge_timeout_s" in answer.message


async def test_closing_answers_those_who_wait() -> None:
    async with OddServer(answers=[GOOD]) as server, opened(server.url, max_in_flight=1) as judge:
        server.gate.clear()
        calls = [asyncio.create_task(judge.choose(choose(str(n)), deadline_s=None)) for n in range(3)]
        await asyncio.sleep(0.1)
        await judge.close()
        replies = [*await asyncio.gather(*calls), await judge.choose(choose(), deadline_s=None)]
    for answer in [each.answer for each in replies]:
        assert isinstance(answer, Failure)
        assert answer.status is Status.UNAVAILABLE
        assert answer.retry_after_s is not None


async def test_free_text_ends_at_a_stop_and_begins_behind_its_begin() -> None:
    answers = [
        completion("The answer is right.\nMore", finish="length", completion_tokens=7),
        completion(" is right. ", finish="length"),
        completion(" is right"),
        completion(""),
    ]
    async with OddServer(answers=[*answers]) as server, opened(server.url) as judge:
        found = [(await judge.generate(generate(stop=("\n", "")), deadline_s=None)).answer for _ in answers]
    assert all(isinstance(each, Generated) for each in found)
    assert [(each.text, each.complete) for each in found if isinstance(each, Generated)] == [
        ("is right.", True),
        ("is right.", False),
        ("is right", True),
        ("", True),
    ]


async def test_tokens_and_their_cost_are_counted() -> None:
    observer = Counted()
    settings = {"prices": (2.0, 10.0)}
    async with OddServer(answers=[GOOD]) as server, opened(server.url, observer, **settings) as judge:
        answer = (await judge.choose(choose(), deadline_s=None)).answer
    assert isinstance(answer, Choice)
    assert answer.prompt_tokens == 100
    (usage,) = observer.usages
    assert (usage.prompt_tokens, usage.generated_tokens) == (100, 3)
    assert usage.cost == pytest.approx(100 * 2e-6 + 3 * 10e-6)


async def test_labels_that_cannot_be_told_apart_are_not_asked_for() -> None:
    async with OddServer(answers=[GOOD]) as server, opened(server.url) as judge:
        failure = (await judge.choose(choose(options=("yes", "Yes")), deadline_s=None)).answer
    assert isinstance(failure, Failure)
    assert failure.status is Status.INVALID_PARAMETER
    assert server.heard == []


async def test_the_key_is_shown_to_the_server_and_to_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    answers = [reply(400, {"error": "key sk-hidden is odd"}), reply(500, b"sk-hidden"), reply(401, b"sk-hidden")]
    settings = {"token": "sk-hidden", "attempts": 1}
    async with OddServer(answers=[*answers]) as server, opened(server.url, **settings) as judge:
        for _ in answers:
            failure = (await judge.choose(choose(), deadline_s=None)).answer
            assert isinstance(failure, Failure)
            assert "sk-hidden" not in failure.message
        assert server.heard[0].headers["authorization"] == "Bearer sk-hidden"
    assert "sk-hidden" not in caplog.text
    assert "sk-hidden" not in repr(RemoteJudgeConfig("http://host/v1", "m", token="sk-hidden"))  # noqa: S106 - no secret


@pytest.mark.parametrize(
    ("models", "status"),
    [
        (reply(401, {}), Status.MODEL_UNAVAILABLE),
        (reply(503, b""), Status.UNAVAILABLE),
        (HANG_UP, Status.UNAVAILABLE),
        (reply(200, {"data": [{"id": "another"}]}), Status.MODEL_UNAVAILABLE),
    ],
)
async def test_a_server_that_is_of_no_use_is_not_opened(models: bytes, status: Status) -> None:
    async with OddServer(models=models, answers=[reply(404, {})]) as server:
        with pytest.raises(JudgeUnavailableError) as caught:
            async with opened(server.url):
                pass
    assert caught.value.failure.status is status
    assert (caught.value.failure.retry_after_s is not None) == (status is Status.UNAVAILABLE)


async def test_the_words_about_a_refused_list_of_models_are_shown() -> None:
    async with OddServer(models=reply(401, {"error": {"message": "wrong key: key"}})) as server:
        with pytest.raises(JudgeUnavailableError, match=r"words: 'wrong \(the key\): \(the key\)'"):
            async with opened(server.url):
                pass


async def test_a_server_that_is_not_there_is_named_with_the_option_that_says_where_it_is() -> None:
    async with OddServer() as server:
        url = server.url
    with pytest.raises(JudgeUnavailableError) as caught:
        async with opened(url):
            pass
    assert f"server at {url} cannot be reached" in caught.value.failure.message
    assert "judge_url (--judge-url)" in caught.value.failure.message


async def test_a_server_without_a_list_of_models_is_taken_as_it_is() -> None:
    async with OddServer(models=reply(404, b""), answers=[GOOD]) as server, opened(server.url) as judge:
        answer = (await judge.choose(choose(), deadline_s=None)).answer
    assert isinstance(answer, Choice)


@pytest.mark.parametrize(
    ("url", "token"),
    [
        ("host:8000/v1", ""),
        ("", ""),
        ("ftp://host/v1", ""),
        ("https://user:pass@host/v1", ""),
        ("https://host/v1?key=1", ""),
        ("https://host/v1", "two\nlines"),
        ("https://host/v1", "ключ"),
    ],
)
def test_addresses_and_keys_that_are_none_are_refused_at_start(url: str, token: str) -> None:
    with pytest.raises(ValueError, match="judge_"):
        OpenAIJudges(RemoteJudgeConfig(url, "m", token=token), Counted())


async def test_its_public_face_is_its_name() -> None:
    source = OpenAIJudges(RemoteJudgeConfig("http://127.0.0.1:1/v1", "m"), Counted())
    (status,) = source.listed()
    assert (status.name, status.kind, status.precision, status.state) == ("m", "judge", "remote", "built")
    assert len(status.digest) == 64
    other = OpenAIJudges(RemoteJudgeConfig("http://127.0.0.1:1/v1", "n"), Counted()).listed()[0]
    assert other.digest != status.digest
    assert any("Only the judge's name identifies" in remark for remark in status.remarks)
    with pytest.raises(JudgeUnavailableError, match="judge_remote_model"):
        await source.open("n")
