"""Replies of OpenAI-compatible servers."""

import contextlib
import email.utils
import json
import math
import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.domain.items import Status
from gradewire_server.domain.judge import JudgePrompt
from gradewire_server.judges.remote.errors import RemoteError, RemoteFault, Reply, error_of, retry_after_s
from gradewire_server.judges.remote.model_list import kind_of, missing_model
from gradewire_server.judges.remote.openai_dialect import Dialect, ServerKind, answer_of
from gradewire_server.judges.remote.server import Answer, Question


def reply(body: object, status: int = 200, retry_after: str = "") -> Reply:
    return Reply(status, body if isinstance(body, bytes) else json.dumps(body).encode(), retry_after, "http://h/v1")


def read(answered: Reply, *, continued: bool) -> Answer:
    asked = Question(JudgePrompt((), lead="?", opening="Rating:"), options=("1", "2"))
    return answer_of(answered, asked, Dialect(continues=continued))


COMPLETION: dict[str, Any] = {
    "choices": [
        {
            "finish_reason": "length",
            "message": {"role": "assistant", "content": "1"},
            "logprobs": {
                "content": [
                    {"token": "1", "logprob": -0.5, "top_logprobs": [{"token": "1", "logprob": -0.5, "bytes": [49]}]}
                ]
            },
        }
    ],
    "usage": {"prompt_tokens": 39, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 30}},
}


def test_a_completion_is_read() -> None:
    answer = read(reply(COMPLETION), continued=True)
    assert (answer.text, answer.whole, answer.continued) == ("1", False, True)
    assert (answer.tokens.prompt, answer.tokens.cached, answer.tokens.generated) == (39, 30, 2)
    assert answer.steps is not None
    assert answer.steps[0].alternatives == (("1", -0.5),)


@pytest.mark.parametrize(
    "logprobs",
    [
        {
            "content": [
                {"token": "1", "logprob": -0.5, "top_logprobs": [{"token": "1", "logprob": -0.5}, {"token": "2"}]}
            ]
        },
        {"content": [{"token": "1", "logprob": -0.5, "top_logprobs": [{"token": "x", "logprob": None}]}]},
        {"content": [{"token": "1", "logprob": -0.5, "top_logprobs": None}]},
        {"content": [{"token": "1", "top_logprobs": [{"token": "1", "logprob": -0.5}]}]},
        {"tokens": ["1"], "token_logprobs": [-0.5], "top_logprobs": [{"1": -0.5, "2": None}]},
        {"tokens": ["1"], "token_logprobs": [-0.5]},
        {"tokens": ["1"], "top_logprobs": [{"1": -0.5}]},
    ],
)
def test_an_alternative_without_a_number_is_left_out(logprobs: object) -> None:
    choice = {**COMPLETION["choices"][0], "logprobs": logprobs}
    answer = read(reply({"choices": [choice]}), continued=False)
    assert answer.steps is not None
    assert answer.steps[0].alternatives == (("1", -0.5),)


@pytest.mark.parametrize(
    "logprobs",
    [
        None,
        {},
        {"content": None},
        {"content": [{"token": "1"}]},
        {"content": [{"token": "1", "logprob": None, "top_logprobs": [{"token": "1", "logprob": None}]}]},
        {"tokens": ["1"], "token_logprobs": [None]},
        {"tokens": [], "token_logprobs": []},
    ],
)
def test_log_probabilities_without_a_number_are_none(logprobs: object) -> None:
    choice = {**COMPLETION["choices"][0], "logprobs": logprobs}
    assert read(reply({"choices": [choice]}), continued=False).steps is None


def test_a_text_in_parts_is_one_text() -> None:
    parts = [{"type": "text", "text": "Rating:"}, {"type": "reference", "reference_ids": [1]}, {"text": " 3"}]
    answer = read(reply({"choices": [{"message": {"content": parts}}]}), continued=False)
    assert answer.text == "Rating: 3"


def test_counts_that_are_none_are_not_counted() -> None:
    usage = {"prompt_tokens": -1, "completion_tokens": "7", "prompt_tokens_details": {"cached_tokens": 10**30}}
    answer = read(reply({**COMPLETION, "usage": usage}), continued=False)
    assert (answer.tokens.prompt, answer.tokens.cached, answer.tokens.generated) == (None, None, None)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>Bad gateway</html>",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"[" * 100_000,
        {},
        {"choices": []},
        {"choices": [{}]},
        {"choices": [{"message": {"content": None}}]},
        {"choices": [{"message": {"content": ["1"]}}]},
        {"choices": [{"message": {"content": []}}]},
        {"choices": [{"message": {"content": [{"type": "image_url", "image_url": "1"}]}}]},
        {"choices": [{"message": {"content": [{"type": "text", "text": 1}]}}]},
        {"choices": [{"message": {"content": [{"type": "thinking", "thinking": "1"}]}}]},
        {"choices": [{"message": {"content": "1"}, "logprobs": {"content": [{"token": 1, "logprob": 0}]}}]},
        {"choices": [{"message": {"content": "1"}, "logprobs": {"content": [{"token": "1", "logprob": "x"}]}}]},
        {"choices": [{"message": {"content": "1"}, "logprobs": {"content": [{"token": "1", "logprob": 10**400}]}}]},
        {"choices": [{"message": {"content": "1"}, "logprobs": {"content": 5}}]},
        {"choices": [{"message": {"content": "1"}, "logprobs": {"tokens": 5}}]},
        {"choices": [{"message": {"content": "1"}, "logprobs": {"tokens": ["1"], "top_logprobs": [["1"]]}}]},
        {"choices": [{"message": {"content": "1"}, "logprobs": []}]} | {"usage": [1]},
        {"choices": [{"message": {"content": "1"}, "finish_reason": "content_filter"}]},
    ],
)
def test_what_is_no_completion_is_unparsable(body: object) -> None:
    with pytest.raises(RemoteError) as caught:
        read(reply(body), continued=False)
    assert caught.value.failure.status is Status.UNPARSABLE


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(
    part=JSON,
    place=st.sampled_from(["choices", "choice", "message", "content", "part", "logprobs", "entry", "tops", "usage"]),
)
def test_any_wrong_part_of_a_completion_is_an_answer_or_an_error(part: object, place: str) -> None:
    completion = json.loads(json.dumps(COMPLETION))
    choice = completion["choices"][0]
    where: dict[str, tuple[Any, Any]] = {
        "choices": (completion, "choices"),
        "choice": (completion["choices"], 0),
        "message": (choice, "message"),
        "content": (choice["message"], "content"),
        "part": (choice["message"], "content"),
        "logprobs": (choice, "logprobs"),
        "entry": (choice["logprobs"]["content"], 0),
        "tops": (choice["logprobs"]["content"][0], "top_logprobs"),
        "usage": (completion, "usage"),
    }
    container, key = where[place]
    container[key] = (
        [{"type": "thinking", "thinking": part}, {"type": "text", "text": part}] if place == "part" else part
    )
    with contextlib.suppress(RemoteError):
        assert isinstance(read(reply(completion), continued=True).text, str)


