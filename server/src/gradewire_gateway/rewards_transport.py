"""The transport of reward scorers: the gateway's own channel to the server."""

import secrets
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable
from typing import Any, Final, TypeVar

import grpc
from google.protobuf.message import Message
from grpc import aio

from gradewire import errors
from gradewire_gateway.problems import problem_of
from gradewire_gateway.upstream import Upstream
from gradewire_proto.v1 import (
    judging_pb2,
    judging_pb2_grpc,
    models_pb2,
    models_pb2_grpc,
    references_pb2,
    references_pb2_grpc,
    scoring_pb2,
    scoring_pb2_grpc,
)
from gradewire_proto.wire_rules import REQUEST_ID_KEY

R = TypeVar("R", bound=Message)

_PASSING: Final[dict[grpc.StatusCode, type[errors.TransportError]]] = {
    grpc.StatusCode.UNAVAILABLE: errors.ServerUnreachable,
    grpc.StatusCode.DEADLINE_EXCEEDED: errors.DeadlineExceeded,
    grpc.StatusCode.RESOURCE_EXHAUSTED: errors.Overloaded,
    grpc.StatusCode.CANCELLED: errors.Overloaded,
}
_LASTING: Final[dict[grpc.StatusCode, type[errors.RequestError]]] = {
    grpc.StatusCode.INVALID_ARGUMENT: errors.InvalidRequest,
    grpc.StatusCode.FAILED_PRECONDITION: errors.NotReady,
    grpc.StatusCode.UNAUTHENTICATED: errors.AccessDenied,
    grpc.StatusCode.PERMISSION_DENIED: errors.AccessDenied,
}
"""Any other code is a defect."""
_CUT_WHILE_WRITING: Final = "Internal error from Core"
"""What gRPC reports in place of the status of a stream that the server ends while a message is being written."""


class UpstreamTransport:
    """A `gradewire.transport.Transport` over a channel that it does not close.

    Each call has a request id of its own, for it may carry items of several requests.

    Args:
        upstream: The server.
        metadata: Token and host of the callers whose items it carries.
    """

    def __init__(self, upstream: Callable[[], Upstream], metadata: tuple[tuple[str, str], ...]) -> None:
        self._upstream = upstream
        self._metadata = metadata

    async def score(self, request: scoring_pb2.ScoreRequest, *, timeout_s: float) -> scoring_pb2.ScoreResponse:
        """Calls Scoring.Score."""
        stub: Any = scoring_pb2_grpc.ScoringStub(self._upstream().channel)
        reply: scoring_pb2.ScoreResponse = await self._reply(stub.Score, request, timeout_s)
        return reply

    def score_stream(
        self, requests: AsyncIterator[scoring_pb2.ScoreStreamRequest], *, timeout_s: float | None = None
    ) -> AsyncGenerator[scoring_pb2.ScoreStreamResponse]:
        """Calls Scoring.ScoreStream."""
        stub: Any = scoring_pb2_grpc.ScoringStub(self._upstream().channel)
        return self._replies(stub.ScoreStream, requests, timeout_s)

    async def compare(self, request: judging_pb2.CompareRequest, *, timeout_s: float) -> judging_pb2.CompareResponse:
        """Calls Judging.Compare."""
        stub: Any = judging_pb2_grpc.JudgingStub(self._upstream().channel)
        reply: judging_pb2.CompareResponse = await self._reply(stub.Compare, request, timeout_s)
        return reply

    def compare_stream(
        self, requests: AsyncIterator[judging_pb2.CompareStreamRequest], *, timeout_s: float | None = None
    ) -> AsyncGenerator[judging_pb2.CompareStreamResponse]:
        """Calls Judging.CompareStream."""
        stub: Any = judging_pb2_grpc.JudgingStub(self._upstream().channel)
        return self._replies(stub.CompareStream, requests, timeout_s)

    def prepare(
        self, request: references_pb2.PrepareRequest, *, timeout_s: float
    ) -> AsyncGenerator[references_pb2.PrepareProgress]:
        """Calls References.Prepare."""
        stub: Any = references_pb2_grpc.ReferencesStub(self._upstream().channel)
        return self._replies(stub.Prepare, request, timeout_s)

    async def list_models(self, *, timeout_s: float) -> models_pb2.ListModelsResponse:
        """Calls Models.List."""
        stub: Any = models_pb2_grpc.ModelsStub(self._upstream().channel)
        reply: models_pb2.ListModelsResponse = await self._reply(stub.List, models_pb2.ListModelsRequest(), timeout_s)
        return reply

    async def close(self) -> None:
        """Does nothing: the channel is the gateway's."""

    async def _reply(self, method: Callable[..., Any], request: Message, timeout_s: float) -> Any:
        try:
            return await method(request, timeout=timeout_s, metadata=self._call_metadata())
        except aio.AioRpcError as error:
            raise _failure(error) from error
        except aio.UsageError as error:
            raise _stopping() from error

    async def _replies(
        self, method: Callable[..., Any], sent: Message | AsyncIterable[Message], timeout_s: float | None
    ) -> AsyncGenerator[Any]:
        try:
            call = method(sent, timeout=timeout_s, metadata=self._call_metadata())
            try:
                async for reply in call:
                    yield reply
            finally:
                call.cancel()
        except aio.AioRpcError as error:
            raise _failure(error) from error
        except aio.UsageError as error:
            raise _stopping() from error

    def _call_metadata(self) -> tuple[tuple[str, str], ...]:
        return ((REQUEST_ID_KEY, f"rewards-{secrets.token_hex(8)}"), *self._metadata)


def _failure(error: aio.AioRpcError) -> errors.GradewireError:
    code, problem = error.code(), problem_of(error)
    if error.details() == _CUT_WHILE_WRITING:  # the next attempt is told the status
        return errors.ServerUnreachable("the server ended the stream while items were sent; try again")
    if code in _LASTING:
        return _LASTING[code](problem.detail)
    failure = _PASSING.get(code, errors.ServerFault)
    return failure(problem.detail, retry_after_s=problem.retry_after_s)


def _stopping() -> errors.ServerUnreachable:
    """The channel was closed."""
    return errors.ServerUnreachable("the gateway is stopping; try again")
