"""Dispatch calls to their handlers, with authentication, admission, errors, tracing and the log."""

import asyncio
import itertools
import logging
import re
import secrets
import time
import traceback
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, TypeVar

import grpc
from google.protobuf.message import Message

from gradewire_proto.tracing.spans import (
    BY_CALLER,
    EVALUATED_KEY,
    EVENTS_KEY,
    ITEMS,
    METRICS,
    REQUEST_ID,
    RPC_STATUS,
    TENANT,
    TRACEPARENT_KEY,
    TRACESTATE_KEY,
)
from gradewire_proto.wire_rules import (
    AUTHORIZATION_KEY,
    PEER_KEY,
    PROCESS_KEY,
    REQUEST_ID_KEY,
    STOPPING_KEY,
)
from gradewire_server.domain.caller import Caller, Scope, anonymous_caller, set_current_caller
from gradewire_server.requests.errors import (
    DeadlineExceededError,
    InvalidRequestError,
    QuotaExceededError,
    RequestError,
)
from gradewire_server.requests.handlers import Handlers
from gradewire_server.requests.load import LoopRounds
from gradewire_server.rpc.errors import (
    UnauthenticatedError,
    WireStatus,
    end_with,
    to_wire,
)
from gradewire_server.rpc.health import Lifecycle
from gradewire_server.rpc.log import CallRecord, RequestLog, request_id
from gradewire_server.rpc.messages import GrpcContext, Messages, Receiver, StreamMemory
from gradewire_server.rpc.method import Method, RequestT, RpcCall
from gradewire_server.rpc.telemetry import MethodTelemetry, RpcTelemetry
from gradewire_server.tenants.tokens import Authentication
from gradewire_server.tracing import CallTracer, TraceHeaders

if TYPE_CHECKING:
    from gradewire_proto.tracing.otel import OtelSpan

_log = logging.getLogger(__name__)

