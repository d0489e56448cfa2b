"""The transport to a gRPC server, and the channels that it opens."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from zlib import crc32

import grpc
import grpc.aio
from google.protobuf.message import Message

from gradewire import errors
from gradewire._tracing import request_trace
from gradewire._transports.connection_pool import ConnectionPool, ServerConnection, process_of
from gradewire._transports.failures import Encryption, encryption_at, is_cut_off, mismatch, translated
from gradewire.transport import Endpoint, Metadata, Q, R, RpcMethod
from gradewire_proto.v1 import scoring_pb2
from gradewire_proto.wire_rules import AUTHORIZATION_KEY, PROCESS_KEY, STOPPING_KEY, bearer

_CHANNEL_OPTIONS: Final[tuple[tuple[str, str | int], ...]] = (
    ("grpc.service_config", json.dumps({"loadBalancingConfig": [{"round_robin": {}}]})),
    ("grpc.use_local_subchannel_pool", 1),  # gives each channel a separate connection
    ("grpc.enable_retries", 0),  # `Retries` replaces gRPC's retries
    ("grpc.max_send_message_length", -1),  # the client splits requests by the server's limits
    ("grpc.max_receive_message_length", 64 << 20),
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    # Calls between two connection attempts fail at once, so the attempts must follow each other quickly.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.min_reconnect_backoff_ms", 5_000),  # limits a connection attempt to a host that never answers
    ("grpc.dns_min_time_between_resolutions_ms", 2_000),  # finds a server whose address has changed
)


def open_channel(
    endpoint: Endpoint, channel_options: Sequence[tuple[str, str | int]] = _CHANNEL_OPTIONS
) -> grpc.aio.Channel:
    """Return a channel to the endpoint without connecting. The caller needs a running event loop.

    Raises:
        InvalidRequest: A file in `tls` cannot be read.
    """
    if endpoint.tls is None:
        return grpc.aio.insecure_channel(endpoint.address, options=channel_options)
    tls = endpoint.tls
    name = tls.server_name
    options = (*channel_options, ("grpc.ssl_target_name_override", name)) if name else channel_options
    files = map(_read, (tls.root_certificates, tls.private_key, tls.certificate_chain))
    return grpc.aio.secure_channel(endpoint.address, grpc.ssl_channel_credentials(*files), options=options)


def _read(path: Path | None) -> bytes | None:
    if path is None:
        return None
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise errors.InvalidRequest(f"tls: {path} cannot be read: {error.strerror}") from None


class GrpcTransport:
    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._address = endpoint.address
        self._encryption: Encryption = "unknown"
        self._metadata = ((AUTHORIZATION_KEY, bearer(endpoint.token)),) if endpoint.token else None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pool = ConnectionPool(endpoint.connections)
        self._retired: set[ServerConnection] = set()
        self._has_answered = False

    async def unary(self, method: RpcMethod[Q, R], request: Q, *, timeout_s: float) -> R:
        """Return the reply. If a server process is overloaded, try one more process."""
        content = _content(request)
        connection = self._connection(content)
        ends_s = time.monotonic() + timeout_s
        try:
            return await self._reply(connection, method, request, timeout_s)
        except errors.Overloaded as error:
            left_s = ends_s - time.monotonic()
            if error.of_quota or not self._pool.refused(connection, error.retry_after_s) or left_s <= 0:
                raise
        return await self._reply(self._connection(content), method, request, left_s)

    async def stream(
        self, method: RpcMethod[Q, R], sent: Q | AsyncIterator[Q], *, timeout_s: float | None = None
    ) -> AsyncGenerator[R]:
        """Yield the replies. The call starts when the caller requests the first reply."""
        connection = self._connection()
        async with self._in_flight(method, connection) as metadata:
            # The call must not start earlier, because a generator that is never iterated would never end the call.
            call = connection.start(method, sent, timeout_s=timeout_s, metadata=metadata)
            try:
                async for reply in call:
                    self._has_answered = True
                    yield reply
                self._learn(connection, await call.trailing_metadata())
            finally:
                call.cancel()

    async def close(self) -> None:
        for connection in (*self._pool.connections, *self._retired):
            await connection.channel.close()

    def _connection(self, content: int | None = None) -> ServerConnection:
        # A channel belongs to its loop, but a program can call asyncio.run() twice.
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._pool, self._retired = loop, ConnectionPool(self._endpoint.connections), set()
        if (surplus := self._pool.surplus()) is not None:
            self._retire(surplus)
        if self._pool.wants_another:
            self._pool.connections.append(ServerConnection(open_channel(self._endpoint)))
        return self._pool.least_loaded(content)

    def _learn(self, connection: ServerConnection, said: Iterable[tuple[str, str | bytes]]) -> None:
        """Record which process the connection leads to, and retire the connection if that process is stopping."""
        connection.process_known = True
        for key, value in said:
            if key == PROCESS_KEY:
                connection.process = process_of(value)
            elif key == STOPPING_KEY:
                self._retire(connection)

    def _retire(self, connection: ServerConnection) -> None:
        self._pool.retire(connection)
        self._retired.add(connection)

    @asynccontextmanager
    async def _in_flight(
        self, method: RpcMethod[Any, Any], connection: ServerConnection
    ) -> AsyncGenerator[Metadata | None]:
        """Trace and count a call, and yield its metadata. If the call fails, raise an error from `gradewire.errors`."""
        with request_trace(method.path[1:], self._address) as trace:
            connection.calls += 1
            try:
                yield trace.metadata(self._metadata)
            except grpc.aio.AioRpcError as error:
                trace.answered_by(error.code().name)
                failure = await self._failure(error, connection)
                # gRPC's error explains only a defect of the server. It stays the context of all other errors.
                raise failure from (error if isinstance(failure, errors.ServerFault) else None)
            finally:
                connection.calls -= 1
                over = {each for each in self._retired if each.is_over}
                self._retired -= over
                for each in over:
                    await each.channel.close()

    async def _reply(self, connection: ServerConnection, method: RpcMethod[Q, R], request: Q, left_s: float) -> R:
        async with self._in_flight(method, connection) as metadata:
            call = connection.start(method, request, timeout_s=left_s, metadata=metadata)
            reply: R = await call
            if connection.may_move:
                self._learn(connection, await call.trailing_metadata())
        self._has_answered = True
        return reply

    async def _failure(self, error: grpc.aio.AioRpcError, connection: ServerConnection) -> errors.GradewireError:
        failure = translated(error, self._address, has_answered=self._has_answered)
        said = error.trailing_metadata()
        if isinstance(failure, errors.ServerUnreachable):
            self._learn(connection, said)
            if PROCESS_KEY not in said:  # no server process answered the call
                self._pool.failed(connection)
            if connection.retired:
                self._retired.add(connection)
        elif PROCESS_KEY in said:
            self._learn(connection, said)
        if not self._has_answered and is_cut_off(failure):
            if self._encryption == "unknown":  # the server may have been starting when this failed
                self._encryption = await asyncio.to_thread(encryption_at, self._address)
            if wrong := mismatch(self._endpoint, self._encryption):
                failure = errors.ServerUnreachable(wrong)
                failure.may_pass = False
        return failure


def _content(request: Message) -> int | None:
    """Return a hash of a call's only item, which is the same in all programs. Return None for all other calls."""
    if not isinstance(request, scoring_pb2.ScoreRequest) or len(request.items) != 1:
        return None
    item = request.items[0]
    return crc32("\n".join((item.prediction, item.question, *item.references)).encode())
