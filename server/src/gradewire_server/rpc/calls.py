"""What surrounds every call: token, permit, parsing, deadline, error table, metrics, log.

Handlers are wrapped once, when the server is built, and take and give raw bytes: the size of a message is known without
measuring it, a message that cannot be read is answered by our table, and a call costs little more than its work.
"""

import asyncio
import hmac
import itertools
import logging
import re
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn, TypeVar

import grpc
from google.protobuf.message import DecodeError, Message
from grpc import aio

from gradewire_proto.conventions.metadata import AUTHORIZATION_KEY, REQUEST_ID_KEY, token_of
from gradewire_server.rpc.errors import (
    DeadlineExceededError,
    InternalError,
    InvalidRequestError,
    RpcError,
    UnauthenticatedError,
    WireStatus,
    to_wire,
)
from gradewire_server.rpc.lifecycle import Lifecycle
from gradewire_server.rpc.request_log import CallRecord, RequestLog, request_id
from gradewire_server.rpc.telemetry import MethodTelemetry, RpcTelemetry

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from gradewire_proto.v1.types_pb2 import MetricSpec
    from gradewire_server.requests.dataplane import Dataplane

_log = logging.getLogger(__name__)

_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9_.:/+=-]{1,128}")
_LAST_WORD_S: Final = 1.0
"""How long we watch a status on its way out; it stands behind replies that the caller may never read."""

RequestT = TypeVar("RequestT", bound=Message)
ResultT = TypeVar("ResultT")
Context = aio.ServicerContext[bytes, bytes]


class Call:
    """One call at work.

    Attributes:
        record: What the log will say of it.
        deadline_s: Seconds that the caller still waits; None where it has not said.
    """

    __slots__ = ("deadline_s", "record", "telemetry")

    def __init__(self, record: CallRecord, telemetry: MethodTelemetry, deadline_s: float | None) -> None:
        self.record = record
        self.telemetry = telemetry
        self.deadline_s = deadline_s

    def saw_items(self, count: int) -> None:
        """Notes items (or entries) that came in."""
        if count:
            self.record.items += count
            self.telemetry.items.inc(count)

    def saw_metrics(self, specs: "Iterable[MetricSpec]") -> None:
        """Notes the metrics asked for, by name."""
        self.record.metrics = [spec.WhichOneof("metric") or "?" for spec in specs]


@dataclass(frozen=True, slots=True)
class Method(Generic[RequestT]):
    """A method of a service.

    Attributes:
        name: ``gradewire.v1.Scoring/Score``.
        request_type: Message class of its requests.
    """

    name: str
    request_type: type[RequestT]


class Calls:
    """Makes the handlers of a server."""

    def __init__(
        self, lifecycle: Lifecycle, telemetry: RpcTelemetry, log: RequestLog, *, tokens: Sequence[str] = ()
    ) -> None:
        self._lifecycle = lifecycle
        self._telemetry = telemetry
        self._request_log = log
        self._tokens = [token.encode() for token in tokens]
        self._id_prefix = secrets.token_hex(4)
        self._ids = itertools.count(1)
        self._in_flight = 0
        self._last_arrival_s = 0.0
        self._idle = asyncio.Event()
        self._idle.set()

    async def idle(self) -> None:
        """Waits until no call is in flight."""
        await self._idle.wait()

    async def quiet(self, for_s: float) -> None:
        """Waits until no call is in flight and none has come for `for_s` seconds."""
        while True:
            await self._idle.wait()
            left_s = self._last_arrival_s + for_s - time.perf_counter()
            if left_s <= 0:
                return
            await asyncio.sleep(left_s)

    def unary(
        self, method: Method[RequestT], run: "Callable[[Dataplane, RequestT, Call], Awaitable[Message]]"
    ) -> "grpc.RpcMethodHandler[Any, Any]":
        """Handler of a call with one request and one reply."""
        telemetry = MethodTelemetry(self._telemetry, method.name)

        async def handle(data: bytes, context: Context) -> bytes:
            async def body(call: Call) -> bytes:
                dataplane = self._lifecycle.dataplane()
                with dataplane.admission.bytes.hold(len(data)):
                    reply = await run(dataplane, _read(method, data, call), call)
                    return _written(reply, dataplane.limits.max_message_bytes, call)

            return await self._around(method.name, telemetry, context, body)

        return grpc.unary_unary_rpc_method_handler(handle)

    def server_stream(
        self, method: Method[RequestT], run: "Callable[[Dataplane, RequestT, Call], AsyncGenerator[Message]]"
    ) -> "grpc.RpcMethodHandler[Any, Any]":
        """Handler of a call with one request and many replies."""
        telemetry = MethodTelemetry(self._telemetry, method.name)

        async def handle(data: bytes, context: Context) -> None:
            async def body(call: Call) -> None:
                dataplane = self._lifecycle.dataplane()
                with dataplane.admission.bytes.hold(len(data)):
                    await _send_all(dataplane, run(dataplane, _read(method, data, call), call), call, context)

            await self._around(method.name, telemetry, context, body)

        return grpc.unary_stream_rpc_method_handler(handle)

    def bidirectional(
        self,
        method: Method[RequestT],
        run: "Callable[[Dataplane, AsyncIterator[RequestT], Call], AsyncGenerator[Message]]",
    ) -> "grpc.RpcMethodHandler[Any, Any]":
        """Handler of a call with many requests and many replies."""
        telemetry = MethodTelemetry(self._telemetry, method.name)

        async def handle(messages: AsyncIterator[bytes], context: Context) -> None:
            async def body(call: Call) -> None:
                dataplane = self._lifecycle.dataplane()
                async with aclosing(_read_all(dataplane, method, messages, call)) as requests:
                    await _send_all(dataplane, run(dataplane, requests, call), call, context)

            await self._around(method.name, telemetry, context, body)

        return grpc.stream_stream_rpc_method_handler(handle)

    async def _around(
        self,
        method: str,
        telemetry: MethodTelemetry,
        context: Context,
        body: Callable[[Call], Awaitable[ResultT]],
    ) -> ResultT:
        started = time.perf_counter()
        call_id, token = self._read_metadata(context)
        call = Call(CallRecord(call_id, method, context.peer()), telemetry, context.time_remaining())
        self._in_flight, self._last_arrival_s = self._in_flight + 1, started
        self._idle.clear()
        telemetry.in_flight.inc()
        code = "CANCELLED"
        try:
            self._authenticate(token)
            result = await body(call)
            code = "OK"
        except asyncio.CancelledError:
            if call.deadline_s is not None and time.perf_counter() - started >= call.deadline_s:
                code = "DEADLINE_EXCEEDED"
            raise
        except Exception as error:  # noqa: BLE001 - the error table answers them all
            status = _failed(error, call)
            code = status.code.name
            await _abort(context, status)
        else:
            return result
        finally:
            duration_s = time.perf_counter() - started
            telemetry.in_flight.dec()
            telemetry.finished(code, duration_s)
            call.record.code, call.record.duration_s = code, duration_s
            self._request_log.add(call.record)
            self._in_flight -= 1
            if not self._in_flight:
                self._idle.set()

    def _read_metadata(self, context: Context) -> tuple[str, str]:
        given = token = ""
        for key, value in context.invocation_metadata() or ():
            if key == REQUEST_ID_KEY and isinstance(value, str) and _REQUEST_ID.fullmatch(value):
                given = value
            elif key == AUTHORIZATION_KEY and isinstance(value, str):
                token = value
        call_id = given or f"{self._id_prefix}-{next(self._ids):x}"
        request_id.set(call_id)  # each call is a task of its own
        return call_id, token

    def _authenticate(self, authorization: str) -> None:
        if not self._tokens:
            return
        given = token_of(authorization).encode()
        # Every token is compared, whichever fits: the time taken tells nothing about any of them.
        if sum([hmac.compare_digest(given, token) for token in self._tokens]) == 0:
            raise UnauthenticatedError("metadata authorization: 'Bearer TOKEN' with a token of this server is needed")


