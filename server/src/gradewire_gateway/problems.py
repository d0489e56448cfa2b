"""The HTTP statuses for gRPC codes and result statuses, and problem details (RFC 9457)."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Final

import grpc
from starlette.responses import Response

from gradewire._transports.failures import CUT_WHILE_WRITING
from gradewire_proto.v1 import judging_pb2, types_pb2
from gradewire_proto.wire_rules import PUSHBACK_KEY, REQUEST_ID_KEY

MEDIA_TYPE: Final = "application/problem+json"
CLIENT_CLOSED: Final = 499
"""Nonstandard status of a request whose caller disconnected, for the log and the metrics."""
_FIELD: Final = re.compile(r"([a-z_]\w*(?:\[\d+\])?(?:\.[a-z_]\w*(?:\[\d+\])?)*): ")
_MOST_CHARACTERS: Final = 1000


@dataclass(frozen=True, slots=True)
class CodeRow:
    """The HTTP status for a gRPC code, and the detail that replaces the gRPC library's message."""

    status: int
    detail: str


_UNEXPECTED: Final = "the call failed in the gateway or on the way to the server; look for the request id in the logs"

CODE_TABLE: Final[Mapping[grpc.StatusCode, CodeRow]] = MappingProxyType(
    {
        grpc.StatusCode.CANCELLED: CodeRow(CLIENT_CLOSED, "the call was cancelled"),
        grpc.StatusCode.UNKNOWN: CodeRow(500, _UNEXPECTED),
        grpc.StatusCode.INVALID_ARGUMENT: CodeRow(400, "the request is invalid"),
        grpc.StatusCode.DEADLINE_EXCEEDED: CodeRow(
            504, "the deadline passed; set a longer one with Connect-Timeout-Ms"
        ),
        grpc.StatusCode.NOT_FOUND: CodeRow(404, "the server does not have an object that the request names"),
        grpc.StatusCode.ALREADY_EXISTS: CodeRow(409, "an object to create already exists on the server"),
        grpc.StatusCode.PERMISSION_DENIED: CodeRow(403, "the token does not permit this request"),
        grpc.StatusCode.RESOURCE_EXHAUSTED: CodeRow(429, "the server is overloaded, or the message is too large"),
        grpc.StatusCode.FAILED_PRECONDITION: CodeRow(400, "the server's state does not allow this request"),
        grpc.StatusCode.ABORTED: CodeRow(409, "the call was aborted; try again"),
        grpc.StatusCode.OUT_OF_RANGE: CodeRow(400, "a value is out of range"),
        grpc.StatusCode.UNIMPLEMENTED: CodeRow(501, "the server does not have this method; it may be an older version"),
        grpc.StatusCode.INTERNAL: CodeRow(500, _UNEXPECTED),
        grpc.StatusCode.UNAVAILABLE: CodeRow(503, "the server behind the gateway does not answer; try again"),
        grpc.StatusCode.DATA_LOSS: CodeRow(500, _UNEXPECTED),
        grpc.StatusCode.UNAUTHENTICATED: CodeRow(401, "send Authorization: Bearer TOKEN with a valid token"),
    }
)


@dataclass(frozen=True, slots=True)
class Problem:
    """The reason why the gateway cannot answer a request.

    Attributes:
        code: The gRPC code in lower case, such as ``invalid_argument``, for programs.
        at: The invalid field's path, or "".
        retry_after_s: Seconds after which a retry may help; None if a retry does not help or the time is unknown.
    """

    status: int
    code: str
    detail: str
    at: str = ""
    retry_after_s: float | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    members: Mapping[str, Any] = field(default_factory=dict)

    def body(self, request_id: str) -> dict[str, Any]:
        """Return the members of the problem details."""
        found: dict[str, Any] = {
            "title": _title(self.status),
            "status": self.status,
            "detail": self.detail[:_MOST_CHARACTERS],
            "code": self.code,
            "requestId": request_id,
        }
        if self.at:
            found["field"] = self.at
        if self.retry_after_s is not None:
            found["retryAfterS"] = self.retry_after_s
        return found | dict(self.members)

    def response(self, request_id: str) -> Response:
        """Return the HTTP response."""
        headers = dict(self.headers)
        if self.retry_after_s is not None:
            headers["retry-after"] = str(max(1, math.ceil(self.retry_after_s)))
        if self.status == HTTPStatus.UNAUTHORIZED:
            headers["www-authenticate"] = "Bearer"
        # The detail may quote the caller's strings, which may contain lone surrogates that UTF-8 cannot encode.
        content = json.dumps(self.body(request_id), ensure_ascii=False).encode(errors="replace")
        return Response(content, self.status, headers, MEDIA_TYPE)