_KEYS: Final = frozenset({TRACEPARENT_KEY, TRACESTATE_KEY, EVENTS_KEY, EVALUATED_KEY})
_FAULTS: Final = frozenset({"UNKNOWN", "DEADLINE_EXCEEDED", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"})
"""The status codes that OpenTelemetry counts as server errors."""

_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9_.:/+=-]{1,128}")
_PRIVATE: Final = "unix:"
"""The address prefix of the gateway's private socket."""
_CHECKS: Final = 10


def trace_headers(context: GrpcContext) -> TraceHeaders:
    """Return a call's trace headers. Ignore binary values."""
    found = {
        key: value for key, value in context.invocation_metadata() or () if key in _KEYS and isinstance(value, str)
    }
    by_caller = found.get(EVENTS_KEY) == BY_CALLER
    return TraceHeaders(
        found.get(TRACEPARENT_KEY, ""), found.get(TRACESTATE_KEY, ""), by_caller, found.get(EVALUATED_KEY, "")
    )


def end_call_span(span: "OtelSpan", record: CallRecord) -> None:
    """Record a call's outcome in a span, and end the span."""
    span.set(RPC_STATUS, record.code)
    span.set(REQUEST_ID, record.request_id)
    if record.tenant:
        span.set(TENANT, record.tenant)
    if record.items:
        span.set(ITEMS, record.items)
    if record.metrics:
        span.set(METRICS, record.metrics)
    if record.code in _FAULTS:
        span.fail(record.code)
    span.end()


ResultT = TypeVar("ResultT")


class Calls:
    """A factory for gRPC method handlers. It also counts the calls in progress.

    If `authentication` is None, every call is allowed. `process` is this process's INDEX/COUNT, or "" if there is only
    one process.
    """

    def __init__(  # noqa: PLR0913 - half of the arguments are keyword-only
        self,
        lifecycle: Lifecycle,
        telemetry: RpcTelemetry,
        log: RequestLog,
        *,
        authentication: Authentication | None = None,
        tracer: CallTracer | None = None,
        process: str = "",
    ) -> None:
        self._tracer = tracer
        self._process = ((PROCESS_KEY, process),) if process else ()
        self._stopping = (*self._process, (STOPPING_KEY, "1"))
        self._lifecycle = lifecycle
        self._telemetry = telemetry
        self._request_log = log
        self._authentication = authentication
        self.receiver = Receiver()
        self._id_prefix = secrets.token_hex(4)
        self._ids = itertools.count(1)
        self._in_flight = 0
        self._rounds = LoopRounds()
        self._last_arrival_s = 0.0
        self._idle = asyncio.Event()
        self._idle.set()

    async def idle(self) -> None:
        """Wait until no call is in progress."""
        while self._in_flight:
            await self._idle.wait()

    async def quiet(self, for_s: float) -> None:
        """Wait until no call has arrived or been in progress for `for_s` seconds."""
        calm = 0
        while calm < _CHECKS:
            last_s = self._last_arrival_s
            await asyncio.sleep(for_s / _CHECKS)
            calm = 0 if self._in_flight or self._last_arrival_s != last_s else calm + 1

    def unary(
        self, method: Method[RequestT], run: Callable[[Handlers, RequestT, RpcCall], Awaitable[Message]]
    ) -> "grpc.RpcMethodHandler[Any, Any]":
        """Return a handler for calls with one request and one reply."""
        telemetry = MethodTelemetry(self._telemetry, method.name)

        async def handle(_messages: AsyncIterator[bytes], context: GrpcContext) -> bytes:
            async def body(call: RpcCall) -> bytes:
                handlers, messages = self._open(method, call, context)

                async def respond(request: RequestT) -> bytes:
                    return await messages.write(await run(handlers, request, call))

                if method.scope is not Scope.SCORE:
                    return await messages.answer(respond)
                admission = handlers.context.admission
                admission.arrive(call.caller, call.deadline_s, call.waited_s)
                try:
                    return await messages.answer(respond)
                finally:
                    admission.depart()

            return await self._around(method.name, telemetry, context, body)

        # A stream handler can check the token before it receives the request.
        return grpc.stream_unary_rpc_method_handler(handle)

    def server_stream(
        self, method: Method[RequestT], run: Callable[[Handlers, RequestT, RpcCall], AsyncGenerator[Message]]
    ) -> "grpc.RpcMethodHandler[Any, Any]":
        """Return a handler for calls with one request and many replies."""
        telemetry = MethodTelemetry(self._telemetry, method.name)

        async def handle(_messages: AsyncIterator[bytes], context: GrpcContext) -> None:
            async def body(call: RpcCall) -> None:
                handlers, messages = self._open(method, call, context)
                await messages.answer(lambda request: messages.send(run(handlers, request, call)))

            await self._around(method.name, telemetry, context, body)

        return grpc.stream_stream_rpc_method_handler(handle)  # see `unary`

    def bidirectional(
        self,
        method: Method[RequestT],
        run: Callable[[Handlers, AsyncIterator[RequestT], RpcCall], AsyncGenerator[Message]],
    ) -> "grpc.RpcMethodHandler[Any, Any]":
        """Return a handler for calls with many requests and many replies."""
        telemetry = MethodTelemetry(self._telemetry, method.name)

        async def handle(_messages: AsyncIterator[bytes], context: GrpcContext) -> None:
            async def body(call: RpcCall) -> None:
                handlers, messages = self._open(method, call, context)
                admission = handlers.context.admission
                with admission.streams.hold(1):
                    held = StreamMemory(admission.stream_bytes, admission.stream_bytes.limit)
                    try:
                        async with aclosing(messages.requests(held)) as requests:
                            await messages.send(run(handlers, requests, call), held)
                    finally:
                        held.close()

            await self._around(method.name, telemetry, context, body)

        return grpc.stream_stream_rpc_method_handler(handle)

    def _open(
        self, method: Method[RequestT], call: RpcCall, context: GrpcContext
    ) -> tuple[Handlers, Messages[RequestT]]:
        """Return the request handlers for the caller's namespace, and the call's messages.

        Raises:
            DeadlineExceededError: The deadline passed before the call started.
            PermissionDeniedError: The caller's token does not allow the method.
            NotServingError: The server is loading or shutting down.
        """
        if call.deadline_s == 0:
            raise DeadlineExceededError("the deadline passed before the call started")
        method.check_scope(call.caller)
        handlers = self._lifecycle.handlers().within(call.caller.namespace)
        return handlers, Messages(method, call, self.receiver, handlers.context, context)

    @property
    def _process_metadata(self) -> tuple[tuple[str, str], ...]:
        return self._stopping if self._lifecycle.others_serve else self._process

    async def _around(
        self,
        method: str,
        telemetry: MethodTelemetry,
        context: GrpcContext,
        body: Callable[[RpcCall], Awaitable[ResultT]],
    ) -> ResultT:
        started = time.perf_counter()
        call_id, authorization, peer = self._read_metadata(context)
        call = RpcCall(CallRecord(call_id, method, peer), telemetry, context.time_remaining(), self._rounds.waited_s)
        self._rounds.measure()
        span = None if self._tracer is None else self._tracer.begin(method, trace_headers(context))
        self._in_flight, self._last_arrival_s = self._in_flight + 1, started
        self._idle.clear()
        telemetry.in_flight.inc()
        code = "CANCELLED"
        try:
            call.caller = self._caller(authorization, call.record.peer)
            set_current_caller(call.caller.key)
            call.record.tenant = call.caller.tenant
            result = await body(call)
            if self._process:
                context.set_trailing_metadata(self._process_metadata)
            code = "OK"
        except asyncio.CancelledError:
            if call.deadline_s is not None and time.perf_counter() - started >= call.deadline_s:
                code = "DEADLINE_EXCEEDED"
            raise
        except Exception as error:
            if context.cancelled():
                raise asyncio.CancelledError from error
            if isinstance(error, QuotaExceededError):
                self._telemetry.tenants.refused(call.caller)
            status = _failed(error, call)
            code = status.code.name
            # The traceback would keep large messages in memory.
            traceback.clear_frames(error.__traceback__)
            await end_with(status, context, self._process_metadata)
        else:
            return result
        finally:
            duration_s = time.perf_counter() - started
            telemetry.in_flight.dec()
            telemetry.calls(code).inc()
            telemetry.duration.observe(duration_s, None if span is None else span.exemplar())
            self._telemetry.tenants.finished(call.caller, code)
            call.record.code, call.record.duration_s = code, duration_s
            self._request_log.add(call.record)
            if span is not None:
                end_call_span(span, call.record)
            self._in_flight -= 1
            if not self._in_flight:
                self._idle.set()

    def _caller(self, authorization: str, peer: str) -> Caller:
        if self._authentication is None:
            return anonymous_caller(peer)
        caller = self._authentication.caller(authorization, peer)
        if caller is None:
            raise UnauthenticatedError
        return caller

    def _read_metadata(self, context: GrpcContext) -> tuple[str, str, str]:
        given = authorization = ""
        peer = context.peer()
        private = peer.startswith(_PRIVATE)
        for key, value in context.invocation_metadata() or ():
            if key == REQUEST_ID_KEY and isinstance(value, str) and _REQUEST_ID.fullmatch(value):
                given = value
            elif key == AUTHORIZATION_KEY and isinstance(value, str):
                authorization = value
            elif private and key == PEER_KEY and isinstance(value, str):
                peer = f"http:{value}"
        call_id = given or f"{self._id_prefix}-{next(self._ids):x}"
        request_id.set(call_id)
        return call_id, authorization, peer


def _failed(error: Exception, call: RpcCall) -> WireStatus:
    if isinstance(error, InvalidRequestError):
        call.record.at = error.field
    if not isinstance(error, RequestError):
        _log.error("call %s failed because of a defect", call.record.request_id, exc_info=error)
    return to_wire(error, call.record.request_id)
