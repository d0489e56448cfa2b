"""A feature that a server refuses in its own words and status is learned once, left out afterwards, and named."""

import itertools
import json
import logging
from typing import TYPE_CHECKING, Any

import pytest
from tests.server.judges.remote.remote_judges import Counted, choose, generate, opened
from tests.support.fakes.odd_openai import Heard, OddServer, completion, reply

from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.judge import Choice, Generated

if TYPE_CHECKING:
    from collections.abc import Callable

TOPS = [{"2": -0.1, "1": -3.0, "3": -4.0}]


def openai(param: str, message: str, code: str = "unsupported_parameter") -> dict[str, object]:
    return {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}


def flat(message: str) -> dict[str, object]:
    """SGLang's and old vLLM's shape."""
    return {"object": "error", "message": message, "type": "BadRequestError", "param": None, "code": 400}


def listed(message: str) -> list[object]:
    """Google's shape."""
    return [{"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}]


def wrapped(inner: object, code: int = 400) -> dict[str, object]:
    """OpenRouter's shape."""
    raw = json.dumps(inner)
    return {"error": {"message": "Provider returned error", "code": code, "metadata": {"raw": raw}}}


NO_LOGPROBS = openai("logprobs", "Unsupported parameter: 'logprobs' is not supported with this model.")
NO_TEMPERATURE = openai(
    "temperature",
    "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported.",
    "unsupported_value",
)
NOT_ALLOWED = {"error": {"message": "You are not allowed to request logprobs from this model", "param": None}}
USE_COMPLETION_TOKENS = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."


REFUSALS: list[tuple[str, str, bytes]] = [
    ("openai", "logprobs", reply(400, NO_LOGPROBS)),
    ("openai", "logprobs", reply(403, NOT_ALLOWED)),
    ("openai", "temperature", reply(400, NO_TEMPERATURE)),
    ("openai", "max_tokens", reply(400, openai("max_tokens", USE_COMPLETION_TOKENS))),
    ("openai", "stop", reply(400, openai("stop", "'stop' is not supported with this model."))),
    ("azure", "max_tokens", reply(400, openai("max_tokens", "max_tokens is not supported."))),
    ("azure", "logprobs", reply(400, {"error": {"code": "BadRequest", "message": "logprobs: unsupported"}})),
    ("openrouter", "temperature", reply(400, wrapped(NO_TEMPERATURE))),
    ("openrouter", "logprobs", reply(200, wrapped(NO_LOGPROBS))),
    ("openrouter", "logprobs", reply(200, wrapped(NOT_ALLOWED, 403))),
    (
        "litellm",
        "logprobs",
        reply(
            400,
            {
                "error": {
                    "message": "litellm.UnsupportedParamsError: no support for ['logprobs', 'top_logprobs']",
                    "type": "None",
                    "param": None,
                    "code": "400",
                }
            },
        ),
    ),
    ("gemini", "logprobs", reply(400, listed("Logprobs is not enabled for models/m"))),
    ("gemini", "temperature", reply(400, listed('Invalid JSON payload: unknown name "temperature"'))),
    ("vertex", "stop", reply(400, listed("Unable to submit: 'stop' is not supported by this model"))),
    ("bedrock", "temperature", reply(400, {"message": "temperature is deprecated for this model"})),
    ("bedrock", "logprobs", reply(400, {"error": {"code": "validation_error", "message": "logprobs: extra"}})),
    ("mistral", "logprobs", reply(422, {"message": {"detail": [{"loc": ["body", "logprobs"], "msg": "extra"}]}})),
    ("deepseek", "logprobs", reply(422, b"Failed to deserialize the JSON body: logprobs: unknown field")),
    ("vllm", "logprobs", reply(400, flat("logprobs is not supported with this sampler"))),
    ("sglang", "logprobs", reply(400, flat("logprobs is not supported in this mode"))),
    (
        "tgi",
        "stop",
        reply(422, {"error": "Input validation error: 'stop' is too long", "error_type": "validation"}),
    ),
    ("llama.cpp", "logprobs", reply(501, {"error": {"code": 501, "message": "logprobs is not supported"}})),
    ("llama.cpp", "logprobs", reply(500, {"error": {"code": 500, "message": "logprobs is not supported"}})),
    ("ollama", "logprobs", reply(400, {"error": {"message": "logprobs is not supported", "type": "api_error"}})),
    ("lm-studio", "logprobs", reply(400, {"error": "Unrecognized key 'logprobs'"})),
    ("fastapi", "stop", reply(422, {"detail": [{"loc": ["body", "stop"], "msg": "Extra inputs"}]})),
]
"""Provider, field and refusal."""


@pytest.mark.parametrize(
    ("field", "refusal"),
    [case[1:] for case in REFUSALS],
    ids=[f"{name}-{field}" for name, field, _ in REFUSALS],
)
async def test_a_refused_field_is_left_out_once_and_named(
    field: str, refusal: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    def answer(heard: Heard) -> bytes:
        if field in heard.body:
            return refusal
        return completion("Rating: 2", TOPS if "logprobs" in heard.body else None)

    async with OddServer(answers=[answer]) as server, opened(server.url) as judge:
        text = (await judge.generate(generate(stop=("\n",)), deadline_s=None)).answer
        asked = len(server.heard)
        for _ in range(2):
            verdict = (await judge.choose(choose(), deadline_s=None)).answer
            assert isinstance(verdict, Choice)
            assert verdict.probabilities[1] > 0.9
            assert (verdict.mass is None) == (field == "logprobs")
        remarks = " ".join(judge.status.remarks)
    assert isinstance(text, Generated)
    choices = server.heard[asked:]
    # logprobs is only in choices: the item, our own question twice, the item again. A failure is asked for twice.
    assert len(choices) == (5 + (b" 500 " in refusal) if field == "logprobs" else 2)
    assert field not in choices[-1].body
    assert field in caplog.text
    assert (field in remarks) == (field in {"logprobs", "temperature"})
    if field == "max_tokens":
        assert choices[-1].body["max_completion_tokens"] > 0


TOO_MANY = "`top_n_tokens` must be >= 0 and <= 5. Given: 20"


@pytest.mark.parametrize(
    ("most", "refusal"),
    [
        (5, reply(422, {"error": f"Input validation error: {TOO_MANY}", "error_type": "validation"})),
        (5, reply(400, {"error": {"message": "top_logprobs must be less than or equal to 5", "param": None}})),
        (8, reply(400, {"code": "Invalid argument", "error": "top_logprobs: value must be between 0 and 8."})),
        (11, reply(422, {"detail": [{"loc": ["body", "top_logprobs"], "msg": "Input should be at most 11"}]})),
        (5, reply(400, {"error": {"message": "top_logprobs exceeds the limit"}})),
        (3, reply(400, flat("Requested sample logprobs of 20, which is greater than max allowed: 3"))),
    ],
)
async def test_fewer_log_probabilities_are_better_than_no_more_at_all(most: int, refusal: bytes) -> None:
    def answer(heard: Heard) -> bytes:
        return refusal if heard.body.get("top_logprobs", 0) > most else completion("2", TOPS)

    async with OddServer(answers=[answer]) as server, opened(server.url) as judge:
        verdict = (await judge.choose(choose(), deadline_s=None)).answer
        assert isinstance(verdict, Choice)
        assert verdict.mass is not None
        assert judge.status.precision == "remote without top_logprobs"
    assert server.heard[-1].body["top_logprobs"] == most


async def test_a_server_that_allows_no_number_of_them_gives_none() -> None:
    def answer(heard: Heard) -> bytes:
        few = {"error": "top_logprobs: at most 5, and this model supports no more than 0"}
        return reply(400, few) if "logprobs" in heard.body else completion("Rating: 2")

    async with OddServer(answers=[answer]) as server, opened(server.url) as judge:
        verdict = (await judge.choose(choose(), deadline_s=None)).answer
        assert isinstance(verdict, Choice)
        assert verdict.mass is None
        assert judge.status.precision == "remote without logprobs"
    assert "top_logprobs" not in server.heard[-1].body


@pytest.mark.parametrize(
    "refusal",
    [
        reply(400, flat("System role not supported")),
        reply(400, openai("messages[0].role", "'messages[0].role' does not support 'system' with this model.")),
        reply(500, {"error": {"message": "Conversation roles must alternate user/assistant; invalid order"}}),
    ],
)
async def test_instructions_move_to_the_first_turn_where_they_may_not_stand_alone(refusal: bytes) -> None:
    def answer(heard: Heard) -> bytes:
        roles = [message["role"] for message in heard.body["messages"]]
        return refusal if "system" in roles else completion("2", TOPS)

    async with OddServer(answers=[answer]) as server, opened(server.url) as judge:
        verdict = (await judge.choose(choose(), deadline_s=None)).answer
        assert judge.status.precision == "remote without system"
    assert isinstance(verdict, Choice)
    first, second, third = server.heard[-1].body["messages"]
    assert [each["role"] for each in (first, second, third)] == ["user", "assistant", "user"]
    assert first["content"].startswith("You compare answers")
    assert "capital of Spain" in first["content"]


async def test_all_of_it_at_once_in_one_lesson() -> None:
    refusals: dict[str, object] = {
        "logprobs": NO_LOGPROBS,
        "temperature": NO_TEMPERATURE,
        "max_tokens": openai("max_tokens", USE_COMPLETION_TOKENS),
        "stop": openai("stop", "'stop' is not supported with this model."),
    }

    def answer(heard: Heard) -> bytes:
        refused = next((name for name in refusals if name in heard.body), None)
        return completion("Rating: 2") if refused is None else reply(400, refusals[refused])

    async with OddServer(answers=[answer]) as server, opened(server.url) as judge:
        verdict = (await judge.choose(choose(), deadline_s=None)).answer
    assert isinstance(verdict, Choice)
    assert not refusals.keys() & server.heard[-1].body.keys()
    # The item, our own question with all and with one less each time, the item again.
    assert len(server.heard) == 1 + 5 + 1


@pytest.mark.parametrize(
    "failing",
    [
        reply(500, {"error": {"message": "computing logprobs failed"}}),
        reply(503, {"error": {"message": "logprobs is not supported right now"}}),
        reply(429, {"error": {"message": "unsupported rate for logprobs"}}),
    ],
)
async def test_a_failure_that_names_a_feature_is_a_failure(failing: bytes) -> None:
    observer = Counted()
    answers: list[bytes | Callable[[Heard], bytes]] = [failing, completion("2", TOPS)]
    async with OddServer(answers=answers) as server, opened(server.url, observer) as judge:
        verdict = (await judge.choose(choose(), deadline_s=None)).answer
        assert judge.status.precision == "remote"
    assert isinstance(verdict, Choice)
    assert len(observer.retries) == 1
    assert "logprobs" in server.heard[-1].body


PASSING = "internal error: unsupported state in logprobs"


async def test_a_failure_that_passes_is_no_lesson_even_with_words_of_a_refusal() -> None:
    failing = reply(500, {"error": {"message": PASSING}})
    answers: list[bytes | Callable[[Heard], bytes]] = [failing, failing, completion("2", TOPS)]
    async with OddServer(answers=answers) as server, opened(server.url) as judge:
        verdict = (await judge.choose(choose(), deadline_s=None)).answer
        assert judge.status.precision == "remote"
    assert isinstance(verdict, Choice)
    assert verdict.mass is not None
    # The item and our own question fail, our own question is answered, the item is sent again after a pause.
    assert len(server.heard) == 4
    assert all("logprobs" in heard.body for heard in server.heard)


async def test_failures_that_blame_one_feature_after_the_other_are_no_lesson() -> None:
    names = itertools.cycle(["logprobs is not supported", "temperature is not supported"])

    def answer(_: Heard) -> bytes:
        return reply(500, {"error": {"message": next(names)}})

    async with OddServer(answers=[answer]) as server, opened(server.url, attempts=1) as judge:
        failure = (await judge.choose(choose(), deadline_s=None)).answer
        assert judge.status.precision == "remote"
    assert isinstance(failure, Failure)
    assert failure.status is Status.UNAVAILABLE
    # After the item, the test question is sent twice for the words, and twice to tell if the server is down.
    assert len(server.heard) == 1 + 2 + 2


@pytest.mark.parametrize(
    "words",
    [
        "Unexpected error while computing logprobs",
        "logprobs: an unknown failure",
        "invalid state of the engine (temperature sensor, logprobs)",
    ],
)
async def test_a_failure_without_words_of_a_refusal_is_a_failure(words: str) -> None:
    failing = reply(500, {"error": {"message": words}})
    async with OddServer(answers=[failing]) as server, opened(server.url, attempts=1) as judge:
        failure = (await judge.choose(choose(), deadline_s=None)).answer
        assert judge.status.precision == "remote"
    assert isinstance(failure, Failure)
    assert failure.status is Status.UNAVAILABLE
    assert len(server.heard) == 2  # the test question tells that the server is down


async def test_a_policy_that_stops_all_requests_is_no_filter_of_one_item() -> None:
    refusal = reply(400, {"error": {"message": "Accept our usage policy in the console first"}})
    async with OddServer(answers=[refusal]) as server, opened(server.url) as judge:
        failure = (await judge.choose(choose(), deadline_s=None)).answer
    assert isinstance(failure, Failure)
    assert failure.status is Status.MODEL_UNAVAILABLE
    assert "usage policy in the console" in failure.message
    assert len(server.heard) == 2


async def test_a_key_that_is_refused_is_no_feature() -> None:
    refusal = reply(403, {"error": {"message": "Your key may not use this model"}})
    async with OddServer(answers=[refusal]) as server, opened(server.url) as judge:
        failure = (await judge.choose(choose(), deadline_s=None)).answer
    assert isinstance(failure, Failure)
    assert failure.status is Status.MODEL_UNAVAILABLE
    assert "judge_token" in failure.message
    assert server.heard[-1].body["logprobs"] is True


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, {"error": {"type": "invalid_request_error", "message": "Your credit balance is too low"}}),
        (402, {"error": {"code": 402, "message": "Insufficient credits"}}),
        (403, {"error": {"code": "insufficient_quota", "message": "no more"}}),
        (429, {"error": {"type": "rate_limit_error", "details": {"error_code": "enforced_spend_limit_reached"}}}),
        (429, {"error": {"code": "credit_balance_exhausted"}}),
    ],
)
async def test_a_spent_account_is_said_so(status: int, body: Any) -> None:
    async with OddServer(answers=[reply(status, body)]) as server, opened(server.url) as judge:
        failure = (await judge.choose(choose(), deadline_s=None)).answer
    assert isinstance(failure, Failure)
    assert failure.status is Status.MODEL_UNAVAILABLE
    assert "is used up" in failure.message
    assert server.heard


