"""Anthropic's Messages API: requests, answers, errors and reasons for an end, as Anthropic documents them."""

from dataclasses import replace
from typing import Any

import pytest
from tests.server.judges.remote.remote_judges import Counted, choose, generate, opened, prompt
from tests.support.fakes.odd_openai import Heard, OddServer, reply

from gradewire_server.domain.items import Failure, Image, Status
from gradewire_server.domain.judge import Choice, Generated
from gradewire_server.judges.remote.messages_api import message_dialect, message_request
from gradewire_server.judges.remote.openai_dialect import Dialect, ServerKind
from gradewire_server.judges.remote.server import Question

QUESTION = Question(prompt(), options=("1", "2", "3"))


def full(prefill: Any = "auto", reasoning_tokens: int = 0) -> Dialect:
    return message_dialect(ServerKind.OTHER, prefill, reasoning_tokens)


def message(*blocks: str | dict[str, object], stop: str | None = "end_turn", **usage: int) -> bytes:
    """A message with these texts and other blocks."""
    content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
    counted = {"input_tokens": 20, "output_tokens": 5, **usage}
    body = {"id": "msg_1", "type": "message", "role": "assistant", "content": content, "stop_reason": stop}
    return reply(200, {**body, "stop_sequence": None, "usage": counted})


def error(status: int, kind: str, words: str = "odd", **headers: str) -> bytes:
    body = {"type": "error", "error": {"type": kind, "message": words}, "request_id": "req_1"}
    return reply(status, body, **headers)


THOUGHT: dict[str, object] = {"type": "thinking", "thinking": "Rating: 3, perhaps", "signature": "c2ln"}


def test_a_request_has_the_fields_that_the_api_documents() -> None:
    asked: Any = message_request(QUESTION, "m", full())
    assert asked["system"].startswith("You compare answers")
    assert [turn["role"] for turn in asked["messages"]] == ["user", "assistant", "user"]
    assert asked["messages"][-1]["content"].endswith('"Rating:" and then one of these, and with nothing else: 1, 2, 3.')
    assert (asked["model"], asked["max_tokens"], asked["temperature"]) == ("m", 48, 0)
    assert asked.keys() == {"model", "messages", "system", "max_tokens", "temperature"}


def test_a_begun_turn_has_no_white_space_at_its_end() -> None:
    begun = Question(prompt(opening="Rating: "), options=("1", "2"))
    asked: Any = message_request(begun, "m", full("yes"))
    assert asked["messages"][-1] == {"role": "assistant", "content": "Rating:"}


def test_stops_of_white_space_are_left_out() -> None:
    asked: Any = message_request(Question(prompt(), max_tokens=40, stop=("\n\n", "\nAnswer:")), "m", full())
    assert asked["stop_sequences"] == ["\nAnswer:"]
    assert "stop_sequences" not in message_request(Question(prompt(), max_tokens=40, stop=("\n",)), "m", full())


def test_pictures_are_sources() -> None:
    images = (Image(b"\x89PNG", "", "image/png"), Image(uri="https://images.example.org/a.png"))
    asked: Any = message_request(Question(replace(prompt(), images=images), max_tokens=4), "m", full())
    first, second, text = asked["messages"][-1]["content"]
    assert first["source"] == {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}
    assert second["source"] == {"type": "url", "url": "https://images.example.org/a.png"}
    assert (first["type"], second["type"], text["type"]) == ("image", "image", "text")


async def test_the_text_decides_and_tokens_are_counted_with_those_of_the_cache() -> None:
    observer = Counted()
    answers = [message("Rating: ", "2", cache_read_input_tokens=100, cache_creation_input_tokens=7)]
    async with OddServer(answers=[*answers]) as server, opened(f"{server.url}/messages", observer) as judge:
        verdict = (await judge.choose(choose(), deadline_s=None)).answer
        assert judge.status.precision == "remote"
    assert isinstance(verdict, Choice)
    assert (verdict.probabilities, verdict.mass) == ((0, 1, 0), None)
    assert (verdict.prompt_tokens, verdict.generated_tokens) == (127, 5)
    assert observer.usages[0].cached_tokens == 100
    (heard,) = server.heard
    assert heard.path == "/v1/messages"
    assert (heard.headers["x-api-key"], heard.headers["anthropic-version"]) == ("key", "2023-06-01")


async def test_thoughts_are_asked_for_in_the_form_that_the_model_knows() -> None:
    def answer(heard: Heard) -> bytes:
        thinking = heard.body.get("thinking", {})
        if thinking.get("type") == "adaptive":
            return error(400, "invalid_request_error", "thinking.type: adaptive is not supported by this model")
        return message(THOUGHT, "Rating: 2")

    async with OddServer(answers=[answer]) as server, opened(f"{server.url}/messages", reasoning_tokens=300) as judge:
        verdict = (await judge.choose(choose(), deadline_s=None)).answer
        assert judge.status.precision == "remote"
    assert isinstance(verdict, Choice)
    assert verdict.probabilities == (0, 1, 0)
    asked = server.heard[-1].body
    assert asked["thinking"] == {"type": "enabled", "budget_tokens": 1024}
    assert asked["max_tokens"] > 1024
    assert "temperature" not in asked