async def _abort(context: Context, status: WireStatus) -> NoReturn:
    try:
        async with asyncio.timeout(_LAST_WORD_S):
            await context.abort(status.code, status.details, status.trailing_metadata)
    except TimeoutError:
        # gRPC has the status and delivers it once the caller reads on; nothing is left for us to do.
        raise asyncio.CancelledError from None


def _failed(error: Exception, call: Call) -> WireStatus:
    if isinstance(error, InvalidRequestError):
        call.record.at = error.field
    if not isinstance(error, RpcError) or isinstance(error, InternalError):
        _log.error("call %s failed by a defect", call.record.request_id, exc_info=error)
    return to_wire(error, call.record.request_id)


def _read(method: Method[RequestT], data: bytes, call: Call) -> RequestT:
    call.telemetry.request_message(len(data))
    call.record.request_bytes += len(data)
    try:
        return method.request_type.FromString(data)
    except DecodeError:
        name = method.request_type.DESCRIPTOR.full_name
        raise InvalidRequestError("message", f"is no {name}, or a text in it is not UTF-8") from None


async def _read_all(
    dataplane: "Dataplane", method: Method[RequestT], messages: AsyncIterator[bytes], call: Call
) -> "AsyncGenerator[RequestT]":
    """Messages of a stream; each holds permits for its bytes until it is parsed.

    From then on the window of the stream bounds its memory: were the bytes held while a message waits for room in it, a
    few streams whose results nobody reads would keep everybody else out.
    """
    async for data in messages:
        await dataplane.admission.bytes.acquire(len(data))
        try:
            request = _read(method, data, call)
        finally:
            dataplane.admission.bytes.release(len(data))
        yield request


def _written(reply: Message, max_bytes: int, call: Call) -> bytes:
    data = reply.SerializeToString()
    if len(data) > max_bytes:
        raise InvalidRequestError(
            "items",
            f"the reply would be {len(data)} bytes, at most {max_bytes} are allowed; send fewer at a time",
        )
    call.telemetry.reply_message(len(data))
    call.record.reply_bytes += len(data)
    return data


async def _send_all(dataplane: "Dataplane", replies: "AsyncGenerator[Message]", call: Call, context: Context) -> None:
    # On their own: gRPC can send no status to a call that stalls while its headers leave with its first reply.
    await context.send_initial_metadata(())
    stall_s = dataplane.deadlines.stall_s
    async with aclosing(replies):
        async for reply in replies:
            data = _written(reply, dataplane.limits.max_message_bytes, call)
            try:
                async with asyncio.timeout(stall_s):
                    await context.write(data)
            except TimeoutError:
                raise DeadlineExceededError(f"none of the replies was read for {stall_s:g} s (stall_s)") from None
