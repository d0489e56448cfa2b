"""gRPC's own services, health and reflection: bounded, and behind tokens."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any, Final, TypeAlias

import grpc
from google.protobuf.message import DecodeError
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc
from typing_extensions import override

from gradewire_proto.wire_rules import AUTHORIZATION_KEY
from gradewire_server.rpc.errors import UnauthenticatedError, abort
from gradewire_server.rpc.messages import GrpcContext
from gradewire_server.tenants.tokens import Authentication

_log = logging.getLogger(__name__)

_Response = health_pb2.HealthCheckResponse


class HealthService(health_pb2_grpc.HealthServicer):
    """Statuses by service, "" being the whole server."""

    def __init__(self) -> None:
        self._statuses: dict[str, Any] = {"": _Response.SERVING}
        self._changed = asyncio.Event()
        self._stopping = False

    async def Check(  # noqa: N802 - gRPC's name
        self, request: health_pb2.HealthCheckRequest, context: "aio.ServicerContext[Any, Any]"
    ) -> health_pb2.HealthCheckResponse:
        """The status now; NOT_FOUND for a service that nobody has named."""
        status = self._statuses.get(request.service)
        if status is None:
            await abort(context, grpc.StatusCode.NOT_FOUND)
        return _Response(status=status)

    async def Watch(  # noqa: N802 - gRPC's name
        self, request: health_pb2.HealthCheckRequest, context: "aio.ServicerContext[Any, Any]"
    ) -> None:
        """The status now and whenever it changes."""
        reported = None
        while True:
            changed = self._changed
            status = self._statuses.get(request.service, _Response.SERVICE_UNKNOWN)
            if status != reported:
                await context.write(_Response(status=status))
                reported = status
            await changed.wait()

    async def set(self, service: str, status: Any) -> None:
        """Says how a service is; nothing changes after `enter_graceful_shutdown`."""
        if not self._stopping and self._statuses.get(service) != status:
            self._statuses[service] = status
            self._notify()

    async def enter_graceful_shutdown(self) -> None:
        """Says NOT_SERVING of all services, for good."""
        self._stopping = True
        self._statuses = dict.fromkeys(self._statuses, _Response.NOT_SERVING)
        self._notify()

    def _notify(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


_GUARDED: Final = ("/grpc.health.", "/grpc.reflection.")


class HealthGate(aio.ServerInterceptor):
    """Lets calls of health and reflection through that carry a token of this server, whatever it is good for.

    Our own methods ask for themselves.

    Args:
        authentication: Knows the tokens.
    """

    def __init__(self, authentication: Authentication) -> None:
        self._authentication = authentication

    @override
    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable["grpc.RpcMethodHandler[Any, Any] | None"]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> "grpc.RpcMethodHandler[Any, Any] | None":
        handler = await continuation(handler_call_details)
        if handler is None or not handler_call_details.method.startswith(_GUARDED):
            return handler
        given = ""
        for key, value in handler_call_details.invocation_metadata:
            if key == AUTHORIZATION_KEY and isinstance(value, str):
                given = value
        known = self._authentication.caller(given, "") is not None
        return handler if known else _refusing(handler, str(UnauthenticatedError()))


def _refusing(handler: "grpc.RpcMethodHandler[Any, Any]", details: str) -> "grpc.RpcMethodHandler[Any, Any]":
    """A handler of the same shape that ends every call as unauthenticated, before a message of it is parsed."""

    async def refuse(_request: Any, context: aio.ServicerContext[Any, Any]) -> None:
        await abort(context, grpc.StatusCode.UNAUTHENTICATED, details)

    make = {
        (False, False): grpc.unary_unary_rpc_method_handler,
        (False, True): grpc.unary_stream_rpc_method_handler,
        (True, False): grpc.stream_unary_rpc_method_handler,
        (True, True): grpc.stream_stream_rpc_method_handler,
    }[bool(handler.request_streaming), bool(handler.response_streaming)]
    return make(refuse)


_MAX_MESSAGE_BYTES: Final = 4096
"""Names of services and symbols are far shorter; a watcher of health holds its request for as long as it stays."""

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"


def foreign_handlers(health: HealthService, services: tuple[str, ...]) -> list[grpc.GenericRpcHandler]:
    """Handlers of health and reflection.

    Args:
        health: What health says.
        services: Names that reflection shows.
    """
    taken: Any = _Registered()  # stands for a server as far as generated code asks it
    health_pb2_grpc.add_HealthServicer_to_server(health, taken)
    servicer = reflection.aio.ReflectionServicer(services)
    reflection_pb2_grpc.add_ServerReflectionServicer_to_server(servicer, taken)  # type: ignore[no-untyped-call]
    return [
        grpc.method_handlers_generic_handler(
            service,
            {name: _Guarded(f"{service}/{name}", each).as_handler() for name, each in methods.items()},
        )
        for service, methods in taken.services.items()
    ]


class _Registered:
    """Takes the methods that generated code wants to give to a server."""

    def __init__(self) -> None:
        self.services: dict[str, dict[str, Handler]] = {}

    def add_generic_rpc_handlers(self, handlers: object) -> None:
        """The same methods once more."""

    def add_registered_method_handlers(self, service: str, methods: dict[str, Handler]) -> None:
        self.services[service] = methods


class _Guarded:
    """One method, taking bytes.

    Args:
        method: ``grpc.health.v1.Health/Check``.
        handler: What generated code has made for it.
    """

    def __init__(self, method: str, handler: Any) -> None:
        self._method = method
        self._handler = handler

    def as_handler(self) -> Handler:
        """As gRPC wants it."""
        serialize = self._handler.response_serializer
        if self._handler.request_streaming:
            return grpc.stream_stream_rpc_method_handler(self._bidirectional, response_serializer=serialize)
        if self._handler.response_streaming:
            return grpc.unary_stream_rpc_method_handler(self._server_stream, response_serializer=serialize)
        return grpc.unary_unary_rpc_method_handler(self._unary, response_serializer=serialize)

    async def _unary(self, data: bytes, context: GrpcContext) -> Any:
        return await self._handler.unary_unary(await self._parsed(data, context), context)

    async def _server_stream(self, data: bytes, context: GrpcContext) -> None:
        await self._handler.unary_stream(await self._parsed(data, context), context)

    async def _bidirectional(self, messages: AsyncIterator[bytes], context: GrpcContext) -> AsyncGenerator[Any]:
        async def requests() -> AsyncGenerator[Any]:
            async for data in messages:
                yield await self._parsed(data, context)

        async for reply in self._handler.stream_stream(requests(), context):
            yield reply

    async def _parsed(self, data: bytes, context: GrpcContext) -> Any:
        if len(data) > _MAX_MESSAGE_BYTES:
            text = f"message: has {len(data)} bytes; a request of {self._method} has at most {_MAX_MESSAGE_BYTES}"
            await abort(context, grpc.StatusCode.INVALID_ARGUMENT, text)
        try:
            return self._handler.request_deserializer(data)
        except DecodeError:
            _log.warning("%s sent %s a message that cannot be parsed", context.peer(), self._method)
            await abort(context, grpc.StatusCode.INVALID_ARGUMENT, f"message: is no request of {self._method}")
