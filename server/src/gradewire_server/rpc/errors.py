"""Everything a call can fail with, and the one table that says how it looks on the wire.

RpcError
 ├─ InvalidRequestError     the request itself is at fault; names the field and its index
 ├─ UnauthenticatedError    no token, or a wrong one
 ├─ OverloadedError         too much in flight; says when to come back
 ├─ NothingLoadedError      nothing of what the call asks for is loaded; says what is
 ├─ DeadlineExceededError   the call did not finish in time
 ├─ NotServingError         loading or shutting down; another replica may serve
 ├─ ModelReplacedError      a stream's model was replaced under it; the rest can be sent again on another stream
 └─ InternalError           a defect; the caller gets the request id, the log the details

A failure of one item or of one metric is no error of the call: it is a status of the result.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import grpc

from gradewire_proto.conventions.metadata import PUSHBACK_KEY, REQUEST_ID_KEY


class RpcError(Exception):
    """Base of what a call can fail with; its message is meant for the caller."""


class InvalidRequestError(RpcError):
    """The request cannot be understood or asks for too much.

    Attributes:
        field: Path of the field at fault, e.g. ``metrics[1].smile.preset``.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field


class UnauthenticatedError(RpcError):
    """The call carries no token of this server's."""


class OverloadedError(RpcError):
    """Too much is in flight; nothing of the call was begun.

    Attributes:
        retry_after_s: When it is worth coming back.
    """

    def __init__(self, message: str, *, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class NothingLoadedError(RpcError):
    """No metric of the call has the model that it needs."""


class DeadlineExceededError(RpcError):
    """The call did not finish within its deadline."""


class NotServingError(RpcError):
    """The server is loading or shutting down."""


class ModelReplacedError(RpcError):
    """A model that a stream named in its provenance has been replaced by another; what was sent stands."""


class InternalError(RpcError):
    """A defect of the server."""


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """How one kind of error looks on the wire.

    Attributes:
        code: Its gRPC status code.
        retry_helps: Whether the same call may go well later or elsewhere.
    """

    code: grpc.StatusCode
    retry_helps: bool


ERROR_TABLE: Final[Mapping[type[RpcError], ErrorRow]] = MappingProxyType(
    {
        InvalidRequestError: ErrorRow(grpc.StatusCode.INVALID_ARGUMENT, retry_helps=False),
        UnauthenticatedError: ErrorRow(grpc.StatusCode.UNAUTHENTICATED, retry_helps=False),
        OverloadedError: ErrorRow(grpc.StatusCode.RESOURCE_EXHAUSTED, retry_helps=True),
        NothingLoadedError: ErrorRow(grpc.StatusCode.FAILED_PRECONDITION, retry_helps=False),
        DeadlineExceededError: ErrorRow(grpc.StatusCode.DEADLINE_EXCEEDED, retry_helps=False),
        NotServingError: ErrorRow(grpc.StatusCode.UNAVAILABLE, retry_helps=True),
        ModelReplacedError: ErrorRow(grpc.StatusCode.UNAVAILABLE, retry_helps=True),
        InternalError: ErrorRow(grpc.StatusCode.INTERNAL, retry_helps=False),
    }
)


@dataclass(frozen=True, slots=True)
class WireStatus:
    """What a failed call ends with."""

    code: grpc.StatusCode
    details: str
    trailing_metadata: tuple[tuple[str, str], ...]


def to_wire(error: Exception, request_id: str) -> WireStatus:
    """Looks an error up in the table; one that is not in it is a defect, whose text stays in the server."""
    row = ERROR_TABLE.get(type(error)) if isinstance(error, RpcError) else None
    trailing: tuple[tuple[str, str], ...] = ((REQUEST_ID_KEY, request_id),)
    if row is None or isinstance(error, InternalError):
        details = f"internal error; the server's log has the details under request id {request_id}"
        return WireStatus(grpc.StatusCode.INTERNAL, details, trailing)
    if isinstance(error, OverloadedError):
        trailing = (*trailing, (PUSHBACK_KEY, str(max(1, round(error.retry_after_s * 1000)))))
    return WireStatus(row.code, str(error), trailing)
