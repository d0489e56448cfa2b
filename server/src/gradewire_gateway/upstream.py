"""Calls to the server behind the gateway, and the transport through which reward scorers make calls."""

import asyncio
import secrets
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import grpc
from google.protobuf.message import Message
from grpc import aio

from gradewire._transports.connection_pool import ConnectionPool, ServerConnection
from gradewire._transports.failures import error_for
from gradewire._transports.grpc_transport import open_channel
from gradewire.errors import GradewireError, ServerUnreachable
from gradewire.transport import Endpoint, Metadata, Q, R, RpcMethod, Tls
from gradewire_gateway.problems import problem_of
from gradewire_gateway.settings import UpstreamSettings
from gradewire_proto.wire_rules import ACCEPTED_KEY, AUTHORIZATION_KEY, REQUEST_ID_KEY, STOPPING_KEY

if TYPE_CHECKING:
    from gradewire_proto.tracing.otel import OtelSpan


Sent: TypeAlias = Message | bytes
"""A message, or a serialised message for an `unparsed` method."""
StreamCall: TypeAlias = "aio.UnaryStreamCall[Any, Any] | aio.StreamStreamCall[Any, Any]"
"""A call with many replies."""
_ACCEPTED_S: Final = 5.0
"""Maximum number of seconds to wait until the server accepts a call."""
_ENDED_S: Final = 1.0
"""Maximum number of seconds to wait until a refused call ends."""
_DOWN: Final = (grpc.ChannelConnectivity.TRANSIENT_FAILURE, grpc.ChannelConnectivity.SHUTDOWN)


@dataclass(frozen=True, slots=True)
class CallOptions:
    """The options for a request's call. Without `timeout_s`, the server's default deadline applies."""

    metadata: tuple[tuple[str, str], ...]
    timeout_s: float | None
    span: "OtelSpan | None" = None


_MOST_TOKENS: Final = 1024


class AcceptedTokens:
    """The tokens that the server accepted most recently. Empty until the server is known to require tokens."""

    def __init__(self, *, asked: bool) -> None:
        self._asked = asked
        self._found: OrderedDict[str, None] = OrderedDict()

    def __contains__(self, authorization: str) -> bool:
        return authorization in self._found

    def note(self, metadata: Metadata, code: grpc.StatusCode) -> None:
        """Record a call's result code for the token in the call's metadata."""
        authorization = dict(metadata).get(AUTHORIZATION_KEY, "")
        if code is grpc.StatusCode.UNAUTHENTICATED:
            self._asked = True
            self._found.pop(authorization, None)
        elif code is grpc.StatusCode.OK and self._asked and authorization:
            self._found[authorization] = None
            self._found.move_to_end(authorization)
            if len(self._found) > _MOST_TOKENS:
                self._found.popitem(last=False)


class Upstream:
    """The connections to the server's processes. Each call uses the process with the fewest calls.

    Create and close an `Upstream` on the event loop that uses it.

    Raises:
        InvalidRequest: A PEM file cannot be read.
    """

    def __init__(self, settings: UpstreamSettings) -> None:
        self.private = settings.private
        self.tokens = AcceptedTokens(asked=settings.asks_tokens)
        self._pool = ConnectionPool()
        for target in settings.target.split(","):
            self._pool.connections.append(ServerConnection(open_channel(Endpoint(target, tls=_tls(settings)))))

    @property
    def channel(self) -> aio.Channel:
        """A channel for calls that do not count toward a process's load."""
        return self._take().channel

    async def close(self) -> None:
        """Close the channels, and cancel the calls in flight."""
        for connection in self._pool.connections:
            await connection.channel.close()

    def unary(self, method: RpcMethod[Any, Any], request: Sent, options: CallOptions) -> asyncio.Task[Any]:
        """Start a call with one request and one reply. Cancelling the task cancels the call.

        If a process stops or is lost, a second process gets the request. Doing the work twice does no harm. The task
        raises the last process's AioRpcError, or UsageError if the channel is closed.
        """
        return asyncio.create_task(self._unary(method, request, options))

    def stream(
        self, method: RpcMethod[Any, Any], sent: Sent | AsyncIterator[Message] | None, options: CallOptions
    ) -> StreamCall:
        """Start a call with many replies. If `sent` is None, write the requests to the returned call."""
        connection = self._take()
        call: StreamCall = connection.start(method, sent, timeout_s=options.timeout_s, metadata=options.metadata)
        connection.calls += 1

        def on_end(_call: object) -> None:
            connection.calls -= 1

        call.add_done_callback(on_end)
        return call

    async def _unary(self, method: RpcMethod[Any, Any], request: Sent, options: CallOptions) -> Any:
        ends_s = None if options.timeout_s is None else time.monotonic() + options.timeout_s
        tried: list[ServerConnection] = []
        while True:
            connection = self._take(tried)
            tried.append(connection)
            left_s = None if ends_s is None else ends_s - time.monotonic()
            call = connection.start(method, request, timeout_s=left_s, metadata=options.metadata)
            connection.calls += 1
            try:
                reply = await call
                if len(self._pool.connections) > 1 and any(
                    key == STOPPING_KEY for key, _ in await call.trailing_metadata()
                ):
                    self._pool.failed(connection)
            except aio.AioRpcError as error:
                self.tokens.note(options.metadata, error.code())
                if error.code() is not grpc.StatusCode.UNAVAILABLE or len(tried) == len(self._pool.connections):
                    raise
                self._pool.failed(connection)
            else:
                self.tokens.note(options.metadata, grpc.StatusCode.OK)
                return reply
            finally:
                connection.calls -= 1

    def _take(self, tried: Collection[ServerConnection] = ()) -> ServerConnection:
        """Return a connection for the next call. If possible, avoid `tried` and processes that are stopping or down."""
        if len(self._pool.connections) > 1:
            for each in self._pool.connections:
                if each.channel.get_state(try_to_connect=True) in _DOWN:
                    self._pool.failed(each)
        return self._pool.least_loaded(tried=tried)