class ProblemError(Exception):
    """An error that the gateway returns to the caller as a problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.problem = problem


def invalid(detail: str, at: str = "") -> ProblemError:
    """Return the error for an invalid request. `at` is the invalid field's path."""
    return ProblemError(Problem(400, "invalid_argument", detail, at))


def too_busy(detail: str) -> ProblemError:
    """Return the error for an overloaded gateway. A retry after a second may help."""
    return ProblemError(Problem(429, "resource_exhausted", detail, retry_after_s=1.0))


def problem_of(error: grpc.aio.AioRpcError) -> Problem:
    """Return the HTTP problem for a failed call."""
    if error.details() == CUT_WHILE_WRITING:
        detail = "the server ended the stream while items were sent; try again, or read the server's log"
        return Problem(503, "unavailable", detail)
    code = error.code()
    row = CODE_TABLE[code]
    trailing = {key: value for key, value in error.trailing_metadata() or () if isinstance(value, str)}
    # The server's own errors contain the request id. Other messages come from the gRPC library and name sockets.
    details = (error.details() or "") if REQUEST_ID_KEY in trailing else row.detail
    named = _FIELD.match(details) if code is grpc.StatusCode.INVALID_ARGUMENT else None
    return Problem(row.status, code.name.lower(), details, named[1] if named else "", _retry_after_s(trailing))


def _retry_after_s(trailing: Mapping[str, str]) -> float | None:
    pushback = trailing.get(PUSHBACK_KEY, "")
    return int(pushback) / 1000 if pushback.isdecimal() else None


def _title(status: int) -> str:
    return "Client Closed Request" if status == CLIENT_CLOSED else HTTPStatus(status).phrase


def with_error(problem: Problem) -> Problem:
    """Return the problem with an additional member `error` for clients of OpenAI's API."""
    error = {"message": problem.detail, "type": problem.code, "param": problem.at or None, "code": problem.code}
    return replace(problem, members={"error": error})


_PROBLEMS: Final = {
    types_pb2.STATUS_INVALID_INPUT: (400, "invalid_argument"),
    types_pb2.STATUS_INVALID_PARAMETER: (400, "invalid_argument"),
    types_pb2.STATUS_EMPTY_PREDICTION: (400, "invalid_argument"),
    types_pb2.STATUS_JUDGE_CANNOT_SEE: (400, "failed_precondition"),
    types_pb2.STATUS_MODEL_UNAVAILABLE: (400, "failed_precondition"),
    types_pb2.STATUS_TIMEOUT: (504, "deadline_exceeded"),
    types_pb2.STATUS_UNAVAILABLE: (503, "unavailable"),
}
"""The HTTP status and code for each result status that can occur. Any other result status is a defect."""


def check_ok(
    result: judging_pb2.CompleteResponse | judging_pb2.Decision | types_pb2.MetricResult, at: str = ""
) -> None:
    """Raise ProblemError if the result's status is not OK. `at` is the question's or item's path."""
    if result.status == types_pb2.STATUS_OK:
        return
    status, code = _PROBLEMS.get(result.status, (500, "internal"))
    retry_after_s = result.retry_after_s if result.HasField("retry_after_s") else None
    message = f"{at}: {result.message}" if at else result.message
    raise ProblemError(Problem(status, code, message, at, retry_after_s=retry_after_s))
