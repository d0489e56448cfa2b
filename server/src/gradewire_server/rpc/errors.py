"""The one table that says how each error of a call looks on the wire; what only a transport can say is defined here.

RequestError                the rest of its kinds: requests/errors.py
 ├─ UnauthenticatedError    no token, or a wrong one
 ├─ PermissionDeniedError   a token that is not good for this; names the scope that is needed
 └─ NotServingError         loading or shutting down; another replica may serve

Any other error is a defect: the caller gets the request id, the log the details.
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
"""Seconds to wait for the final status to be flushed; it stands behind replies that the caller may never read."""

AnyContext: TypeAlias = aio.ServicerContext[Any, Any]
Trailing: TypeAlias = tuple[tuple[str, str], ...]


class UnauthenticatedError(RequestError):
    """The call carries no token of this server's."""

    def __init__(
        self, message: str = "metadata authorization: 'Bearer TOKEN' with a token of this server is needed"
    ) -> None:
        super().__init__(message)


class PermissionDeniedError(RequestError):
    """The call's token is known and not good for what the call asks."""


class NotServingError(RequestError):
    """The server is loading or shutting down."""


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
    """The status that a failed call ends with."""

    code: grpc.StatusCode
    details: str
    trailing_metadata: Trailing


def to_wire(error: Exception, request_id: str) -> WireStatus:
    """Looks an error up in the table; one that is not in it is a defect, whose text stays in the server."""
    code = ERROR_TABLE.get(type(error)) if isinstance(error, RequestError) else None
    trailing: Trailing = ((REQUEST_ID_KEY, request_id),)
    if code is None:
        details = f"internal error; the server's log has the details under request id {request_id}"
        return WireStatus(grpc.StatusCode.INTERNAL, details, trailing)
    if isinstance(error, OverloadedError):
        trailing = (*trailing, (PUSHBACK_KEY, str(max(1, round(error.retry_after_s * 1000)))))
    if isinstance(error, QuotaExceededError):
        trailing = (*trailing, (QUOTA_KEY, "1"))
    return WireStatus(code, str(error), trailing)


async def abort(
    context: AnyContext, code: grpc.StatusCode, details: str = "", trailing_metadata: Trailing = ()
) -> NoReturn:
    """Ends a call; as `context.abort`, without a trace of it.

    gRPC keeps the exception with the call, and its traceback leads to the call. Thousands of refused calls would be
    left to Python's collector, which takes a tenth of a second for them. Once this step is over, nobody reads it.
    """
    try:
        await context.abort(code, details, trailing_metadata)
    except aio.AbortError as aborted:
        asyncio.get_running_loop().call_soon(_forget_traceback, aborted)
        raise


async def end_with(status: WireStatus, context: AnyContext, of_process: Trailing) -> NoReturn:
    """Ends a failed call with its status, and tells the caller about this process."""
    try:
        async with asyncio.timeout(_STATUS_FLUSH_S):
            await abort(context, status.code, status.details, (*status.trailing_metadata, *of_process))
    except TimeoutError:
        # gRPC has the status and delivers it once the caller reads on.
        raise asyncio.CancelledError from None


def _forget_traceback(error: BaseException) -> None:
    error.__traceback__ = error.__context__ = None
