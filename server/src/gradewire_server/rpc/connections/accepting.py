"""A gRPC server that takes in several calls of a method at a time.

grpc.aio takes in one call of a method, and the next when that is done, which needs five rounds of the event loop. Where
the rounds are long, for there is much to score, a server takes in fewer calls than come: they wait inside gRPC, where
nobody can refuse them, until it drops them as CANCELLED. Here as many calls as there are slots are taken in side by
side.

gRPC has no option for this. A method is registered under a name for each slot, all of which ask gRPC's core for calls
of the one method. That uses names of grpc.aio's own; with a version that has other ones, calls are taken in one at a
time as before.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

import grpc
from grpc import aio
from grpc._cython import cygrpc  # type: ignore[attr-defined] # no types, and no public name
from typing_extensions import override

_log = logging.getLogger(__name__)

SLOTS: Final = 4
"""Calls of one method that are taken in side by side."""
_SLOT_MARK: Final = "#"


class _Accepting(cygrpc.AioServer):  # type: ignore[misc] # no types
    """Asks for calls of a method whatever the slot."""

    async def _request_registered_call(self, method: bytes) -> object:
        return await super()._request_registered_call(method.partition(_SLOT_MARK.encode())[0])


class _Server(aio._server.Server):  # type: ignore[name-defined,misc] # noqa: SLF001 - the class behind aio.server()
    """`aio.server`'s, around the class above."""

    @override
    def __init__(self, interceptors: Sequence[aio.ServerInterceptor], options: Sequence[tuple[str, Any]]) -> None:
        # Not the base's, which makes a server of gRPC's core that nothing would ever end.
        self._loop = cygrpc.get_working_loop()
        self._server = _Accepting(self._loop, None, (), tuple(interceptors), tuple(options), None)


def open_server(*, interceptors: Sequence[aio.ServerInterceptor], options: Sequence[tuple[str, Any]]) -> aio.Server:
    """A server as `aio.server` makes it, without handlers or ports."""
    if not hasattr(cygrpc.AioServer, "_request_registered_call"):
        _log.warning("this version of grpcio takes in calls one at a time; under overload some are CANCELLED")
        return aio.server(interceptors=interceptors, options=options)
    server: aio.Server = _Server(interceptors, options)
    return server


def register(server: aio.Server, service: str, handlers: Mapping[str, "grpc.RpcMethodHandler[Any, Any]"]) -> None:
    """Has a service's methods taken in side by side; to be called before the server is started.

    Args:
        server: Of `open_server`.
        service: Its full name.
        handlers: By the methods' names.
    """
    if not isinstance(server, _Server):
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, dict(handlers)),))
        return
    slots = {
        f"{name}{_SLOT_MARK}{slot}" if slot else name: handlers[name] for name in handlers for slot in range(SLOTS)
    }
    server.add_registered_method_handlers(service, slots)
