"""Asks for a token where health and reflection are called, which are not ours and know of none."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import grpc
from grpc import aio
from typing_extensions import override

from gradewire_proto.conventions.metadata import AUTHORIZATION_KEY
from gradewire_server.rpc.authentication import Authentication
from gradewire_server.rpc.errors import UnauthenticatedError, abort

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
        try:
            self._authentication.check(given, "")
        except UnauthenticatedError as error:
            return _refusing(handler, str(error))
        return handler


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
