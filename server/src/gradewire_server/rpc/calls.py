"""Every call from socket to handler: token, permit, parsing, deadline, errors, log; and phases of serving."""

import asyncio
import itertools
import logging
import re
import secrets
import time
import traceback
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, TypeVar

import grpc
from google.protobuf.message import Message
from grpc_health.v1 import health_pb2

from gradewire_proto.spans import (
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
    JUDGING,
    MODELS,
    PEER_KEY,
    PROCESS_KEY,
    REFERENCES,
    REQUEST_ID_KEY,
    SCORING,
    STOPPING_KEY,
)
from gradewire_server.concurrency import Phase
from gradewire_server.domain.caller import Caller, Scope, anonymous_caller, set_current_caller
from gradewire_server.requests.context import RequestContext
from gradewire_server.requests.errors import (
    DeadlineExceededError,
    InvalidRequestError,
    QuotaExceededError,
    RequestError,
)
from gradewire_server.requests.handlers import Handlers
from gradewire_server.requests.load import LoopRounds
from gradewire_server.rpc.call import (
    Method,
    MethodTelemetry,
    RequestT,
    RpcCall,
    RpcTelemetry,
    charge,
    check_scope,
)
from gradewire_server.rpc.errors import (
    InternalError,
    NotServingError,
    UnauthenticatedError,
    WireStatus,
    end_with,
    to_wire,
)
from gradewire_server.rpc.health import HealthService
from gradewire_server.rpc.log import CallRecord, RequestLog, request_id
from gradewire_server.rpc.messages import (
    GrpcContext,
    Incoming,
    MessageReader,
    Receiver,
    StreamMemory,
    look_at,
    read_message,
    read_messages,
    receive_only,
    send_replies,
    write_message,
)
from gradewire_server.tenants.tokens import Authentication
from gradewire_server.tracing import CallTracer, TraceHeaders

if TYPE_CHECKING:
    from gradewire_proto.otel import OtelSpan

_log = logging.getLogger(__name__)

COMPUTING_SERVICES: Final = (SCORING, REFERENCES)
"""Services that are of no use without the engine."""
ALL_SERVICES: Final = ("", *COMPUTING_SERVICES, MODELS)

