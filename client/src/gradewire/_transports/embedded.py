"""The transport to an engine in this process. Import this module on demand, because it loads server libraries."""

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from typing import Any, Self

from gradewire._fork_safety import keep_for_good
from gradewire._tracing import engine_trace
from gradewire._transports.failures import error_for
from gradewire.errors import InvalidRequest, NotReady, ServerFault
from gradewire.transport import COMPARE, COMPARE_STREAM, LIST_MODELS, PREPARE, SCORE, SCORE_STREAM, Q, R, RpcMethod
from gradewire_server.backends import open_handlers
from gradewire_server.encoders.factory import check_installed
from gradewire_server.requests.errors import OverloadedError, RequestError
from gradewire_server.requests.handlers import Handlers
from gradewire_server.rpc.errors import ERROR_TABLE
from gradewire_server.settings.server import Settings
from gradewire_server.settings.setting import SettingsError

_HERE = "the engine in this process"


class EmbeddedTransport:
    """A transport that calls the server's handlers in this process. Results and errors are the same as on a server.

    Args:
        settings: The server's settings, by name.

    Raises:
        InvalidRequest: A setting is unknown or invalid.
        ImportError: A library that the engine needs is not installed.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._given = dict(settings)
        try:
            self._settings = Settings.load(**settings)
        except SettingsError as error:
            raise InvalidRequest(f"embedded: {error}") from None
        check_installed(self._settings.engine)  # report missing libraries now, not at the first call
        self._holder: _Holder | None = None

    def __reduce__(self) -> tuple[type[Self], tuple[dict[str, Any]]]:
        return type(self), (self._given,)

    async def unary(self, method: RpcMethod[Q, R], request: Q, *, timeout_s: float) -> R:
        handlers = await self._open()
        with _translated(), engine_trace():
            reply: R = await _call(handlers, method)(request, deadline_s=timeout_s)
        return reply

    async def stream(
        self, method: RpcMethod[Q, R], sent: Q | AsyncIterator[Q], *, timeout_s: float | None = None
    ) -> AsyncGenerator[R]:
        handlers = await self._open()
        with _translated(), engine_trace():
            async with contextlib.aclosing(_call(handlers, method)(sent, deadline_s=timeout_s)) as replies:
                async for reply in replies:
                    yield reply

    async def close(self) -> None:
        holder, self._holder = self._holder, None
        if holder is not None and holder.is_here():
            await holder.close()

    async def _open(self) -> Handlers:
        if self._holder is not None and self._holder.pid != os.getpid():
            # Stores and sessions of LMDB and ONNX Runtime do not work after a fork, so the child opens new ones.
            keep_for_good(self._holder)
            self._holder = None
        if self._holder is None or not self._holder.is_here():
            self._holder = _Holder(self._settings)
        try:
            return await self._holder.handlers()
        except OSError as error:
            self._holder = None
            raise NotReady(f"the engine in this process cannot open its files: {error}") from None
        except ValueError as error:  # some settings are checked only when the engine uses them
            self._holder = None
            raise InvalidRequest(f"the engine in this process cannot start: {error}") from error


def _call(handlers: Handlers, method: RpcMethod[Q, R]) -> Callable[..., Any]:
    by_method: dict[RpcMethod[Any, Any], Callable[..., Any]] = {
        SCORE: handlers.score,
        SCORE_STREAM: handlers.score_stream,
        COMPARE: handlers.compare,
        COMPARE_STREAM: handlers.compare_stream,
        PREPARE: handlers.prepare,
        LIST_MODELS: lambda _request, deadline_s: handlers.list_models(),  # noqa: ARG005 - needs no deadline
    }
    return by_method[method]


class _Holder:
    """The open handlers. The same task must open and close handlers, so a separate task does both."""

    def __init__(self, settings: Settings) -> None:
        self.pid = os.getpid()
        self.loop = asyncio.get_running_loop()
        self._settings = settings
        self._opened: asyncio.Future[Handlers] = self.loop.create_future()
        self._closing = asyncio.Event()
        self._task = asyncio.create_task(self._hold())

    def is_here(self) -> bool:
        """Return True if the handlers were opened in this process on the running loop, and can therefore be used."""
        return self.pid == os.getpid() and self.loop is asyncio.get_running_loop()

    async def handlers(self) -> Handlers:
        return await asyncio.shield(self._opened)

    async def close(self) -> None:
        self._closing.set()
        await self._task

    async def _hold(self) -> None:
        try:
            async with open_handlers(self._settings) as handlers:
                self._opened.set_result(handlers)
                await self._closing.wait()
        except BaseException as error:
            if self._opened.done():
                raise
            self._opened.set_exception(error)


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except RequestError as error:
        code = ERROR_TABLE[type(error)].name
        retry_after_s = error.retry_after_s if isinstance(error, OverloadedError) else None
        failure = error_for(code, str(error), _HERE, retry_after_s=retry_after_s)
        raise failure from (error if isinstance(failure, ServerFault) else None)
