"""OpenAI's Responses API: requests, answers, errors and reasons for an end, in the shapes that OpenAI documents."""

from dataclasses import replace
from typing import Any

import pytest
from tests.server.judges.remote.remote_judges import Counted, choose, generate, opened, prompt
from tests.support.fakes.odd_openai import Heard, OddServer, reply

from gradewire_server.domain.items import Failure, Image, Status
from gradewire_server.domain.judge import Choice, Generated, JudgePrompt
from gradewire_server.judges.remote.openai_dialect import Dialect, ServerKind
from gradewire_server.judges.remote.responses_api import response_dialect, response_request
from gradewire_server.judges.remote.server import Question

QUESTION = Question(JudgePrompt((), lead="Is it?", prediction="Paris", opening="Answer:"), options=("yes", "no"))


def full(reasoning_tokens: int = 0) -> Dialect:
    return response_dialect(ServerKind.OTHER, "auto", reasoning_tokens)


def response(text: str | None, logprobs: list[object] | None = None, **changes: object) -> bytes:
    """A response with a message, or without one."""
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": logprobs or []}
    message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
    body: dict[str, Any] = {
        "id": "resp_1",
        "object": "response",
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "output": [{"type": "reasoning", "id": "rs_1", "summary": []}, *([] if text is None else [message])],
        "usage": {
            "input_tokens": 80,
            "input_tokens_details": {"cached_tokens": 64},
            "output_tokens": 12,
            "output_tokens_details": {"reasoning_tokens": 8},
            "total_tokens": 92,
        },
    }
    return reply(200, {**body, **changes})


def test_a_request_has_the_fields_that_the_api_documents() -> None:
    assert response_request(QUESTION, "m", full()) == {
        "model": "m",
        "input": [
            {
                "role": "user",
                "content": (
                    'Is it?Paris\n\nReply with "Answer:" and then one of these, and with nothing else: yes, no.'
                ),
            }
        ],
        "max_output_tokens": 16,
        "store": False,
        "stream": False,
        "temperature": 0,
        "top_logprobs": 20,
        "include": ["message.output_text.logprobs"],
    }


def test_turns_and_pictures_have_their_own_types() -> None:
    images = (Image(b"\x89PNG", "", "image/png"), Image(uri="https://images.example.org/a.png"))
    asked: Any = response_request(Question(replace(prompt(), images=images), max_tokens=40, stop=("\n",)), "m", full())
    assert [turn["role"] for turn in asked["input"]] == ["system", "user", "assistant", "user"]
    first, second, text = asked["input"][-1]["content"]
    assert first == {"type": "input_image", "image_url": "data:image/png;base64,iVBORw=="}
    assert second == {"type": "input_image", "image_url": "https://images.example.org/a.png"}
    assert text["type"] == "input_text"
    assert asked["max_output_tokens"] == 40
    assert not {"stop", "top_logprobs", "include"} & asked.keys()


def test_thoughts_get_room() -> None:
    assert response_request(QUESTION, "m", full(2000))["max_output_tokens"] == 2048


async def test_probabilities_and_tokens_are_read() -> None:
    tops = [{"token": "2", "logprob": -0.1}, {"token": "1", "logprob": -3.0}, {"token": "3", "logprob": None}]
    observer = Counted()
    answers = [response("2", [{"token": "2", "logprob": -0.1, "bytes": [50], "top_logprobs": tops}])]
    async with OddServer(answers=[*answers]) as server, opened(f"{server.url}/responses", observer) as judge:
        verdict = (await judge.choose(choose(), deadline_s=None)).answer
    assert isinstance(verdict, Choice)
    assert verdict.probabilities[1] > 0.9
    assert (verdict.prompt_tokens, verdict.generated_tokens) == (80, 12)
    assert observer.usages[0].cached_tokens == 64
    (heard,) = server.heard
    assert (heard.path, heard.headers["authorization"]) == ("/v1/responses", "Bearer key")


