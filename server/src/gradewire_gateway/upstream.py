"""The server behind the gateway: one channel, and the calls on it."""

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import grpc
from google.protobuf.message import Message
from grpc import aio
from grpc._cython import cygrpc  # type: ignore[attr-defined] # no types, and no public name

from gradewire_gateway.settings import UpstreamSettings
from gradewire_gateway.wire.methods import RpcMethod
from gradewire_proto.conventions.grpc_wakeups import drain_wakeups

if TYPE_CHECKING:
    from gradewire_proto.telemetry.recorded import Recorded

StreamCall: TypeAlias = "aio.UnaryStreamCall[Any, Any] | aio.StreamStreamCall[Any, Any]"
"""A call with many replies."""
_OPTIONS: Final[tuple[tuple[str, str | int], ...]] = (
    ("grpc.service_config", json.dumps({"loadBalancingConfig": [{"round_robin": {}}]})),
    ("grpc.enable_retries", 0),  # whether to ask again is for the caller, who is told when
    ("grpc.max_send_message_length", -1),  # bodies are bounded, and the server says what it takes
    ("grpc.max_receive_message_length", 64 << 20),
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    # Between attempts to connect calls fail at once, so a server is found again so long after it came back.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.dns_min_time_between_resolutions_ms", 2_000),
)
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
    span: "Recorded | None" = None


class Upstream:
    """Calls the server, its processes in turn; made on the event loop that uses it, and closed at its end.

    Args:
        settings: Where the server is.

    Raises:
        OSError: A PEM file cannot be read.
    """

    def __init__(self, settings: UpstreamSettings) -> None:
        self.private = settings.private
        self._channels = [_open(settings, target) for target in settings.target.split(",")]
        drain_wakeups(asyncio.get_running_loop())
        self._callables: dict[tuple[aio.Channel, str], Any] = {}
        self._turn = 0

    @property
    def channel(self) -> aio.Channel:
        """The channel whose turn it is; one that cannot connect now is left out while there are others."""
        for _ in self._channels:
            self._turn = (self._turn + 1) % len(self._channels)
            channel = self._channels[self._turn]
            if len(self._channels) == 1 or channel.get_state(try_to_connect=True) not in _DOWN:
                return channel
        return self._channels[self._turn]

    async def close(self) -> None:
        """Closes the channels; calls in flight are cancelled."""
        for channel in self._channels:
            await channel.close()

    def unary(self, method: RpcMethod, request: Message, options: CallOptions) -> "aio.UnaryUnaryCall[Any, Any]":
        """Begins a call with one request and one reply."""
        call: aio.UnaryUnaryCall[Any, Any] = self._callable(method)(
            request, timeout=options.timeout_s, metadata=options.metadata
        )
        return call

    def server_stream(self, method: RpcMethod, request: Message, options: CallOptions) -> StreamCall:
        """Begins a call with one request and many replies."""
        call: StreamCall = self._callable(method)(request, timeout=options.timeout_s, metadata=options.metadata)
        return call

    def bidirectional(self, method: RpcMethod, options: CallOptions) -> "aio.StreamStreamCall[Any, Any]":
        """Begins a call with many requests, which are written to it, and many replies."""
        call: aio.StreamStreamCall[Any, Any] = self._callable(method)(
            timeout=options.timeout_s, metadata=options.metadata
        )
        return call

    def _callable(self, method: RpcMethod) -> Any:
        channel = self.channel
        found = self._callables.get((channel, method.path))
        if found is None:
            by_shape: dict[tuple[bool, bool], Any] = {
                (False, False): channel.unary_unary,
                (False, True): channel.unary_stream,
                (True, True): channel.stream_stream,
            }
            make = by_shape[method.client_streaming, method.server_streaming]
            found = self._callables[channel, method.path] = make(
                method.path,
                request_serializer=method.request_type.SerializeToString,
                response_deserializer=method.reply_type.FromString,
            )
        return found


class CallEndedError(Exception):
    """The call takes no more messages; reading it tells how it ended."""


async def write(call: "aio.StreamStreamCall[Any, Any]", message: Message) -> None:
    """Writes a message; raises CallEndedError where the call has ended.

    `call.write` would do, but where the server ends a call while a message is on its way, it puts INTERNAL in the place
    of the status that the server gave: a token that is refused would look like a defect.
    """
    try:
        await call.wait_for_connection()
        await call._cython_call.send_serialized_message(message.SerializeToString())  # type: ignore[attr-defined] # noqa: SLF001 - as above
    except (aio.AioRpcError, cygrpc.InternalError, asyncio.InvalidStateError) as error:
        raise CallEndedError from error


async def done_writing(call: "aio.StreamStreamCall[Any, Any]") -> None:
    """Says that no more messages come; raises as `write`."""
    try:
        await call.done_writing()
    except (aio.AioRpcError, cygrpc.InternalError, asyncio.InvalidStateError) as error:
        raise CallEndedError from error


def _open(settings: UpstreamSettings, target: str) -> aio.Channel:
    if not settings.tls:
        return aio.insecure_channel(target, options=_OPTIONS)
    options = [*_OPTIONS]
    if settings.server_name:
        options.append(("grpc.ssl_target_name_override", settings.server_name))
    files = [Path(path).read_bytes() if path else None for path in (settings.ca, settings.key, settings.cert)]
    return aio.secure_channel(target, grpc.ssl_channel_credentials(*files), options=options)