async def test_a_model_that_refuses_thoughts_gets_none() -> None:
    def answer(heard: Heard) -> bytes:
        refusal = error(400, "invalid_request_error", "This model does not support thinking.")
        return refusal if "thinking" in heard.body else message("Rating: 2")

    async with OddServer(answers=[answer]) as server, opened(f"{server.url}/messages", reasoning_tokens=2000) as judge:
        verdict = (await judge.choose(choose(), deadline_s=None)).answer
        assert judge.status.precision == "remote without thinks"
    assert isinstance(verdict, Choice)
    assert server.heard[-1].body["temperature"] == 0


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("temperature", "`temperature` is deprecated for this model."),
        ("stop_sequences", "stop_sequences: Extra inputs are not permitted"),
    ],
)
async def test_a_refused_field_is_left_out(field: str, words: str) -> None:
    def answer(heard: Heard) -> bytes:
        return error(400, "invalid_request_error", words) if field in heard.body else message("Rating: 2")

    async with OddServer(answers=[answer]) as server, opened(f"{server.url}/messages") as judge:
        for _ in range(2):
            text = (await judge.generate(generate(stop=("\nEnd",)), deadline_s=None)).answer
            assert isinstance(text, Generated)
    assert field not in server.heard[-1].body
    # The item, our own question once or twice, the item again, the second item.
    assert len(server.heard) <= 5


async def test_a_refused_begun_turn_is_left_out() -> None:
    def answer(heard: Heard) -> bytes:
        words = "This model does not support assistant message prefill. The conversation must end with a user message."
        begun = heard.body["messages"][-1]["role"] == "assistant"
        return error(400, "invalid_request_error", words) if begun else message("Rating: 2")

    settings = {"assistant_prefill": "yes"}
    async with OddServer(answers=[answer]) as server, opened(f"{server.url}/messages", **settings) as judge:
        verdict = (await judge.choose(choose(), deadline_s=None)).answer
        assert judge.status.precision == "remote without continues"
    assert isinstance(verdict, Choice)


@pytest.mark.parametrize(
    ("sent", "status", "words"),
    [
        (error(529, "overloaded_error", "Overloaded"), Status.UNAVAILABLE, "status 529"),
        (error(500, "api_error"), Status.UNAVAILABLE, "status 500"),
        (error(504, "timeout_error"), Status.UNAVAILABLE, "status 504"),
        (error(429, "rate_limit_error", retry_after="600"), Status.UNAVAILABLE, "no more requests"),
        (error(200, "overloaded_error"), Status.UNAVAILABLE, "status 503"),
        (error(401, "authentication_error", "invalid x-api-key"), Status.MODEL_UNAVAILABLE, "judge_token"),
        (error(403, "permission_error"), Status.MODEL_UNAVAILABLE, "judge_token"),
        (error(404, "not_found_error", "model: m"), Status.MODEL_UNAVAILABLE, "knows no model 'm', or no Messages API"),
        (error(402, "billing_error"), Status.MODEL_UNAVAILABLE, "is used up"),
        (error(400, "invalid_request_error"), Status.MODEL_UNAVAILABLE, "rejects every request"),
        (error(413, "request_too_large"), Status.INVALID_INPUT, "too long"),
        (message("no", stop="refusal"), Status.UNPARSABLE, "refusal to answer"),
        (message(THOUGHT, stop="max_tokens"), Status.UNPARSABLE, "judge_reasoning_tokens"),
        (message(stop="model_context_window_exceeded"), Status.UNPARSABLE, "used up its token limit"),
        (message("I cannot say."), Status.UNPARSABLE, "a refusal instead of a label"),
        (reply(200, {"type": "message", "content": "Rating: 2"}), Status.UNPARSABLE, "no text"),
        (reply(200, {"type": "message"}), Status.UNPARSABLE, "other than a message"),
        (reply(200, {"content": [{"type": "text", "text": 2}]}), Status.UNPARSABLE, "other than a message"),
    ],
)
async def test_what_is_no_answer_has_its_status(sent: bytes, status: Status, words: str) -> None:
    async with OddServer(answers=[sent]) as server, opened(f"{server.url}/messages", attempts=1) as judge:
        failure = (await judge.choose(choose("no"), deadline_s=None)).answer
    assert isinstance(failure, Failure)
    assert (failure.status, words in failure.message) == (status, True), failure
    assert server.heard


async def test_an_overloaded_server_is_asked_again_after_the_wait_that_it_wants() -> None:
    observer = Counted()
    answers = [error(529, "overloaded_error"), error(429, "rate_limit_error", retry_after="0"), message("Rating: 2")]
    async with OddServer(answers=[*answers]) as server, opened(f"{server.url}/messages", observer) as judge:
        verdict = (await judge.choose(choose(), deadline_s=None)).answer
    assert isinstance(verdict, Choice)
    assert observer.retries == ["server_error", "rate_limited"]


@pytest.mark.parametrize("supported", [True, False])
async def test_the_list_of_models_says_which_of_them_sees(supported: bool) -> None:  # noqa: FBT001 - a column
    models = {"data": [{"type": "model", "id": "m", "capabilities": {"image_input": {"supported": supported}}}]}
    async with OddServer(models=reply(200, models)) as server, opened(f"{server.url}/messages") as judge:
        assert judge.status.sees_images is supported
    assert server.listed == 1