async def test_the_text_decides_where_a_reasoning_model_refuses_its_log_probabilities() -> None:
    def answer(heard: Heard) -> bytes:
        message = "Unsupported parameter: 'temperature' is not supported with this model."
        if "temperature" in heard.body:
            return reply(400, {"error": {"message": message, "param": "temperature", "code": None}})
        message = "logprobs are not supported with reasoning models."
        return reply(400, {"error": {"message": message}}) if "include" in heard.body else response("Rating: 2")

    async with OddServer(answers=[answer]) as server, opened(f"{server.url}/responses") as judge:
        for _ in range(2):
            verdict = (await judge.choose(choose(), deadline_s=None)).answer
            assert isinstance(verdict, Choice)
            assert (verdict.probabilities, verdict.mass) == ((0, 1, 0), None)
        assert judge.status.precision == "remote without logprobs, temperature"
    assert not {"temperature", "include", "top_logprobs"} & server.heard[-1].body.keys()
    # The item, our own question with all and with one less each time, the item again, the second item.
    assert len(server.heard) == 1 + 3 + 1 + 1


async def test_a_text_without_logprobs_teaches_the_same() -> None:
    async with OddServer(answers=[response("Rating: 2")]) as server, opened(f"{server.url}/responses") as judge:
        verdict = (await judge.choose(choose(), deadline_s=None)).answer
        text = (await judge.generate(generate(stop=("2",)), deadline_s=None)).answer
    assert isinstance(verdict, Choice)
    assert verdict.mass is None
    assert isinstance(text, Generated)
    assert text.text == "Rating:"
    assert "include" not in server.heard[-1].body


INCOMPLETE = {"status": "incomplete"}


@pytest.mark.parametrize(
    ("sent", "status", "words"),
    [
        (
            response(None, **INCOMPLETE, incomplete_details={"reason": "max_output_tokens"}),
            Status.UNPARSABLE,
            "judge_reasoning_tokens",
        ),
        (
            response(None, **INCOMPLETE, incomplete_details={"reason": "content_filter"}),
            Status.UNPARSABLE,
            "content filter",
        ),
        (response(None), Status.UNPARSABLE, "no text"),
        (response(None, output=[{"type": "message", "content": [{"type": "refusal"}]}]), Status.UNPARSABLE, "refusal"),
        (
            response(None, status="failed", output=[], error={"code": "server_error", "message": "broke"}),
            Status.UNAVAILABLE,
            "status 503",
        ),
        (
            response(None, status="failed", output=[], error={"code": "rate_limit_exceeded", "message": "slow"}),
            Status.UNAVAILABLE,
            "no more requests",
        ),
        (
            response(None, status="failed", output=[], error={"code": "invalid_prompt", "message": "no"}),
            Status.UNPARSABLE,
            "content filter",
        ),
        (response(None, output=None), Status.UNPARSABLE, "other than a response"),
        (reply(200, {"choices": []}), Status.UNPARSABLE, "other than a response"),
        (reply(401, {"error": {"message": "wrong key"}}), Status.MODEL_UNAVAILABLE, "judge_token"),
        (reply(404, {}), Status.MODEL_UNAVAILABLE, "no Responses API at this address"),
    ],
)
async def test_what_is_no_answer_has_its_status(sent: bytes, status: Status, words: str) -> None:
    async with OddServer(answers=[sent]) as server, opened(f"{server.url}/responses", attempts=1) as judge:
        failure = (await judge.choose(choose(), deadline_s=None)).answer
    assert isinstance(failure, Failure)
    assert (failure.status, words in failure.message) == (status, True), failure
    assert server.heard


async def test_an_answer_that_is_cut_is_read_as_far_as_it_goes() -> None:
    cut = response("Because it is", **INCOMPLETE, incomplete_details={"reason": "max_output_tokens"})
    async with OddServer(answers=[cut]) as server, opened(f"{server.url}/responses") as judge:
        text = (await judge.generate(generate(), deadline_s=None)).answer
    assert isinstance(text, Generated)
    assert (text.text, text.complete) == ("Because it is", False)
    assert server.heard
