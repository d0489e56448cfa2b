"""The transport over gRPC, and its channels."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar
from zlib import crc32

import grpc
import grpc.aio

from gradewire import errors
from gradewire._tracing import request_trace
from gradewire._transport.connection_pool import ConnectionPool, ServerConnection, process_of
from gradewire._transport.failures import Encryption, encryption_at, is_cut_off, mismatch, translated
from gradewire.transport import Endpoint, Metadata, Tls
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
from gradewire_proto.wire_rules import (
    AUTHORIZATION_KEY,
    JUDGING,
    MODELS,
    PROCESS_KEY,
    REFERENCES,
    SCORING,
    STOPPING_KEY,
    bearer,
)


def open_channel(endpoint: Endpoint, options: Sequence[tuple[str, str | int]]) -> grpc.aio.Channel:
    """A channel to the endpoint, encrypted as it says; nothing is connected yet. Needs a running event loop.

    Raises:
        InvalidRequest: A file of its `tls` cannot be read.
    """
    if endpoint.tls is None:
        channel = grpc.aio.insecure_channel(endpoint.address, options=options)
    else:
        channel = grpc.aio.secure_channel(
            endpoint.address, _credentials(endpoint.tls), options=(*options, *_overrides(endpoint.tls))
        )
    return channel


def _credentials(tls: Tls) -> grpc.ChannelCredentials:
    return grpc.ssl_channel_credentials(
        _read(tls.root_certificates), _read(tls.private_key), _read(tls.certificate_chain)
    )


def _read(path: Path | None) -> bytes | None:
    if path is None:
        return None
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise errors.InvalidRequest(f"tls: {path} cannot be read: {error.strerror}") from error


def _overrides(tls: Tls) -> tuple[tuple[str, str], ...]:
    return (("grpc.ssl_target_name_override", tls.server_name),) if tls.server_name else ()


_MAX_REPLY_BYTES = 64 * 1024 * 1024

_SERVICE_CONFIG: dict[str, list[dict[str, dict[str, str]]]] = {"loadBalancingConfig": [{"round_robin": {}}]}
_CHANNEL_OPTIONS: tuple[tuple[str, str | int], ...] = (
    ("grpc.service_config", json.dumps(_SERVICE_CONFIG)),
    ("grpc.use_local_subchannel_pool", 1),  # else all channels to one address share a connection
    ("grpc.enable_retries", 0),  # `retries` repeats, until the deadline
    ("grpc.max_send_message_length", -1),  # the client cuts its chunks to what the server says it takes
    ("grpc.max_receive_message_length", _MAX_REPLY_BYTES),
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    # Between attempts to connect calls fail at once, so a server is found again so long after it came back.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.min_reconnect_backoff_ms", 5_000),  # the longest attempt to connect: no packet comes back from a wrong host
    ("grpc.dns_min_time_between_resolutions_ms", 2_000),  # a server that was moved has another address
)

Reply = TypeVar("Reply")


@dataclass(slots=True)
class _Stubs:
    channel: grpc.aio.Channel
    scoring: "scoring_pb2_grpc.ScoringAsyncStub"
    references: "references_pb2_grpc.ReferencesAsyncStub"
    models: "models_pb2_grpc.ModelsAsyncStub"
    judging: "judging_pb2_grpc.JudgingAsyncStub"


_Start: TypeAlias = Callable[[_Stubs, Metadata | None, float], grpc.aio.UnaryUnaryCall[Any, Reply]]
"""Starts a call that has so many seconds."""


class GrpcTransport:
    """Calls a gradewire server.

    Args:
        endpoint: The server.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._address = endpoint.address
        self._encryption: Encryption = "unknown"
        self._metadata = ((AUTHORIZATION_KEY, bearer(endpoint.token)),) if endpoint.token else None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._spread: ConnectionPool[_Stubs] = ConnectionPool(endpoint.connections)
        self._retired: set[ServerConnection[_Stubs]] = set()
        self._has_answered = False

    async def score(self, request: scoring_pb2.ScoreRequest, *, timeout_s: float) -> scoring_pb2.ScoreResponse:
        """Calls Scoring.Score."""
        return await self._reply(
            f"{SCORING}/Score",
            lambda stubs, metadata, left_s: stubs.scoring.Score(request, timeout=left_s, metadata=metadata),
            timeout_s,
            content=_content(request),
        )

    def score_stream(
        self, requests: AsyncIterator[scoring_pb2.ScoreStreamRequest], *, timeout_s: float | None = None
    ) -> AsyncGenerator[scoring_pb2.ScoreStreamResponse]:
        """Calls Scoring.ScoreStream."""
        return self._replies(
            f"{SCORING}/ScoreStream",
            lambda stubs, metadata: stubs.scoring.ScoreStream(requests, timeout=timeout_s, metadata=metadata),
        )

    async def compare(self, request: judging_pb2.CompareRequest, *, timeout_s: float) -> judging_pb2.CompareResponse:
        """Calls Judging.Compare."""
        return await self._reply(
            f"{JUDGING}/Compare",
            lambda stubs, metadata, left_s: stubs.judging.Compare(request, timeout=left_s, metadata=metadata),
            timeout_s,
        )

    def compare_stream(
        self, requests: AsyncIterator[judging_pb2.CompareStreamRequest], *, timeout_s: float | None = None
    ) -> AsyncGenerator[judging_pb2.CompareStreamResponse]:
        """Calls Judging.CompareStream."""
        return self._replies(
            f"{JUDGING}/CompareStream",
            lambda stubs, metadata: stubs.judging.CompareStream(requests, timeout=timeout_s, metadata=metadata),
        )

    def prepare(
        self, request: references_pb2.PrepareRequest, *, timeout_s: float
    ) -> AsyncGenerator[references_pb2.PrepareProgress]:
        """Calls References.Prepare."""
        return self._replies(
            f"{REFERENCES}/Prepare",
            lambda stubs, metadata: stubs.references.Prepare(request, timeout=timeout_s, metadata=metadata),
        )

    async def list_models(self, *, timeout_s: float) -> models_pb2.ListModelsResponse:
        """Calls Models.List."""
        request = models_pb2.ListModelsRequest()
        return await self._reply(
            f"{MODELS}/List",
            lambda stubs, metadata, left_s: stubs.models.List(request, timeout=left_s, metadata=metadata),
            timeout_s,
        )

    async def close(self) -> None:
        """Closes the connections; calls in flight are cancelled."""
        for connection in (*self._spread.connections, *self._retired):
            await connection.carrier.channel.close()

    def _connection(self, content: int | None = None) -> ServerConnection[_Stubs]:
        """The connection for the next call; `content` as for `Spread.least_loaded`."""
        # A channel belongs to its loop; a program that calls asyncio.run() twice comes with another one.
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._spread, self._retired = loop, ConnectionPool(self._endpoint.connections), set()
        if (surplus := self._spread.surplus()) is not None:
            self._retire(surplus)
        if self._spread.wants_another:
            self._spread.connections.append(ServerConnection(self._open()))
        return self._spread.least_loaded(content)

    def _learn(self, connection: ServerConnection[_Stubs], said: Iterable[tuple[str, str | bytes]]) -> None:
        """Notes which process is at the other end, if the server has several, and whether that one is stopping."""
        connection.asked = True
        for key, value in said:
            if key == PROCESS_KEY:
                connection.process = process_of(value)
            elif key == STOPPING_KEY:
                self._retire(connection)

    def _retire(self, connection: ServerConnection[_Stubs]) -> None:
        self._spread.retire(connection)
        self._retired.add(connection)

    async def _ended(self, connection: ServerConnection[_Stubs]) -> None:
        """A call on it has ended; closes connections that are retired and have none any more."""
        connection.calls -= 1
        if not self._retired:
            return
        over = {each for each in self._retired if each.is_over}
        self._retired -= over
        for each in over:
            await each.carrier.channel.close()

    def _open(self) -> _Stubs:
        channel = open_channel(self._endpoint, _CHANNEL_OPTIONS)
        return _Stubs(
            channel,
            scoring_pb2_grpc.ScoringStub(channel),
            references_pb2_grpc.ReferencesStub(channel),
            models_pb2_grpc.ModelsStub(channel),
            judging_pb2_grpc.JudgingStub(channel),
        )

    async def _reply(
        self,
        method: str,
        start: _Start[Reply],
        timeout_s: float,
        *,
        content: int | None = None,
    ) -> Reply:
        """The reply of a call; where a process has no room for it, and another one may have, of that one."""
        connection = self._connection(content)
        ends_s = time.monotonic() + timeout_s
        try:
            return await self._reply_over(connection, method, start, timeout_s)
        except errors.Overloaded as error:
            left_s = ends_s - time.monotonic()
            if error.of_quota or not self._spread.refused(connection, error.retry_after_s) or left_s <= 0:
                raise
        return await self._reply_over(self._connection(content), method, start, left_s)

    async def _reply_over(
        self,
        connection: ServerConnection[_Stubs],
        method: str,
        start: _Start[Reply],
        left_s: float,
    ) -> Reply:
        with request_trace(method, self._address) as trace:
            connection.calls += 1
            try:
                call = start(connection.carrier, trace.metadata(self._metadata), left_s)
                reply = await call
                if connection.may_move:
                    self._learn(connection, await call.trailing_metadata())
            except grpc.aio.AioRpcError as error:
                trace.answered_by(error.code().name)
                raise await self._failure(error, connection) from error
            finally:
                await self._ended(connection)
        self._has_answered = True
        return reply

    async def _replies(
        self,
        method: str,
        start: Callable[
            [_Stubs, Metadata | None], grpc.aio.StreamStreamCall[Any, Reply] | grpc.aio.UnaryStreamCall[Any, Reply]
        ],
    ) -> AsyncGenerator[Reply]:
        with request_trace(method, self._address) as trace:
            connection = self._connection()
            connection.calls += 1
            call = None
            try:
                # Not before the first reply is asked for: a generator that nobody reads would never end it.
                call = start(connection.carrier, trace.metadata(self._metadata))
                async for reply in call:
                    self._has_answered = True
                    yield reply
                self._learn(connection, await call.trailing_metadata())
            except grpc.aio.AioRpcError as error:
                trace.answered_by(error.code().name)
                raise await self._failure(error, connection) from error
            finally:
                if call is not None:
                    call.cancel()
                await self._ended(connection)

    async def _failure(
        self, error: grpc.aio.AioRpcError, connection: ServerConnection[_Stubs]
    ) -> errors.GradewireError:
        failure = translated(error, self._address, has_answered=self._has_answered)
        said = error.trailing_metadata()
        if isinstance(failure, errors.ServerUnreachable):
            self._learn(connection, said)
            if PROCESS_KEY not in said:  # else a process has answered, which lacks something
                self._spread.failed(connection)
            if connection.retired:
                self._retired.add(connection)
        elif PROCESS_KEY in said:
            self._learn(connection, said)
        if not self._has_answered and is_cut_off(failure):
            if self._encryption == "unknown":  # it may have been starting
                self._encryption = await asyncio.to_thread(encryption_at, self._address)
            if wrong := mismatch(self._endpoint, self._encryption):
                failure = errors.ServerUnreachable(wrong)
                failure.may_pass = False
        return failure


def _content(request: scoring_pb2.ScoreRequest) -> int | None:
    """What a call is about, the same in every program: the texts of its item; None where it has several items."""
    if len(request.items) != 1:
        return None
    item = request.items[0]
    return crc32("\n".join((item.prediction, item.question, *item.references)).encode())
