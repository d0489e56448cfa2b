"""The table from gRPC codes to HTTP, and what of an error is handed on."""

import json

import grpc
import pytest
from grpc.aio import AioRpcError, Metadata

from gradewire_gateway.problems import CODE_TABLE, Problem, problem_of


def failed(code: grpc.StatusCode, details: str, **trailing: str) -> AioRpcError:
    metadata = Metadata(*((key.replace("_", "-"), value) for key, value in trailing.items()))
    return AioRpcError(code, Metadata(), metadata, details)


@pytest.mark.parametrize("code", [code for code in grpc.StatusCode if code is not grpc.StatusCode.OK])
def test_every_code_has_a_row(code: grpc.StatusCode) -> None:
    problem = problem_of(failed(code, "said", x_request_id="1"))
    assert 400 <= problem.status < 600
    assert (problem.code, problem.detail) == (code.name.lower(), "said")


@pytest.mark.parametrize("code", CODE_TABLE)
def test_what_grpc_itself_says_stays_inside(code: grpc.StatusCode) -> None:
    problem = problem_of(failed(code, "unix:/tmp/secret: connection refused"))
    assert problem.detail == CODE_TABLE[code].detail
    assert "secret" not in json.dumps(problem.body("1"))


def test_a_stream_that_ends_while_it_is_written_may_be_tried_again() -> None:
    problem = problem_of(failed(grpc.StatusCode.INTERNAL, "Internal error from Core"))
    assert (problem.status, problem.code) == (503, "unavailable")
    assert "while items were sent" in problem.detail


@pytest.mark.parametrize(
    ("details", "field"),
    [
        ("metrics[0].smile.preset: unknown value 77", "metrics[0].smile.preset"),
        ("items: at most 5", "items"),
        ("this names no field: really", ""),
        ("Metrics: capitals are no field", ""),
    ],
)
def test_the_field_at_fault_is_named(details: str, field: str) -> None:
    problem = problem_of(failed(grpc.StatusCode.INVALID_ARGUMENT, details, x_request_id="1"))
    assert problem.at == field
    assert problem.body("1").get("field", "") == field


def test_when_to_come_back_is_said_twice() -> None:
    error = failed(grpc.StatusCode.RESOURCE_EXHAUSTED, "busy", x_request_id="1", grpc_retry_pushback_ms="1500")
    response = problem_of(error).response("1")
    assert (response.status_code, response.headers["retry-after"]) == (429, "2")
    assert json.loads(bytes(response.body))["retryAfterS"] == 1.5


def test_details_are_bounded() -> None:
    assert len(Problem(400, "invalid_argument", "x" * 5000).body("1")["detail"]) == 1000