@pytest.mark.parametrize(
    ("status", "kind", "told"),
    [
        (301, RemoteFault.REFUSED, Status.MODEL_UNAVAILABLE),
        (308, RemoteFault.REFUSED, Status.MODEL_UNAVAILABLE),
        (400, RemoteFault.REJECTED, Status.UNPARSABLE),
        (401, RemoteFault.REFUSED, Status.MODEL_UNAVAILABLE),
        (403, RemoteFault.REFUSED, Status.MODEL_UNAVAILABLE),
        (404, RemoteFault.REFUSED, Status.MODEL_UNAVAILABLE),
        (408, RemoteFault.SERVER_ERROR, Status.UNAVAILABLE),
        (429, RemoteFault.RATE_LIMITED, Status.UNAVAILABLE),
        (500, RemoteFault.SERVER_ERROR, Status.UNAVAILABLE),
        (503, RemoteFault.SERVER_ERROR, Status.UNAVAILABLE),
        (529, RemoteFault.SERVER_ERROR, Status.UNAVAILABLE),
    ],
)
def test_what_statuses_mean(status: int, kind: RemoteFault, told: Status) -> None:
    error = error_of(reply(b"sk-secret", status, "7"), "m")
    assert error is not None
    assert (error.kind, error.failure.status) == (kind, told)
    assert "secret" not in error.failure.message
    assert error.failure.retry_after_s == (7 if kind in {RemoteFault.RATE_LIMITED, RemoteFault.SERVER_ERROR} else None)


@pytest.mark.parametrize(
    "words",
    [
        b'{"error":{"code":400,"type":"exceed_context_size_error","n_prompt_tokens":9031}}',
        b'{"error":{"code":"context_length_exceeded","message":"..."}}',
        b'{"message":"This model\'s maximum context length is 4096 tokens. However, you requested 9000"}',
    ],
)
def test_a_prompt_that_is_too_long_is_told_apart(words: bytes) -> None:
    error = error_of(reply(words, 400), "m")
    assert error is not None
    assert (error.kind, error.failure.status) == (RemoteFault.TOO_LONG, Status.INVALID_INPUT)


def test_a_quota_that_is_used_up_is_nothing_to_wait_for() -> None:
    error = error_of(reply(b'{"error":{"code":"insufficient_quota"}}', 429), "m")
    assert error is not None
    assert error.failure.status is Status.MODEL_UNAVAILABLE


def test_retry_after_is_a_number_or_a_moment() -> None:
    assert retry_after_s("3") == 3
    assert retry_after_s(" 99999999999999999999 ") == 3600
    soon = retry_after_s(email.utils.formatdate(time.time() + 100, usegmt=True))
    assert soon is not None
    assert 90 < soon <= 100
    assert retry_after_s("Wed, 21 Oct 2015 07:28:00 GMT") == 0


@given(st.text(max_size=40) | st.integers().map(str) | st.floats().map(str))
def test_any_retry_after_is_a_number_of_seconds_or_nothing(header: str) -> None:
    wait_s = retry_after_s(header)
    assert wait_s is None or (math.isfinite(wait_s) and 0 <= wait_s <= 3600)


@pytest.mark.parametrize(
    ("owner", "model", "kind"),
    [("vllm", "m", ServerKind.VLLM), ("llamacpp", "other", ServerKind.LLAMA_CPP), ("openai", "m", ServerKind.OTHER)],
)
def test_servers_are_known_by_who_owns_their_models(owner: str, model: str, kind: ServerKind) -> None:
    listed = reply({"data": [{"id": "m", "owned_by": owner}]})
    assert kind_of(listed) is kind
    assert missing_model(listed, model) is None


@pytest.mark.parametrize("body", [b"", b"{}", {"data": None}, {"data": 5}, {"data": ["m", 5, {}]}])
def test_a_list_of_models_that_is_none_says_nothing(body: object) -> None:
    assert kind_of(reply(body)) is None
    assert missing_model(reply(body), "other") is None


def test_a_model_that_is_not_listed_is_named_with_those_that_are() -> None:
    body = {"data": [{"id": f"model-{number}", "owned_by": "vllm"} for number in range(9)]}
    said = r"no model 'm', only model-0, .*model-4 and others\. Check judge_remote_model \(--judge-remote-model\)"
    error = missing_model(reply(body), "m")
    assert error is not None
    assert re.search(said, error.failure.message)
    assert error.failure.status is Status.MODEL_UNAVAILABLE
