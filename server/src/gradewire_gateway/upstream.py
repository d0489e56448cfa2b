"""The server behind the gateway: a channel to each of its processes, and the calls on them."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import grpc
from google.protobuf.message import Message
from grpc import aio

from gradewire._transport.connection_pool import ConnectionPool, ServerConnection
from gradewire._transport.grpc_transport import open_channel
from gradewire.transport import Endpoint, Tls
from gradewire_gateway.settings import UpstreamSettings
from gradewire_gateway.wire import RpcMethod
from gradewire_proto.wire_rules import STOPPING_KEY

if TYPE_CHECKING:
    from gradewire_proto.otel import OtelSpan

StreamCall: TypeAlias = "aio.UnaryStreamCall[Any, Any] | aio.StreamStreamCall[Any, Any]"
"""A call with many replies."""
_DOWN: Final = (grpc.ChannelConnectivity.TRANSIENT_FAILURE, grpc.ChannelConnectivity.SHUTDOWN)


@dataclass(frozen=True, slots=True)
class CallOptions:
    """What a request says of its call.

    Attributes:
        metadata: Token, request id, host that asks.
        timeout_s: Seconds that the caller waits; None: as long as the server's default.
        span: Of the request, where it is traced.
    """

    metadata: tuple[tuple[str, str], ...]
    timeout_s: float | None
    span: "OtelSpan | None" = None


class Upstream:
    """Calls the server, the process that has the fewest calls; made on the event loop that uses it, closed at its end.

    Args:
        settings: Address, encryption, and files of the certificates.

    Raises:
        InvalidRequest: A PEM file cannot be read.
    """

    def __init__(self, settings: UpstreamSettings) -> None:
        self.private = settings.private
        self._pool = ConnectionPool()
        for target in settings.target.split(","):
            self._pool.connections.append(ServerConnection(open_channel(Endpoint(target, tls=_tls(settings)))))

    @property
    def channel(self) -> aio.Channel:
        """The channel for a call that is not counted."""
        return self._take().channel

    async def close(self) -> None:
        """Closes the channels; calls in flight are cancelled."""
        for connection in self._pool.connections:
            await connection.channel.close()

    def unary(self, method: RpcMethod, request: Message, options: CallOptions) -> asyncio.Task[Message]:
        """Makes a call with one request and one reply, which is cancelled with the task.

        Where a process stops or is lost, another one is asked: no harm is done where both do the work. The task raises
        AioRpcError as the last one did, and UsageError where the channel is closed.
        """
        return asyncio.create_task(self._unary(method, request, options))

    def stream(
        self, method: RpcMethod, sent: Message | AsyncIterator[Message] | None, options: CallOptions
    ) -> StreamCall:
        """Begin a call with many replies; of None the requests are written to it."""
        connection = self._take()
        call: StreamCall = connection.start(method, sent, timeout_s=options.timeout_s, metadata=options.metadata)
        connection.calls += 1

        def on_end(_call: object) -> None:
            connection.calls -= 1

        call.add_done_callback(on_end)
        return call

    async def _unary(self, method: RpcMethod, request: Message, options: CallOptions) -> Message:
        ends_s = None if options.timeout_s is None else time.monotonic() + options.timeout_s
        processes = len(self._pool.connections)
        for tries_left in reversed(range(processes)):
            connection = self._take()
            left_s = None if ends_s is None else ends_s - time.monotonic()
            call = connection.start(method, request, timeout_s=left_s, metadata=options.metadata)
            connection.calls += 1
            try:
                reply: Message = await call
                if processes > 1 and any(key == STOPPING_KEY for key, _ in await call.trailing_metadata()):
                    self._pool.failed(connection)
            except aio.AioRpcError as error:
                if error.code() is not grpc.StatusCode.UNAVAILABLE or not tries_left:
                    raise
                self._pool.failed(connection)
            else:
                return reply
            finally:
                connection.calls -= 1
        raise AssertionError("a server has at least one process")

    def _take(self) -> ServerConnection:
        """Return the connection for the next call; while there are others, none that stops or cannot be reached."""
        if len(self._pool.connections) > 1:
            for each in self._pool.connections:
                if each.channel.get_state(try_to_connect=True) in _DOWN:
                    self._pool.failed(each)
        return self._pool.least_loaded()


class CallEndedError(Exception):
    """The call takes no more messages; reading it tells how it ended."""


async def write(call: "aio.StreamStreamCall[Any, Any]", message: Message) -> None:
    """Write a message; raises CallEndedError where the call has ended."""
    try:
        await call.write(message)
    except (aio.AioRpcError, asyncio.InvalidStateError) as error:
        raise CallEndedError from error


async def done_writing(call: "aio.StreamStreamCall[Any, Any]") -> None:
    """Says that no more messages come; raises as `write`."""
    try:
        await call.done_writing()
    except (aio.AioRpcError, aio.InternalError, asyncio.InvalidStateError) as error:
        raise CallEndedError from error


def _tls(settings: UpstreamSettings) -> Tls | None:
    if not settings.tls:
        return None
    ca, cert, key = (Path(path) if path else None for path in (settings.ca, settings.cert, settings.key))
    return Tls(root_certificates=ca, certificate_chain=cert, private_key=key, server_name=settings.server_name or None)
