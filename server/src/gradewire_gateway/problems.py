"""The one table from gRPC codes and result statuses to HTTP, and problem details (RFC 9457)."""

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
"""Not in any standard: nobody was left to be answered. It stands in the log alone."""
_FIELD: Final = re.compile(r"([a-z_]\w*(?:\[\d+\])?(?:\.[a-z_]\w*(?:\[\d+\])?)*): ")
_MOST_CHARACTERS: Final = 1000


@dataclass(frozen=True, slots=True)
class CodeRow:
    """The status of one gRPC code in HTTP, and the detail where the error is gRPC's own, whose text names sockets."""

    status: int
    own_words: str


_UNEXPECTED: Final = "the call failed in the gateway or on its way; the logs have it under the request id"

CODE_TABLE: Final[Mapping[grpc.StatusCode, CodeRow]] = MappingProxyType(
    {
        grpc.StatusCode.CANCELLED: CodeRow(CLIENT_CLOSED, "the call was cancelled"),
        grpc.StatusCode.UNKNOWN: CodeRow(500, _UNEXPECTED),
        grpc.StatusCode.INVALID_ARGUMENT: CodeRow(400, "the request cannot be used"),
        grpc.StatusCode.DEADLINE_EXCEEDED: CodeRow(504, "the deadline passed; Connect-Timeout-Ms sets a longer one"),
        grpc.StatusCode.NOT_FOUND: CodeRow(404, "there is no such thing on the server"),
        grpc.StatusCode.ALREADY_EXISTS: CodeRow(409, "it is there already"),
        grpc.StatusCode.PERMISSION_DENIED: CodeRow(403, "the token is not good for this"),
        grpc.StatusCode.RESOURCE_EXHAUSTED: CodeRow(429, "the server has too much to do, or the message is too large"),
        grpc.StatusCode.FAILED_PRECONDITION: CodeRow(400, "the server is not in a state for this"),
        grpc.StatusCode.ABORTED: CodeRow(409, "the call was aborted; try again"),
        grpc.StatusCode.OUT_OF_RANGE: CodeRow(400, "out of range"),
        grpc.StatusCode.UNIMPLEMENTED: CodeRow(501, "this server has no such method; it may be an older version"),
        grpc.StatusCode.INTERNAL: CodeRow(500, _UNEXPECTED),
        grpc.StatusCode.UNAVAILABLE: CodeRow(503, "the server behind the gateway does not answer; try again"),
        grpc.StatusCode.DATA_LOSS: CodeRow(500, _UNEXPECTED),
        grpc.StatusCode.UNAUTHENTICATED: CodeRow(
            401, "the header Authorization: Bearer TOKEN with a token of this server is needed"
        ),
    }
)


@dataclass(frozen=True, slots=True)
class Problem:
    """The reason why a request has no answer.

    Attributes:
        code: For programs: the gRPC code in lower case, ``invalid_argument``.
        at: The path of the wrong field, or "".
        retry_after_s: Seconds after which trying again may help; None where it is not known, or does not help.
        headers: Further ones of the answer.
        members: Further ones of the body.
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
        """Return the answer."""
        headers = dict(self.headers)
        if self.retry_after_s is not None:
            headers["retry-after"] = str(max(1, math.ceil(self.retry_after_s)))
        if self.status == HTTPStatus.UNAUTHORIZED:
            headers["www-authenticate"] = "Bearer"
        # Names and texts of the caller may hold halves of pairs, which UTF-8 cannot carry.
        content = json.dumps(self.body(request_id), ensure_ascii=False).encode(errors="replace")
        return Response(content, self.status, headers, MEDIA_TYPE)


class ProblemError(Exception):
    """The request is answered with a problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.problem = problem


def invalid(detail: str, at: str = "") -> ProblemError:
    """Return the request cannot be used; `at` is the path of the field at fault."""
    return ProblemError(Problem(400, "invalid_argument", detail, at))


def too_busy(detail: str) -> ProblemError:
    """Return the gateway has too much to do; trying again a second later may help."""
    return ProblemError(Problem(429, "resource_exhausted", detail, retry_after_s=1.0))


def problem_of(error: grpc.aio.AioRpcError) -> Problem:
    """Return what a call that failed is in HTTP."""
    if error.details() == CUT_WHILE_WRITING:
        detail = "the server ended the stream while items were sent; try again, and if it recurs, read the server's log"
        return Problem(503, "unavailable", detail)
    code = error.code()
    row = CODE_TABLE[code]
    trailing = {key: value for key, value in error.trailing_metadata() or () if isinstance(value, str)}
    # The server sends the request id with each error of its own; what gRPC's library says is for the operator.
    details = (error.details() or "") if REQUEST_ID_KEY in trailing else row.own_words
    named = _FIELD.match(details) if code is grpc.StatusCode.INVALID_ARGUMENT else None
    return Problem(row.status, code.name.lower(), details, named[1] if named else "", _retry_after_s(trailing))


def _retry_after_s(trailing: Mapping[str, str]) -> float | None:
    pushback = trailing.get(PUSHBACK_KEY, "")
    return int(pushback) / 1000 if pushback.isdecimal() else None


def _title(status: int) -> str:
    return "Client Closed Request" if status == CLIENT_CLOSED else HTTPStatus(status).phrase


def with_error(problem: Problem) -> Problem:
    """Return a problem with the member `error`, which clients of OpenAI's API read."""
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
"""Any other status is a defect."""


def check_ok(
    result: judging_pb2.CompleteResponse | judging_pb2.Decision | types_pb2.MetricResult, at: str = ""
) -> None:
    """Raise ProblemError where a result is not OK; `at` is the path of what it answers."""
    if result.status == types_pb2.STATUS_OK:
        return
    status, code = _PROBLEMS.get(result.status, (500, "internal"))
    retry_after_s = result.retry_after_s if result.HasField("retry_after_s") else None
    message = f"{at}: {result.message}" if at else result.message
    raise ProblemError(Problem(status, code, message, at, retry_after_s=retry_after_s))