async def test_a_quota_of_the_minute_is_waited_for() -> None:
    words = "You exceeded your current quota, please check your plan and billing details."
    limited = reply(429, [{"error": {"code": 429, "message": words, "status": "RESOURCE_EXHAUSTED"}}])
    async with OddServer(answers=[limited, completion("2", TOPS)]) as server, opened(server.url) as judge:
        verdict = (await judge.choose(choose(), deadline_s=None)).answer
    assert isinstance(verdict, Choice)
    assert len(server.heard) == 2


@pytest.mark.parametrize(
    "words",
    [
        "prompt is too long: 210000 tokens > 200000 maximum",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        "Input is too long for requested model.",
        "The input (9000 tokens) is longer than the model's context length (4096 tokens).",
        "Input validation error: `inputs` must have less than 4095 tokens. Given: 5000",
        "However, the model is loaded with context length of only 4096 tokens",
    ],
)
async def test_a_prompt_that_is_too_long_is_cut_in_every_providers_words(words: str) -> None:
    def answer(heard: Heard) -> bytes:
        return reply(400, {"error": words}) if len(json.dumps(heard.body)) > 3000 else completion("2", TOPS)

    async with OddServer(answers=[answer]) as server, opened(server.url) as judge:
        verdict = (await judge.choose(choose("word " * 2000), deadline_s=None)).answer
    assert isinstance(verdict, Choice)
    assert verdict.truncated
    assert len(server.heard) > 2


async def test_thoughts_that_leave_no_token_for_the_answer_are_said_so() -> None:
    refusal = reply(
        400, {"error": {"message": "Could not finish: max_tokens or model output limit was reached. Try higher."}}
    )
    async with OddServer(answers=[refusal]) as server, opened(server.url) as judge:
        failure = (await judge.choose(choose(), deadline_s=None)).answer
        assert judge.trouble() == ""
    assert isinstance(failure, Failure)
    assert failure.status is Status.UNPARSABLE
    assert "judge_reasoning_tokens" in failure.message
    assert len(server.heard) == 1
