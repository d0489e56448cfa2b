"""The server behind the gateway: a channel to each of its processes, and the calls on them."""

import asyncio
import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import grpc
from google.protobuf.message import Message
from grpc import aio

from gradewire_gateway.settings import UpstreamSettings
from gradewire_gateway.wire import RpcMethod
from gradewire_proto.wire_rules import STOPPING_KEY

if TYPE_CHECKING:
    from gradewire_proto.otel import OtelSpan

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
_AVOIDED_S: Final = 1.0
"""Seconds for which a process is left alone that stops or cannot be reached."""
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


@dataclass(slots=True, eq=False)
class _Process:
    """A process of the server.

    Attributes:
        channel: To it.
        calls: In flight.
        turn: Of its last call.
        avoided_until_s: Monotonic seconds.
    """

    channel: aio.Channel
    calls: int = 0
    turn: int = 0
    avoided_until_s: float = 0.0

    @property
    def takes_calls(self) -> bool:
        """Whether it can be reached, as far as is known."""
        return self.avoided_until_s <= time.monotonic() and self.channel.get_state(try_to_connect=True) not in _DOWN

    def avoid(self) -> None:
        """It stops or is lost: while there are others, calls go to them."""
        self.avoided_until_s = time.monotonic() + _AVOIDED_S

    def heard(self, trailing: Iterable[tuple[str, str | bytes]]) -> None:
        """Takes what a reply says of it."""
        if any(key == STOPPING_KEY for key, _ in trailing):
            self.avoid()


class Upstream:
    """Calls the server, the process that has the fewest calls; made on the event loop that uses it, closed at its end.

    Args:
        settings: Where the server is.

    Raises:
        OSError: A PEM file cannot be read.
    """

    def __init__(self, settings: UpstreamSettings) -> None:
        self.private = settings.private
        self._processes = [_Process(_open(settings, target)) for target in settings.target.split(",")]
        self._callables: dict[tuple[aio.Channel, str], Any] = {}
        self._turns = 0

    @property
    def channel(self) -> aio.Channel:
        """The channel for a call that is not counted."""
        return self._take().channel

    async def close(self) -> None:
        """Closes the channels; calls in flight are cancelled."""
        for process in self._processes:
            await process.channel.close()

    def unary(self, method: RpcMethod, request: Message, options: CallOptions) -> asyncio.Task[Message]:
        """Makes a call with one request and one reply, which is cancelled with the task.

        Where a process stops or is lost, another one is asked: no harm is done where both do the work. The task raises
        AioRpcError as the last one did, and UsageError where the channel is closed.
        """
        return asyncio.create_task(self._unary(method, request, options))

    def server_stream(self, method: RpcMethod, request: Message, options: CallOptions) -> StreamCall:
        """Begins a call with one request and many replies."""
        process = self._take()
        call: StreamCall = self._callable(process, method)(
            request, timeout=options.timeout_s, metadata=options.metadata
        )
        self._count(process, call)
        return call

    def bidirectional(self, method: RpcMethod, options: CallOptions) -> "aio.StreamStreamCall[Any, Any]":
        """Begins a call with many requests, which are written to it, and many replies."""
        process = self._take()
        call: aio.StreamStreamCall[Any, Any] = self._callable(process, method)(
            timeout=options.timeout_s, metadata=options.metadata
        )
        self._count(process, call)
        return call

    async def _unary(self, method: RpcMethod, request: Message, options: CallOptions) -> Message:
        ends_s = None if options.timeout_s is None else time.monotonic() + options.timeout_s
        tried: list[_Process] = []
        while True:
            process = self._take(tried)
            tried.append(process)
            left_s = None if ends_s is None else ends_s - time.monotonic()
            call = self._callable(process, method)(request, timeout=left_s, metadata=options.metadata)
            process.calls += 1
            try:
                reply: Message = await call
                if len(self._processes) > 1:
                    process.heard(await call.trailing_metadata())
            except aio.AioRpcError as error:
                if error.code() is not grpc.StatusCode.UNAVAILABLE or len(tried) == len(self._processes):
                    raise
                process.avoid()
            else:
                return reply
            finally:
                process.calls -= 1

    def _take(self, tried: Iterable[_Process] = ()) -> _Process:
        """The process for the next call: one that takes calls and was not tried, where there is one, in turn."""
        left = [each for each in self._processes if each not in tried] or self._processes
        if len(left) > 1:
            left = [each for each in left if each.takes_calls] or left
        chosen = min(left, key=lambda each: (each.calls, each.turn))
        self._turns += 1
        chosen.turn = self._turns
        return chosen

    def _count(self, process: _Process, call: StreamCall) -> None:
        process.calls += 1

        def ended(_call: object) -> None:
            process.calls -= 1

        call.add_done_callback(ended)

    def _callable(self, process: _Process, method: RpcMethod) -> Any:
        channel = process.channel
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


def _open(settings: UpstreamSettings, target: str) -> aio.Channel:
    if not settings.tls:
        return aio.insecure_channel(target, options=_OPTIONS)
    options = [*_OPTIONS]
    if settings.server_name:
        options.append(("grpc.ssl_target_name_override", settings.server_name))
    files = [Path(path).read_bytes() if path else None for path in (settings.ca, settings.key, settings.cert)]
    return aio.secure_channel(target, grpc.ssl_channel_credentials(*files), options=options)
