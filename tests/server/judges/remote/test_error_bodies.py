"""Error bodies of any shape: the server's words, its codes, the status and the wait that it states."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.judges.remote.error_bodies import READ_CHARACTERS, error_in_success, read_error
from gradewire_server.judges.remote.errors import Reply, unwrapped


def body(value: Any) -> bytes:
    return value if isinstance(value, bytes) else json.dumps(value).encode()


@pytest.mark.parametrize(
    ("value", "sentences"),
    [
        ({"error": {"message": "a", "metadata": {"raw": json.dumps({"error": {"message": "b"}})}}}, ("a", "b")),
        ({"error": {"message": "a", "metadata": {"raw": "b"}, "request": "secret"}}, ("a", "b")),
        ([{"error": {"message": "a"}}, {"error": {"message": "b"}}], ("a", "b")),
        ({"message": {"detail": [{"msg": "a", "loc": ["body", "b"], "input": "secret"}]}}, ("a", "body", "b")),
        ({"Message": "a"}, ("a",)),
        ({"errors": ["a", {"title": "b"}]}, ("a", "b")),
        ({"error": "a", "error_type": "validation"}, ("a",)),
        ("a", ("a",)),
        (b"a plain text", ("a plain text",)),
        (b'\xef\xbb\xbf{"message": "a"}', ("a",)),
        (b"<html>a</html>", ()),
        (b"", ()),
        (b'{"message": "a"', ()),
        ({"message": " "}, ()),
        ({"input": "secret", "ctx": {"message": "secret"}}, ()),
    ],
)
def test_sentences_are_the_servers_own_outermost_first(value: Any, sentences: tuple[str, ...]) -> None:
    assert read_error(body(value)).sentences == sentences


@pytest.mark.parametrize(
    ("error", "status"),
    [
        ({"code": 429}, 429),
        ({"code": "502"}, 502),
        ({"status": 503, "code": "unavailable"}, 503),
        ({"code": "rate_limit_exceeded"}, 429),
        ({"type": "overloaded_error", "message": "Overloaded"}, 503),
        ({"type": "authentication_error"}, 401),
        ({"type": "permission_error"}, 403),
        ({"type": "not_found_error"}, 404),
        ({"type": "invalid_request_error", "message": "upstream says no"}, 400),
        ({"code": "insufficient_quota"}, 402),
        ({"message": "Provider returned error"}, 503),
        ({"message": "The request timed out"}, 503),
        ({"message": "no"}, 400),
        ({"code": True}, 400),
        ({"code": 200}, 400),
        ({"code": 42900}, 400),
        ("server is at capacity", 503),
        ({"type": "invalid_request_error", "code": "rate_limit_exceeded"}, 429),
        ({"type": "invalid_request_error", "code": "invalid_api_key"}, 401),
        ({"type": "invalid_request_error", "code": "server_overloaded"}, 503),
        ({"type": "invalid_request_error", "message": "Error code: 429 - slow down"}, 429),
        ({"type": "invalid_request_error", "message": "at most 500 tokens"}, 400),
        ("HTTP/1.1 502 from the provider: bad request", 502),
        ("503: bad request", 503),
        ("Unsupported parameter 'timeout'", 400),
        ("Validation failed: no permission", 403),
        ([{"code": 429, "message": "slow down"}], 429),
    ],
)
def test_an_error_in_a_success_has_the_status_that_it_states_or_that_suits_its_words(error: Any, status: int) -> None:
    reply = Reply(200, body({"error": error, "choices": []}), "", "http://h/v1")
    assert unwrapped(reply).status == status


@pytest.mark.parametrize(
    "value",
    [
        {"choices": [{"message": {"content": "Rating: 2"}}], "error": {"code": 429}},
        {"choices": [{"message": {"content": 'he said "error": 429'}}]},
        {"choices": [{"message": {"content": "2"}}], "error": None},
        {"output": [{"type": "message"}], "error": {"code": 429}},
        {"content": [{"type": "text", "text": "2"}], "error": {"code": 429}},
        {"choices": [], "error": None},
        {"choices": [], "error": {}},
        b'{"error": {"code": 429}',
        {"choices": [{"message": {"content": "2"}}], "message": "slow down", "code": 429},
        {"output": [{"type": "message"}], "detail": "slow down", "code": 429},
        {"answers": {"verdict": {}}, "detail": "cached", "code": 429},
        {"answers": {"verdict": {}}, "detail": "cached", "error": ""},
        {"message": {"role": "assistant", "content": "2"}, "done": True},
        {"message": " ", "detail": None, "code": 429},
        [{"choices": [{"message": {"content": "2"}}]}],
        [],
    ],
)
def test_an_answer_with_a_remark_about_an_error_is_an_answer(value: Any) -> None:
    reply = Reply(200, body(value), "", "http://h/v1")
    assert unwrapped(reply) is reply


@pytest.mark.parametrize(
    ("value", "status"),
    [
        ({"detail": "Rate limit reached"}, 429),
        ({"detail": [{"msg": "slow down"}], "code": 429}, 429),
        ({"message": "Too many requests"}, 429),
        ({"Message": "The service is temporarily unavailable"}, 503),
        ({"choices": [], "message": "slow down", "status": 429}, 429),
        ({"object": "error", "message": "no", "code": 500}, 500),
        ({"message": "no"}, 400),
        ([{"error": {"code": 429, "message": "Quota exceeded"}}], 429),
        ([None, 5, {}, {"error": {"status": "UNAVAILABLE"}}], 503),
    ],
)
def test_an_error_in_a_success_may_stand_at_the_top_or_in_a_list(value: Any, status: int) -> None:
    assert unwrapped(Reply(200, body(value), "", "http://h/v1")).status == status


@pytest.mark.parametrize("begin", [b'{"error"', b'{"error":', b'{"choices":', b'{"choices":[', b'"error"' * 9])
def test_a_hostile_body_of_1_mib_is_looked_at_once(begin: bytes) -> None:
    blank = Reply(200, begin + b" " * ((1 << 20) - len(begin)), "", "http://h/v1")
    many = Reply(200, (begin + b" " * 40) * ((1 << 20) // (len(begin) + 40)), "", "http://h/v1")
    started_s = time.process_time()
    assert unwrapped(blank) is blank
    assert unwrapped(many) is many
    assert time.process_time() - started_s < 1


def test_only_a_success_is_unwrapped() -> None:
    reply = Reply(500, body({"error": {"code": 429}}), "", "http://h/v1")
    assert unwrapped(reply) is reply


@pytest.mark.parametrize(
    ("delay", "wait_s"), [("17s", 17), ("0.5s", 0.5), ("17", None), ("-1s", None), ("9" * 30 + "s", None), (5, None)]
)
def test_googles_delay_is_a_wait(delay: object, wait_s: float | None) -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}]
    assert read_error(body([{"error": {"code": 429, "details": details}}])).wait_s == wait_s


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["error", "message", "code", "status", "detail", "loc", "raw", "metadata", "x"]), inner
        )
    ),
    max_leaves=20,
)


@given(JSON.map(body) | st.binary(max_size=60))
def test_any_body_is_read_within_limits(content: bytes) -> None:
    read = read_error(content)
    assert len(read.words) <= READ_CHARACTERS
    assert all(isinstance(part, str) for part in (*read.sentences, *read.codes))
    assert 300 <= read.likely_status < 600
    assert read.wait_s is None or read.wait_s >= 0


@given(JSON | st.dictionaries(st.sampled_from(["choices", "error", "output", "content", "message", "detail"]), JSON))
def test_any_success_has_an_error_or_none(answer: Any) -> None:
    error = error_in_success(answer)
    assert error is None or 300 <= error.likely_status < 600


def test_what_never_ends_is_read_only_so_far() -> None:
    wide = {"errors": [{"message": f"m{number}", "errors": ["x"] * 1000} for number in range(1000)]}
    deep: Any = "m"
    for _ in range(100):
        deep = {"error": deep}
    assert len(read_error(body(wide)).sentences) < 500
    assert read_error(body(deep)).sentences == ()


@pytest.mark.parametrize(
    "answer",
    [
        {"status": "failed", "error": {"code": "rate_limit_exceeded"}, "output": [{"type": "reasoning"}]},
        {"error": {"code": 429}, "choices": [{"message": {"content": ""}, "finish_reason": "error"}]},
        {"error": {"code": 429}, "choices": [{"message": None}]},
    ],
)
def test_an_error_beside_an_empty_answer_is_read(answer: dict[str, Any]) -> None:
    assert error_in_success(answer) is not None


def test_an_error_beside_an_answer_is_no_error() -> None:
    assert error_in_success({"error": {"code": 429}, "choices": [{"message": {"content": "correct"}}]}) is None
