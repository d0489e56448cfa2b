"""Map call errors to gRPC codes, and define the errors that only a transport raises.

RequestError                requests/errors.py has its other subclasses
 ├─ UnauthenticatedError    the token is missing or wrong
 ├─ PermissionDeniedError   the token lacks the required scope, which the message names
 └─ NotServingError         the server is loading or shutting down; another replica may be ready

Any other exception is a defect. The caller then gets the request ID, and the log contains the details.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, NoReturn, TypeAlias

import grpc
from grpc import aio

from gradewire_proto.wire_rules import PUSHBACK_KEY, QUOTA_KEY, REQUEST_ID_KEY
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

_STATUS_FLUSH_S: Final = 1.0
"""Timeout for sending the final status. gRPC sends it after replies that the caller may never read."""

AnyContext: TypeAlias = aio.ServicerContext[Any, Any]
Trailing: TypeAlias = tuple[tuple[str, str], ...]


class UnauthenticatedError(RequestError):
    """A call without a valid token."""

    def __init__(
        self, message: str = "metadata authorization: send 'Bearer TOKEN' with a token of this server"
    ) -> None:
        super().__init__(message)


class PermissionDeniedError(RequestError):
    """A call whose token lacks the required scope."""


class NotServingError(RequestError):
    """A call to a server that is loading or shutting down."""


ERROR_TABLE: Final[Mapping[type[RequestError], grpc.StatusCode]] = MappingProxyType(
    {
        InvalidRequestError: grpc.StatusCode.INVALID_ARGUMENT,
        UnauthenticatedError: grpc.StatusCode.UNAUTHENTICATED,
        PermissionDeniedError: grpc.StatusCode.PERMISSION_DENIED,
        OverloadedError: grpc.StatusCode.RESOURCE_EXHAUSTED,
        QuotaExceededError: grpc.StatusCode.RESOURCE_EXHAUSTED,
        NothingLoadedError: grpc.StatusCode.FAILED_PRECONDITION,
        DeadlineExceededError: grpc.StatusCode.DEADLINE_EXCEEDED,
        NotServingError: grpc.StatusCode.UNAVAILABLE,
        ModelReplacedError: grpc.StatusCode.UNAVAILABLE,
        SetUnavailableError: grpc.StatusCode.UNAVAILABLE,
    }
)


@dataclass(frozen=True, slots=True)
class WireStatus:
    """The status of a failed call."""

    code: grpc.StatusCode
    details: str
    trailing_metadata: Trailing


def to_wire(error: Exception, request_id: str) -> WireStatus:
    """Return the status for an error. If the error is not in the table, the status does not contain its message."""
    code = ERROR_TABLE.get(type(error)) if isinstance(error, RequestError) else None
    trailing: Trailing = ((REQUEST_ID_KEY, request_id),)
    if code is None:
        details = f"internal error; see request ID {request_id} in the server's log"
        return WireStatus(grpc.StatusCode.INTERNAL, details, trailing)
    if isinstance(error, OverloadedError):
        trailing = (*trailing, (PUSHBACK_KEY, str(max(1, round(error.retry_after_s * 1000)))))
    if isinstance(error, QuotaExceededError):
        trailing = (*trailing, (QUOTA_KEY, "1"))
    return WireStatus(code, str(error), trailing)


async def abort(
    context: AnyContext, code: grpc.StatusCode, details: str = "", trailing_metadata: Trailing = ()
) -> NoReturn:
    """End a call like `context.abort`, but drop the exception's traceback.

    gRPC keeps the exception with the call, and the traceback refers to the call. Without this, Python's garbage
    collector would need 0.1 s to free thousands of refused calls. Nobody reads the traceback later.
    """
    try:
        await context.abort(code, details, trailing_metadata)
    except aio.AbortError as aborted:
        asyncio.get_running_loop().call_soon(_forget_traceback, aborted)
        raise


async def end_with(status: WireStatus, context: AnyContext, of_process: Trailing) -> NoReturn:
    """End a failed call with its status and the metadata about this process."""
    try:
        async with asyncio.timeout(_STATUS_FLUSH_S):
            await abort(context, status.code, status.details, (*status.trailing_metadata, *of_process))
    except TimeoutError:
        # gRPC has the status, and sends it when the caller continues to read.
        raise asyncio.CancelledError from None


def _forget_traceback(error: BaseException) -> None:
    error.__traceback__ = error.__context__ = None
