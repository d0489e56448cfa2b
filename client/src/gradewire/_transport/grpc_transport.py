"""The transport over gRPC."""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import grpc
import grpc.aio

from gradewire import errors
from gradewire._transport.retries import grpc_method_config
from gradewire._transport.status_codes import error_for
from gradewire.tls import Tls
from gradewire_proto.conventions.metadata import AUTHORIZATION_KEY, PUSHBACK_KEY, bearer
from gradewire_proto.conventions.services import MODELS, REFERENCES, SCORING
from gradewire_proto.v1 import (
    models_pb2,
    models_pb2_grpc,
    references_pb2,
    references_pb2_grpc,
    scoring_pb2,
    scoring_pb2_grpc,
)

# gRPC keeps a message for repetition only while it fits into this; a call above it is never repeated.
_RETRY_BUFFER_BYTES = 64 * 1024 * 1024
_MAX_REPLY_BYTES = 64 * 1024 * 1024

_SERVICE_CONFIG = {
    "loadBalancingConfig": [{"round_robin": {}}],
    "methodConfig": [grpc_method_config((SCORING, REFERENCES, MODELS))],
}
_CHANNEL_OPTIONS: tuple[tuple[str, str | int], ...] = (
    ("grpc.service_config", json.dumps(_SERVICE_CONFIG)),
    ("grpc.enable_retries", 1),
    ("grpc.per_rpc_retry_buffer_size", _RETRY_BUFFER_BYTES),
    ("grpc.max_send_message_length", -1),  # the client cuts its chunks to what the server says it takes
    ("grpc.max_receive_message_length", _MAX_REPLY_BYTES),
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 5_000),
)

Reply = TypeVar("Reply")

# What gRPC reports in place of the real status when a stream ends while a message is being written.
_CUT_WHILE_WRITING = "Internal error from Core"
# Set once a channel was made here: a forked child must not touch gRPC then, it crashes inside the C library.
_used_by_pid: int | None = None


@dataclass(slots=True)
class _Stubs:
    loop: asyncio.AbstractEventLoop
    channel: grpc.aio.Channel
    scoring: "scoring_pb2_grpc.ScoringAsyncStub"
    references: "references_pb2_grpc.ReferencesAsyncStub"
    models: "models_pb2_grpc.ModelsAsyncStub"


class GrpcTransport:
    """Calls a gradewire server.

    What was not answered at all is repeated by gRPC, as `retries` says.

    Args:
        address: HOST:PORT, or any name that gRPC resolves (`dns:///name:50051` spreads over all addresses).
        token: Sent as bearer token with every call.
        tls: How to encrypt; None: no encryption.
    """

    def __init__(self, address: str, *, token: str | None = None, tls: Tls | None = None) -> None:
        self._address = address
        self._metadata = ((AUTHORIZATION_KEY, bearer(token)),) if token else None
        self._tls = tls
        self._stubs: _Stubs | None = None

    async def score(self, request: scoring_pb2.ScoreRequest, *, timeout_s: float) -> scoring_pb2.ScoreResponse:
        """Calls Scoring.Score."""
        try:
            return await self._open().scoring.Score(request, timeout=timeout_s, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            raise self._translate(error) from error

    def score_stream(
        self, requests: AsyncIterator[scoring_pb2.ScoreStreamRequest], *, timeout_s: float | None = None
    ) -> AsyncGenerator[scoring_pb2.ScoreStreamResponse]:
        """Calls Scoring.ScoreStream."""
        return self._replies(
            lambda: self._open().scoring.ScoreStream(requests, timeout=timeout_s, metadata=self._metadata)
        )

    def prepare(
        self, request: references_pb2.PrepareRequest, *, timeout_s: float
    ) -> AsyncGenerator[references_pb2.PrepareProgress]:
        """Calls References.Prepare."""
        return self._replies(
            lambda: self._open().references.Prepare(request, timeout=timeout_s, metadata=self._metadata)
        )

    async def list_models(self, *, timeout_s: float) -> models_pb2.ListModelsResponse:
        """Calls Models.List."""
        try:
            return await self._open().models.List(
                models_pb2.ListModelsRequest(), timeout=timeout_s, metadata=self._metadata
            )
        except grpc.aio.AioRpcError as error:
            raise self._translate(error) from error

    async def close(self) -> None:
        """Closes the channel; calls in flight are cancelled."""
        if self._stubs is not None and _used_by_pid == os.getpid():
            await self._stubs.channel.close()

    def _open(self) -> _Stubs:
        global _used_by_pid  # noqa: PLW0603 - the C library's state is per process, so its owner is as well
        if _used_by_pid not in {None, os.getpid()}:
            raise errors.ForkedClient(
                "gRPC was in use before this process was forked and cannot be used here: start workers with the spawn "
                "or forkserver method, or make the first call after the fork"
            )
        # A channel belongs to its loop; a program that calls asyncio.run() twice comes with another one.
        loop = asyncio.get_running_loop()
        if self._stubs is None or self._stubs.loop is not loop:
            _used_by_pid = os.getpid()
            if self._tls is None:
                channel = grpc.aio.insecure_channel(self._address, options=_CHANNEL_OPTIONS)
            else:
                channel = grpc.aio.secure_channel(
                    self._address, _credentials(self._tls), options=(*_CHANNEL_OPTIONS, *_overrides(self._tls))
                )
            self._stubs = _Stubs(
                loop,
                channel,
                scoring_pb2_grpc.ScoringStub(channel),
                references_pb2_grpc.ReferencesStub(channel),
                models_pb2_grpc.ModelsStub(channel),
            )
        return self._stubs

    async def _replies(
        self, start: Callable[[], grpc.aio.StreamStreamCall[Any, Reply] | grpc.aio.UnaryStreamCall[Any, Reply]]
    ) -> AsyncGenerator[Reply]:
        call = start()  # not before the first reply is asked for: a generator that nobody reads would never end it
        try:
            async for reply in call:
                yield reply
        except grpc.aio.AioRpcError as error:
            raise self._translate(error) from error
        finally:
            call.cancel()

    def _translate(self, error: grpc.aio.AioRpcError) -> errors.GradewireError:
        if error.details() == _CUT_WHILE_WRITING:
            return errors.ServerUnreachable(f"{self._address} cut the stream while items were sent: look at its log")
        pushback_ms = next((value for key, value in error.trailing_metadata() if key == PUSHBACK_KEY), "")
        retry_after_s = int(pushback_ms) / 1000 if str(pushback_ms).isdecimal() else None
        return error_for(error.code().name, error.details() or "", self._address, retry_after_s=retry_after_s)


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
