"""The server's phase and health, and gRPC's services for health and reflection."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from typing import Any, Final

import grpc
from google.protobuf.message import DecodeError, Message
from grpc_health.v1 import health_pb2
from grpc_health.v1.health import SERVICE_NAME as HEALTH
from grpc_reflection.v1alpha import reflection, reflection_pb2

from gradewire_proto.wire_rules import AUTHORIZATION_KEY, JUDGING, MODELS, REFERENCES, SCORING
from gradewire_server.process import Phase
from gradewire_server.requests.handlers import Handlers
from gradewire_server.rpc.errors import AnyContext, NotServingError, UnauthenticatedError, abort
from gradewire_server.rpc.telemetry import RpcTelemetry
from gradewire_server.tenants.tokens import Authentication

_log = logging.getLogger(__name__)

COMPUTING_SERVICES: Final = (SCORING, REFERENCES)
"""The services that need the engine."""
ALL_SERVICES: Final = ("", *COMPUTING_SERVICES, MODELS)
_MAX_MESSAGE_BYTES: Final = 4096

_Status = health_pb2.HealthCheckResponse


class Lifecycle:
    """The server's phase and health, and the request handlers after loading.

    `others_serve` is True if only this process is stopping, and other processes of the server continue.
    """

    def __init__(self, telemetry: RpcTelemetry) -> None:
        self.others_serve = False
        self._telemetry = telemetry
        self.phase = Phase.LOADING
        self._handlers: Handlers | None = None
        self._degraded: tuple[str, ...] = ()
        self._broken: tuple[str, ...] = ()
        self._judging: bool | None = None
        self._beat_s = time.monotonic()
        self._changed = asyncio.Event()

    def loaded(self, handlers: Handlers) -> None:
        """Start to accept calls, but do not report SERVING yet."""
        self._handlers = handlers

    def serving(self, handlers: Handlers) -> None:
        """Start to accept calls, and report SERVING."""
        self._handlers = handlers
        self._become(Phase.SERVING)

    def draining(self) -> None:
        """Report NOT_SERVING, but still accept calls."""
        self._become(Phase.DRAINING)

    def stopping(self) -> None:
        """Report NOT_SERVING, and refuse new calls."""
        self._become(Phase.STOPPING)

    def observe(self, *, degraded: Sequence[str], broken: Sequence[str], judging: bool | None = None) -> None:
        """Update the reported health.

        Args:
            degraded: Problems that do not stop scoring.
            broken: Problems that stop scoring.
            judging: True if judges are available, False if they are not, None if the server has no judges.
        """
        self._beat_s = time.monotonic()
        self._judging = judging
        self._degraded, self._broken = tuple(degraded), tuple(broken)
        self._telemetry.degraded.set(len(self._degraded) + len(self._broken))
        self._become(self.phase)

    def handlers(self) -> Handlers:
        """Return the request handlers, or raise NotServingError if the server is loading or stopping."""
        if self._handlers is None:
            raise NotServingError("the server is still loading its models; try again later or use another replica")
        if self.phase is Phase.STOPPING:
            raise NotServingError("the server is shutting down; use another replica")
        return self._handlers

    def report(self) -> dict[str, Any]:
        """Return the state for /healthz. Thread-safe."""
        return {
            "phase": self.phase.value,
            "degraded": [*self._degraded, *self._broken],
            "judging": self._judging,
            "event_loop_silent_s": round(time.monotonic() - self._beat_s, 3),
        }

    @property
    def ready(self) -> bool:
        """True if the server is ready for new callers. Thread-safe."""
        return self.phase is Phase.SERVING and not self._broken

    def is_serving(self, service: str) -> bool | None:
        """Return True if the service is healthy, or None for an unknown service. "" means the whole server."""
        if service not in ALL_SERVICES and (service != JUDGING or self._judging is None):
            return None
        if self.phase is not Phase.SERVING:
            return False
        return bool(self._judging) if service == JUDGING else service == MODELS or not self._broken

    async def changes(self) -> AsyncGenerator[None]:
        """Yield at once, and again whenever the health may have changed."""
        while True:
            changed = self._changed
            yield
            await changed.wait()

    def _become(self, phase: Phase) -> None:
        self.phase = phase
        self._telemetry.serving.set(bool(self.is_serving("")))
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


def standard_services(
    lifecycle: Lifecycle, names: tuple[str, ...], authentication: Authentication | None
) -> list[grpc.GenericRpcHandler]:
    """Return the handlers of the health service and of the reflection service, which lists the services `names`.

    If `authentication` is given, calls need a valid token.
    """
    statuses = {None: _Status.SERVICE_UNKNOWN, False: _Status.NOT_SERVING, True: _Status.SERVING}

    async def check(
        requests: AsyncIterator[health_pb2.HealthCheckRequest], context: AnyContext
    ) -> AsyncGenerator[Message]:
        async for request in requests:
            serving = lifecycle.is_serving(request.service)
            if serving is None:
                await abort(context, grpc.StatusCode.NOT_FOUND)
            yield _Status(status=statuses[serving])
            return

    async def watch(
        requests: AsyncIterator[health_pb2.HealthCheckRequest], _context: AnyContext
    ) -> AsyncGenerator[Message]:
        async for request in requests:
            reported = None
            async for _ in lifecycle.changes():
                status = statuses[lifecycle.is_serving(request.service)]
                if status != reported:
                    yield _Status(status=status)
                    reported = status

    reflect = reflection.aio.ReflectionServicer(names).ServerReflectionInfo
    services: dict[str, dict[str, tuple[Any, type[Message]]]] = {
        HEALTH: {"Check": (check, health_pb2.HealthCheckRequest), "Watch": (watch, health_pb2.HealthCheckRequest)},
        reflection.SERVICE_NAME: {"ServerReflectionInfo": (reflect, reflection_pb2.ServerReflectionRequest)},
    }
    return [
        grpc.method_handlers_generic_handler(
            service,
            {
                name: _guarded(f"{service}/{name}", request_type, answer, authentication)
                for name, (answer, request_type) in methods.items()
            },
        )
        for service, methods in services.items()
    ]


def _guarded(
    method: str,
    request_type: type[Message],
    answer: Callable[[AsyncIterator[Any], AnyContext], AsyncIterator[Message]],
    authentication: Authentication | None,
) -> "grpc.RpcMethodHandler[Any, Any]":
    async def requests(messages: AsyncIterator[bytes], context: AnyContext) -> AsyncGenerator[Message]:
        async for data in messages:
            if len(data) > _MAX_MESSAGE_BYTES:
                text = f"message: has {len(data)} bytes, but at most {_MAX_MESSAGE_BYTES} are allowed for {method}"
                await abort(context, grpc.StatusCode.INVALID_ARGUMENT, text)
            try:
                yield request_type.FromString(data)
            except DecodeError:
                _log.warning("cannot parse a message from %s to %s", context.peer(), method)
                await abort(context, grpc.StatusCode.INVALID_ARGUMENT, f"message: is not a valid request for {method}")

    async def handle(messages: AsyncIterator[bytes], context: AnyContext) -> AsyncGenerator[bytes]:
        if authentication is not None:
            given = dict(context.invocation_metadata() or ()).get(AUTHORIZATION_KEY, "")
            if authentication.caller(str(given), "") is None:
                await abort(context, grpc.StatusCode.UNAUTHENTICATED, str(UnauthenticatedError()))
        async for reply in answer(requests(messages, context), context):
            yield reply.SerializeToString()

    return grpc.stream_stream_rpc_method_handler(handle)
