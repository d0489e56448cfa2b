"""A gRPC server that begins every call of a method as soon as gRPC has it.

grpc.aio takes in one call of a method, and the next when that is done, which needs five rounds of the event loop. Where
the rounds are long, for there is much to score, a server takes in fewer calls than come: they wait inside gRPC, where
nobody can refuse them, until it drops them as CANCELLED. Here several takers ask for calls side by side, and each asks
for the next one at once. So calls wait where they are seen, and each knows what it waited for its first step, which is
two rounds of the loop: `waited_s`.

gRPC has no option for this. It uses names of grpc.aio's own; with a version that has other ones, calls are taken in one
at a time, and nothing is known of what they waited.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any, Final, NamedTuple, cast

import grpc
from grpc import aio
from grpc._cython import cygrpc  # type: ignore[attr-defined] # no types, and no public name
from typing_extensions import override

from gradewire_proto.conventions.grpc_wakeups import drain_wakeups

_log = logging.getLogger(__name__)

TAKERS: Final = 2
"""Calls of one method that are asked for side by side. With 16 the rounds are longer: at twice the capacity 79 % of it
was scored and the slowest hundredth of refusals took 115 ms; with 2, 85 to 90 % and 40 ms (docs/adr/0035)."""
MOST_TAKERS: Final = 64
"""The same while rounds of the loop are long, so that few calls wait inside gRPC."""
_LONG_S: Final = 0.01
"""A first step that comes so late means long rounds."""
_IDLE_S: Final = 1.0
"""A taker that waits so long for a call ends, where there are more than usual."""
_NEEDED: Final = {
    "_schedule_rpc_coro": ("rpc_coro", "rpc_state", "loop"),
    "_handle_stream_unary_rpc": ("method_handler", "rpc_state", "loop"),
}
"""Functions of grpc.aio, and their first arguments."""
_METHOD_NAME: Final = "method_name"
"""A further argument of the first one, in some versions."""
_CORE_METHODS: Final = ("_request_registered_call", "add_registered_method_handlers", "start")
_Core: Final[Any] = getattr(cygrpc, "AioServer", object)
_Public: Final[Any] = getattr(getattr(aio, "_server", None), "Server", object)
"""The class behind `aio.server`."""


class _Taken(NamedTuple):
    """When a call was taken in, by `time.perf_counter`, and what adds takers of its method."""

    at_s: float
    add_takers: Callable[[], None]


_taken: Final[ContextVar[_Taken]] = ContextVar("taken")


def waited_s(now_s: float) -> float | None:
    """Seconds that the call of this task has waited for its first step, which this is; None where that is not known.

    Args:
        now_s: By `time.perf_counter`.
    """
    taken = _taken.get(None)
    if taken is None:
        return None
    passed_s = now_s - taken.at_s
    if passed_s > _LONG_S:
        taken.add_takers()
    return passed_s


class _Accepting(_Core):  # type: ignore[misc] # no types
    """Has takers for some methods."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *rest: object) -> None:
        super().__init__(loop, *rest)
        self._taken: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}
        self._takers: dict[str, int] = {}
        self._working: set[asyncio.Task[None]] = set()
        self._end: asyncio.Future[object] = loop.create_future()

    def add_takers(self, handlers: Mapping[str, "grpc.RpcMethodHandler[Any, Any]"]) -> None:
        """Has these methods, by full name, taken in side by side once the server is started."""
        self.add_registered_method_handlers(dict(handlers))
        self._taken.update(handlers)

    async def _request_registered_call(self, method: bytes) -> object:
        """What gRPC's own loop awaits: a call of a method without takers, or the end."""
        if method.decode() not in self._taken:
            return await super()._request_registered_call(method)
        return await asyncio.shield(self._end)

    async def start(self) -> None:
        await super().start()
        for method in self._taken:
            self._add(method, TAKERS)

    def _add(self, method: str, count: int) -> None:
        """Adds takers of a method, up to the most that there may be."""
        takers = self._takers.get(method, 0)
        count = min(count, MOST_TAKERS - takers)
        self._takers[method] = takers + count
        for _ in range(count):
            self._begin(self._take(method))

    async def _take(self, method: str) -> None:
        loop, name, handler = asyncio.get_running_loop(), method.encode(), self._taken[method]
        schedule, handle = cygrpc._schedule_rpc_coro, cygrpc._handle_stream_unary_rpc  # noqa: SLF001 - see above
        named = (method,) if _METHOD_NAME in schedule.__code__.co_varnames else ()
        add_takers = partial(self._add, method, TAKERS)
        try:
            while True:
                asked_s = time.perf_counter()
                state = await super()._request_registered_call(name)
                taken = _Taken(time.perf_counter(), add_takers)
                _taken.set(taken)
                self._begin(schedule(handle(handler, state, loop), state, loop, *named))
                if taken.at_s - asked_s > _IDLE_S and self._takers[method] > TAKERS:
                    self._takers[method] -= 1
                    return
        except Exception as error:  # noqa: BLE001 - the server stops; gRPC's own loop knows its errors
            if not self._end.done():
                self._end.set_exception(error)
                self._end.exception()  # which is no defect where that loop has ended already

    def _begin(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._working.add(task)  # the loop itself keeps no task
        task.add_done_callback(self._working.discard)


class _Server(_Public):  # type: ignore[misc] # no public name
    """`aio.server`'s, around the class above."""

    @override
    def __init__(self, interceptors: Sequence[aio.ServerInterceptor], options: Sequence[tuple[str, Any]]) -> None:
        # Not the base's, which makes a server of gRPC's core that nothing would ever end.
        self._loop = cygrpc.get_working_loop()
        self._server = _Accepting(self._loop, None, (), tuple(interceptors), tuple(options), None)


def open_server(*, interceptors: Sequence[aio.ServerInterceptor], options: Sequence[tuple[str, Any]]) -> aio.Server:
    """A server as `aio.server` makes it, without handlers or ports."""
    server = _open_known(interceptors, options) if _is_known() else None
    if server is None:
        _log.warning("this version of grpcio takes in calls one at a time; under overload some are CANCELLED")
        server = aio.server(interceptors=interceptors, options=options)
    drain_wakeups(asyncio.get_running_loop())
    return server


def _open_known(interceptors: Sequence[aio.ServerInterceptor], options: Sequence[tuple[str, Any]]) -> aio.Server | None:
    """The server with takers; None where grpc.aio makes servers in another way."""
    try:
        return cast("aio.Server", _Server(interceptors, options))
    except (AttributeError, TypeError) as error:
        _log.warning("grpcio makes servers in another way than is known here: %s", error)
        return None


def register(server: aio.Server, service: str, handlers: Mapping[str, "grpc.RpcMethodHandler[Any, Any]"]) -> None:
    """Has a service's methods taken in side by side; to be called once, before the server is started.

    Interceptors are not asked about these calls.

    Args:
        server: Of `open_server`.
        service: Its full name.
        handlers: By the methods' names; of those with many requests and one reply.
    """
    if isinstance(server, _Server):
        server._server.add_takers({f"/{service}/{name}": handler for name, handler in handlers.items()})  # noqa: SLF001 - its own class
    else:
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, dict(handlers)),))


def _is_known() -> bool:
    """Whether this version of grpc.aio has what is needed of it."""
    if _Public is object or not all(hasattr(_Core, name) for name in _CORE_METHODS):
        return False
    return all(
        getattr(getattr(cygrpc, name, None), "__code__", None) is not None
        and getattr(cygrpc, name).__code__.co_varnames[: len(arguments)] == arguments
        for name, arguments in _NEEDED.items()
    )
