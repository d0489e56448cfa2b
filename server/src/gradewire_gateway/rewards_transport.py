"""The transport of reward scorers: the gateway's own channels to the server."""

import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import cast

from grpc import aio

from gradewire._transport.failures import CUT_WHILE_WRITING, error_for
from gradewire.errors import GradewireError, ServerUnreachable
from gradewire.transport import Metadata, Q, R, RpcMethod
from gradewire_gateway.problems import problem_of
from gradewire_gateway.upstream import CallOptions, Upstream
from gradewire_proto.wire_rules import REQUEST_ID_KEY


class UpstreamTransport:
    """A `gradewire.transport.Transport` over channels that it does not close.

    Each call has a request id of its own, for it may carry items of several requests.

    Args:
        upstream: The server.
        metadata: Token and host of the callers whose items it carries.
    """

    def __init__(self, upstream: Callable[[], Upstream], metadata: Metadata) -> None:
        self._upstream = upstream
        self._metadata = metadata

    async def unary(self, method: RpcMethod[Q, R], request: Q, *, timeout_s: float) -> R:
        """Return the reply of a process of the server."""
        with _translated():
            return cast("R", await self._upstream().unary(method, request, self._options(timeout_s)))

    async def stream(
        self, method: RpcMethod[Q, R], sent: Q | AsyncIterator[Q], *, timeout_s: float | None = None
    ) -> AsyncGenerator[R]:
        """Yield the replies of a process of the server."""
        with _translated():
            call = self._upstream().stream(method, sent, self._options(timeout_s))
            try:
                async for reply in call:
                    yield reply
            finally:
                call.cancel()

    async def close(self) -> None:
        """Does nothing: the channels are the gateway's."""

    def _options(self, timeout_s: float | None) -> CallOptions:
        request_id = f"rewards-{secrets.token_hex(8)}"
        return CallOptions(((REQUEST_ID_KEY, request_id), *self._metadata), timeout_s)


@contextmanager
def _translated() -> Iterator[None]:
    """Raise what a call fails with as an error of the client's."""
    try:
        yield
    except aio.AioRpcError as error:
        raise _failure(error) from error
    except aio.UsageError as error:  # the channel was closed
        raise ServerUnreachable("the gateway is stopping; try again") from error


def _failure(error: aio.AioRpcError) -> GradewireError:
    if error.details() == CUT_WHILE_WRITING:  # the next attempt is told the status
        return ServerUnreachable("the server ended the stream while items were sent; try again")
    problem = problem_of(error)
    return error_for(error.code().name, problem.detail, "", retry_after_s=problem.retry_after_s)
