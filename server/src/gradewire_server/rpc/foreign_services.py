"""gRPC's own services, health and reflection, behind handlers that take bytes.

Left to itself gRPC parses their requests before any handler, and answers what cannot be parsed with UNKNOWN and a
traceback in the log. Here it is INVALID_ARGUMENT and one line, which the log's bound keeps from becoming a flood.
"""

import logging
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, Final, TypeAlias

import grpc
from google.protobuf.message import DecodeError
from grpc_health.v1 import health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc

from gradewire_server.rpc.errors import abort
from gradewire_server.rpc.health import HealthService
from gradewire_server.rpc.messages import GrpcContext

_log = logging.getLogger(__name__)
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