class CallClosedError(Exception):
    """Raised when a call accepts no more messages. Read the call to get its result."""


async def accepted(call: StreamCall) -> None:
    """Wait until the server accepts a call; raise CallClosedError if the server refuses the call.

    An older server does not send `ACCEPTED_KEY` when it accepts a call. After a few seconds, the call therefore counts
    as accepted.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(_ACCEPTED_S):
            if ACCEPTED_KEY in {key for key, _ in await call.initial_metadata()}:
                return
    ended = asyncio.ensure_future(call.code())
    await asyncio.wait((ended,), timeout=_ENDED_S)
    if ended.cancel():
        return
    raise CallClosedError


@contextmanager
def writing() -> Iterator[None]:
    """Raise CallClosedError if the context's code writes to a call that has ended."""
    try:
        yield
    except (aio.AioRpcError, aio.InternalError, asyncio.InvalidStateError) as error:
        raise CallClosedError from error


def _tls(settings: UpstreamSettings) -> Tls | None:
    if not settings.tls:
        return None
    ca, cert, key = (Path(path) if path else None for path in (settings.ca, settings.cert, settings.key))
    return Tls(root_certificates=ca, certificate_chain=cert, private_key=key, server_name=settings.server_name or None)


class UpstreamTransport:
    """A `gradewire.transport.Transport` that uses the gateway's channels without closing them.

    Each call gets a new request id, because a call may contain items from several requests.
    """

    def __init__(self, upstream: Callable[[], Upstream], metadata: Metadata) -> None:
        self._upstream = upstream
        self._metadata = metadata

    async def unary(self, method: RpcMethod[Q, R], request: Q, *, timeout_s: float) -> R:
        """Return the server's reply."""
        with _translated():
            return cast("R", await self._upstream().unary(method, request, self._options(timeout_s)))

    async def stream(
        self, method: RpcMethod[Q, R], sent: Q | AsyncIterator[Q], *, timeout_s: float | None = None
    ) -> AsyncGenerator[R]:
        """Yield the server's replies."""
        with _translated():
            call = self._upstream().stream(method, sent, self._options(timeout_s))
            try:
                async for reply in call:
                    yield reply
            finally:
                call.cancel()

    async def close(self) -> None:
        """Do nothing, because the gateway closes the channels."""

    def _options(self, timeout_s: float | None) -> CallOptions:
        request_id = f"rewards-{secrets.token_hex(8)}"
        return CallOptions(((REQUEST_ID_KEY, request_id), *self._metadata), timeout_s)


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except aio.AioRpcError as error:
        raise _failure(error) from error
    except aio.UsageError as error:  # the channel was closed
        raise ServerUnreachable("the gateway is stopping; try again") from error


def _failure(error: aio.AioRpcError) -> GradewireError:
    problem = problem_of(error)
    return error_for(problem.code.upper(), problem.detail, "", retry_after_s=problem.retry_after_s)