_KEYS: Final = frozenset({TRACEPARENT_KEY, TRACESTATE_KEY, EVENTS_KEY, EVALUATED_KEY})
_FAULTS: Final = frozenset({"UNKNOWN", "DEADLINE_EXCEEDED", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"})
"""Codes that are errors of a server, as OpenTelemetry has it; the others are the caller's."""

_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9_.:/+=-]{1,128}")
_PRIVATE: Final = "unix:"
"""Peers on a socket that only the server's own gateway can reach."""
_CHECKS: Final = 10


class Lifecycle:
    """The phase, and the handlers while there are any.

    Attributes:
        health: What gRPC health says.
        others_serve: Whether this process stops while others of the server go on, which callers are told.
    """

    def __init__(self, telemetry: "RpcTelemetry") -> None:
        self.health = HealthService()
        self.others_serve = False
        self._telemetry = telemetry
        self._phase = Phase.LOADING
        self._handlers: Handlers | None = None
        self._degraded: tuple[str, ...] = ()
        self._broken: tuple[str, ...] = ()
        self._overloaded = False
        self._judging: bool | None = None
        self._beat_s = time.monotonic()

    @property
    def phase(self) -> Phase:
        """The phase now."""
        return self._phase

    async def loading(self) -> None:
        """Says NOT_SERVING for all services."""
        for service in ALL_SERVICES:
            await self.health.set(service, health_pb2.HealthCheckResponse.NOT_SERVING)

    def loaded(self, handlers: "Handlers") -> None:
        """Takes calls from now on, and does not say so yet."""
        self._handlers = handlers

    async def serving(self, handlers: "Handlers") -> None:
        """Takes calls from now on, and says so."""
        self._handlers = handlers
        self._phase = Phase.SERVING
        await self._publish()

    async def draining(self) -> None:
        """Says NOT_SERVING, so that no new callers come, and still takes calls."""
        self._phase = Phase.DRAINING
        self._telemetry.serving.set(0)
        await self.health.enter_graceful_shutdown()

    def stopping(self) -> None:
        """Takes no more calls."""
        self._phase = Phase.STOPPING

    async def observe(
        self, *, degraded: Sequence[str], broken: Sequence[str], judging: bool | None = None, overloaded: bool = False
    ) -> None:
        """Notes the state of models, judges and stores, and shows it.

        Args:
            degraded: What works less well; scoring goes on.
            broken: What keeps the engine from computing; flips the services that need it.
            judging: Whether judges can be asked, which flips the service of that name alone; None: there are none.
            overloaded: Whether overload has lasted so long that other replicas are to be asked; health says SERVING.
        """
        self._beat_s = time.monotonic()
        self._overloaded = overloaded
        changed = (tuple(broken), judging) != (self._broken, self._judging)
        self._judging = judging
        self._degraded, self._broken = tuple(degraded), tuple(broken)
        self._telemetry.degraded.set(len(self._degraded) + len(self._broken))
        if changed and self._phase is Phase.SERVING:
            await self._publish()

    def handlers(self) -> "Handlers":
        """What calls end in; raises NotServingError while loading and once stopping."""
        if self._handlers is None:
            raise NotServingError("the server is still loading its models; try again, or another replica")
        if self._phase is Phase.STOPPING:
            raise NotServingError("the server is shutting down; try another replica")
        return self._handlers

    def report(self) -> dict[str, Any]:
        """For /healthz; may be called from any thread."""
        return {
            "phase": self._phase.value,
            "degraded": [*self._degraded, *self._broken],
            "judging": self._judging,
            "event_loop_silent_s": round(time.monotonic() - self._beat_s, 3),
        }

    @property
    def ready(self) -> bool:
        """Whether new callers are welcome; may be asked from any thread."""
        return self._phase is Phase.SERVING and not self._broken and not self._overloaded

    async def _publish(self) -> None:
        status = health_pb2.HealthCheckResponse
        for service in ALL_SERVICES:
            down = bool(self._broken) and service in {"", *COMPUTING_SERVICES}
            await self.health.set(service, status.NOT_SERVING if down else status.SERVING)
        if self._judging is not None:
            await self.health.set(JUDGING, status.SERVING if self._judging else status.NOT_SERVING)
        self._telemetry.serving.set(0 if self._broken else 1)


def trace_headers(context: GrpcContext) -> TraceHeaders:
    """Reads them; what is no text counts as not there."""
    found = {
        key: value for key, value in context.invocation_metadata() or () if key in _KEYS and isinstance(value, str)
    }
    by_caller = found.get(EVENTS_KEY) == BY_CALLER
    return TraceHeaders(
        found.get(TRACEPARENT_KEY, ""), found.get(TRACESTATE_KEY, ""), by_caller, found.get(EVALUATED_KEY, "")
    )


def end_call_span(span: "OtelSpan", record: CallRecord) -> None:
    """Says of a call's span how the call ended, and ends it."""
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
    """Wraps the servicers' functions into gRPC's method handlers, and knows which calls are in flight.

    Args:
        lifecycle: Whether calls are taken, and the handlers that they end in.
        telemetry: Prometheus metrics of calls.
        log: Told of each call that has ended.
        authentication: Knows the callers; None: every call is let in.
        tracer: Traces calls; None: none is traced.
        process: INDEX/COUNT of this process, which callers are told; empty: it is the only one.

    Attributes:
        receiver: Receives the messages of all calls.
    """

    def __init__(  # noqa: PLR0913 - what surrounds a call; half of it by name
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
        """Waits until no call is in flight."""
        while self._in_flight:  # another one may have begun between the end of the last and this step
            await self._idle.wait()

    async def quiet(self, for_s: float) -> None:
        """Waits until no call is in flight and none has come for `for_s` seconds.

        Many looks and not one: where the process gets no time for so long, calls wait to be taken in.
        """
        calm = 0
        while calm < _CHECKS:
            last_s = self._last_arrival_s
            await asyncio.sleep(for_s / _CHECKS)
            calm = 0 if self._in_flight or self._last_arrival_s != last_s else calm + 1

    def unary(
        self, method: Method[RequestT], run: Callable[[Handlers, RequestT, RpcCall], Awaitable[Message]]
    ) -> "grpc.RpcMethodHandler[Any, Any]":
        """Handler of a call with one request and one reply."""
        telemetry = MethodTelemetry(self._telemetry, method.name)

        async def handle(_messages: AsyncIterator[bytes], context: GrpcContext) -> bytes:
            async def body(call: RpcCall) -> bytes:
                handlers = self._handlers(method, call)
                if method.scope is not Scope.SCORE:
                    return await answer(handlers, call)
                admission = handlers.context.admission
                admission.arrive(call.caller, call.deadline_s, call.waited_s)
                try:
                    return await answer(handlers, call)
                finally:
                    admission.depart()

            async def answer(handlers: Handlers, call: RpcCall) -> bytes:
                served = handlers.context
                data = await receive_only(self.receiver, context, call, served.deadlines.stall_s)
                charge(call.caller, len(data))
                request, size_bytes = await look_at(method, data, served.limits, call)
                with served.admission.bytes.hold(_leaving_room(served, size_bytes)):
                    if request is None:
                        request = await read_message(method, data)
                    del data
                    call.see(method, request, served)
                    reply = await run(handlers, request, call)
                    return await write_message(reply, served.limits.max_message_bytes, call)

            return await self._around(method.name, telemetry, context, body)

        # To gRPC it is a stream of one message, which alone lets us ask for the token before the message is received.
        return grpc.stream_unary_rpc_method_handler(handle)

    def server_stream(
        self, method: Method[RequestT], run: Callable[[Handlers, RequestT, RpcCall], AsyncGenerator[Message]]
    ) -> "grpc.RpcMethodHandler[Any, Any]":
        """Handler of a call with one request and many replies."""
        telemetry = MethodTelemetry(self._telemetry, method.name)

        async def handle(_messages: AsyncIterator[bytes], context: GrpcContext) -> None:
            async def body(call: RpcCall) -> None:
                handlers = self._handlers(method, call)
                served = handlers.context
                data = await receive_only(self.receiver, context, call, served.deadlines.stall_s)
                charge(call.caller, len(data))
                request, size_bytes = await look_at(method, data, served.limits, call)
                with served.admission.bytes.hold(_leaving_room(served, size_bytes)):
                    if request is None:
                        request = await read_message(method, data)
                    del data
                    call.see(method, request, served)
                    await send_replies(served, run(handlers, request, call), call, context)

            await self._around(method.name, telemetry, context, body)

        return grpc.stream_stream_rpc_method_handler(handle)  # as for `unary`

    def bidirectional(
        self,
        method: Method[RequestT],
        run: Callable[[Handlers, AsyncIterator[RequestT], RpcCall], AsyncGenerator[Message]],
    ) -> "grpc.RpcMethodHandler[Any, Any]":
        """Handler of a call with many requests and many replies."""
        telemetry = MethodTelemetry(self._telemetry, method.name)

        async def handle(_messages: AsyncIterator[bytes], context: GrpcContext) -> None:
            async def body(call: RpcCall) -> None:
                handlers = self._handlers(method, call)
                served = handlers.context
                with served.admission.streams.hold(1):
                    held = StreamMemory(served.admission.stream_bytes, served.admission.stream_bytes.limit)
                    try:
                        incoming = Incoming(MessageReader(context), self.receiver, held)
                        async with aclosing(read_messages(served, method, incoming, call)) as requests:
                            await send_replies(served, run(handlers, requests, call), call, context, held)
                    finally:
                        held.close()

            await self._around(method.name, telemetry, context, body)

        return grpc.stream_stream_rpc_method_handler(handle)

    def _handlers(self, method: Method[Any], call: RpcCall) -> Handlers:
        """What a call ends in: the handlers of its caller's namespace, where its token is good for the method."""
        check_scope(call.caller, method)
        handlers = self._lifecycle.handlers()
        return handlers.within(call.caller.namespace) if call.caller.namespace else handlers

    @property
    def _of_process(self) -> tuple[tuple[str, str], ...]:
        """What tells callers which process this is, and whether they are to go to another one."""
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
            set_current_caller(call.caller.key)  # each call is a task of its own
            call.record.tenant = call.caller.tenant
            _check_deadline(call)
            result = await body(call)
            if self._process:
                context.set_trailing_metadata(self._of_process)
            code = "OK"
        except asyncio.CancelledError:
            if call.deadline_s is not None and time.perf_counter() - started >= call.deadline_s:
                code = "DEADLINE_EXCEEDED"
            raise
        except Exception as error:  # the error table answers them all
            if context.cancelled():  # whatever failed: nobody waits for it, and gRPC raises where it cannot be sent
                raise asyncio.CancelledError from error
            if isinstance(error, QuotaExceededError):
                self._telemetry.tenants.refused(call.caller)
            status = _failed(error, call)
            code = status.code.name
            # Else its traceback keeps the message, which may be large, until the collector looks at old objects.
            traceback.clear_frames(error.__traceback__)
            await end_with(status, context, self._of_process)
        else:
            return result
        finally:
            duration_s = time.perf_counter() - started
            telemetry.in_flight.dec()
            telemetry.finished(code, duration_s, None if span is None else span.exemplar())
            self._telemetry.tenants.finished(call.caller, code)
            call.record.code, call.record.duration_s = code, duration_s
            self._request_log.add(call.record)
            if span is not None:
                end_call_span(span, call.record)
            self._in_flight -= 1
            if not self._in_flight:
                self._idle.set()

    def _caller(self, authorization: str, peer: str) -> Caller:
        """Return the caller; raise UnauthenticatedError where a token is needed and was not given."""
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
        request_id.set(call_id)  # each call is a task of its own
        return call_id, authorization, peer


def _check_deadline(call: RpcCall) -> None:
    """Raises DeadlineExceededError where a call waited inside gRPC for longer than its caller does."""
    if call.deadline_s == 0:
        raise DeadlineExceededError("the deadline passed before the call was taken up")


def _leaving_room(context: RequestContext, size_bytes: int) -> int:
    """What a request counts for: a quarter of the memory of requests is left to others, however large it is."""
    return min(size_bytes, context.admission.bytes.limit * 3 // 4)


def _failed(error: Exception, call: RpcCall) -> WireStatus:
    if isinstance(error, InvalidRequestError):
        call.record.at = error.field
    if not isinstance(error, RequestError) or isinstance(error, InternalError):
        _log.error("call %s failed by a defect", call.record.request_id, exc_info=error)
    return to_wire(error, call.record.request_id)
