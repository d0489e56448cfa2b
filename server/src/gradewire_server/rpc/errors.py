"""Map errors to gRPC status codes, and define the errors that only the transport raises.

Any exception that is not a RequestError is a defect. The caller then gets only the request ID.
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
"""The timeout for sending a final status. It is needed if a caller does not read earlier replies."""

AnyContext: TypeAlias = aio.ServicerContext[Any, Any]
Trailing: TypeAlias = tuple[tuple[str, str], ...]


class UnauthenticatedError(RequestError):
    """A call with a missing or wrong token."""

    def __init__(
        self, message: str = "metadata authorization: must be 'Bearer TOKEN' with one of this server's tokens"
    ) -> None:
        super().__init__(message)


class PermissionDeniedError(RequestError):
    """A call with a token that lacks the required scope."""


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
    """A failed call's status."""

    code: grpc.StatusCode
    details: str
    trailing_metadata: Trailing


def to_wire(error: Exception, request_id: str) -> WireStatus:
    """Return the status for an error. If `error` is a defect, hide its message."""
    code = ERROR_TABLE.get(type(error)) if isinstance(error, RequestError) else None
    trailing: Trailing = ((REQUEST_ID_KEY, request_id),)
    if code is None:
        details = f"internal error; search the server's log for request ID {request_id}"
        return WireStatus(grpc.StatusCode.INTERNAL, details, trailing)
    if isinstance(error, OverloadedError):
        trailing = (*trailing, (PUSHBACK_KEY, str(max(1, round(error.retry_after_s * 1000)))))
    if isinstance(error, QuotaExceededError):
        trailing = (*trailing, (QUOTA_KEY, "1"))
    return WireStatus(code, str(error), trailing)


async def abort(
    context: AnyContext, code: grpc.StatusCode, details: str = "", trailing_metadata: Trailing = ()
) -> NoReturn:
    """End a call with `context.abort`, then delete the exception's traceback, which would form a reference cycle."""
    try:
        await context.abort(code, details, trailing_metadata)
    except aio.AbortError as aborted:
        asyncio.get_running_loop().call_soon(_forget_traceback, aborted)
        raise


async def end_with(status: WireStatus, context: AnyContext, process_metadata: Trailing) -> NoReturn:
    """End a failed call with this status. Add `process_metadata` to the trailing metadata."""
    try:
        async with asyncio.timeout(_STATUS_FLUSH_S):
            await abort(context, status.code, status.details, (*status.trailing_metadata, *process_metadata))
    except TimeoutError:
        # gRPC will send the status when the caller continues to read.
        raise asyncio.CancelledError from None


def _forget_traceback(error: BaseException) -> None:
    error.__traceback__ = error.__context__ = None
