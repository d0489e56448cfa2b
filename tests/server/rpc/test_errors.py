"""The error table, completely, and as docs/reference/errors.md has it."""

import re
from pathlib import Path

import grpc
import pytest

from gradewire_proto.wire_rules import PUSHBACK_KEY, QUOTA_KEY, REQUEST_ID_KEY
from gradewire_server.requests import errors as of_requests
from gradewire_server.requests.errors import (
    DeadlineExceededError,
    InvalidRequestError,
    ModelReplacedError,
    NothingLoadedError,
    OverloadedError,
    QuotaExceededError,
    RequestError,
    SetUnavailableError,
)
from gradewire_server.rpc import errors as of_calls
from gradewire_server.rpc.errors import (
    ERROR_TABLE,
    NotServingError,
    PermissionDeniedError,
    UnauthenticatedError,
    to_wire,
)

CODES = {
    InvalidRequestError("items[3]", "too long"): ("INVALID_ARGUMENT", False),
    UnauthenticatedError("a token is needed"): ("UNAUTHENTICATED", False),
    PermissionDeniedError("needs judge"): ("PERMISSION_DENIED", False),
    OverloadedError("full", retry_after_s=1.5): ("RESOURCE_EXHAUSTED", True),
    QuotaExceededError("used up", retry_after_s=1.5): ("RESOURCE_EXHAUSTED", True),
    NothingLoadedError("no model"): ("FAILED_PRECONDITION", False),
    DeadlineExceededError("late"): ("DEADLINE_EXCEEDED", False),
    NotServingError("loading"): ("UNAVAILABLE", True),
    ModelReplacedError("another digest"): ("UNAVAILABLE", True),
    SetUnavailableError("away"): ("UNAVAILABLE", True),
}


def test_every_error_stands_in_the_table_and_here() -> None:
    known = [*vars(of_requests).values(), *vars(of_calls).values()]
    every = {kind for kind in known if isinstance(kind, type) and issubclass(kind, RequestError)}
    assert set(ERROR_TABLE) == every - {RequestError} == {type(error) for error in CODES}


@pytest.mark.parametrize("error", CODES, ids=lambda error: type(error).__name__)
def test_code_details_and_metadata(error: RequestError) -> None:
    code, _ = CODES[error]
    status = to_wire(error, "id-1")
    assert status.code.name == code
    assert dict(status.trailing_metadata)[REQUEST_ID_KEY] == "id-1"
    assert (PUSHBACK_KEY in dict(status.trailing_metadata)) == (code == "RESOURCE_EXHAUSTED")


def test_a_quota_is_told_from_overload() -> None:
    assert QUOTA_KEY in dict(to_wire(QuotaExceededError("", retry_after_s=1), "").trailing_metadata)
    assert QUOTA_KEY not in dict(to_wire(OverloadedError("", retry_after_s=1), "").trailing_metadata)


def test_pushback_is_whole_milliseconds() -> None:
    assert dict(to_wire(OverloadedError("", retry_after_s=1.5), "").trailing_metadata)[PUSHBACK_KEY] == "1500"
    assert dict(to_wire(OverloadedError("", retry_after_s=0), "").trailing_metadata)[PUSHBACK_KEY] == "1"


@pytest.mark.parametrize("error", [RuntimeError("secret"), KeyError("secret")])
def test_what_is_not_in_the_table_leaks_nothing(error: Exception) -> None:
    status = to_wire(error, "id-2")
    assert status.code is grpc.StatusCode.INTERNAL
    assert "secret" not in status.details
    assert "id-2" in status.details


def test_documentation_has_the_same_table() -> None:
    text = Path(__file__).parents[3].joinpath("docs", "reference", "errors.md").read_text()
    rows = re.findall(r"^\| `([A-Z_]+)` \| (yes|no) \|", text, re.MULTILINE)
    assert dict(rows) == {code: "yes" if retry_helps else "no" for code, retry_helps in CODES.values()} | {
        "INTERNAL": "no"
    }
