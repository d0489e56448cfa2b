"""The host's side: answers the questions of all server processes with judges of its own."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any, Final, TypeAlias, TypeVar

import grpc
from grpc import aio

from gradewire_proto.spans import TRACEPARENT_KEY, TRACESTATE_KEY
from gradewire_server.domain.caller import set_current_caller
from gradewire_server.domain.items import Failure
from gradewire_server.domain.judge import Choose
from gradewire_server.domain.ports import ModelStatus
from gradewire_server.judges import service
from gradewire_server.judges.backend import Judge, JudgeBackend
from gradewire_server.judges.shared.messages import (
    ANSWERED,
    ASKED,
    NAME,
    OPENED,
    SERVICE,
    STATE,
    UNBOUNDED,
    HostReply,
    HostRequest,
    HostState,
    Stopping,
    path,
)
from gradewire_server.judges.wrappers import TIMED_OUT, CheckedJudge, QueueLimit, SingleFlightJudge
from gradewire_server.tracing import CallTracer, TraceHeaders

_LOOK_EVERY_S: Final = 0.1
"""Less than a judge's worker takes to restart, so that health shows each restart."""
_LAST_REPLIES_S: Final = 1.0
"""Seconds in which those who wait are told to ask the next host."""

_Context: TypeAlias = aio.ServicerContext[Any, Any]
R = TypeVar("R")


class JudgeHost:
    """Judges for several server processes: opened at their first use, asked once for all who ask the same.

    Lives on the event loop it was made on.

    Args:
        backend: Where the judges run; closed with this.
        max_queue_items: How many questions may be under way, over all processes and judges.
        tracer: Of questions that are traced; None: none is.
    """

    def __init__(self, backend: JudgeBackend, *, max_queue_items: int, tracer: CallTracer | None = None) -> None:
        limit = QueueLimit(max_queue_items)

        def wrapped(judge: Judge) -> Judge:
            return SingleFlightJudge(CheckedJudge(judge), limit)

        self._library = service.JudgeLibrary(backend, default="", wrap=wrapped)
        self._tracer = tracer
        self._asked: set[str] = set()
        self._stopping: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._state = HostState({}, {})
        self._changed = asyncio.Event()
        self._looking = asyncio.create_task(self._look())
        self._server = aio.server(options=[*UNBOUNDED, ("grpc.so_reuseport", 0)])
        self._server.add_generic_rpc_handlers((self._handlers(),))

    async def start(self, address: str) -> None:
        """Takes questions.

        Args:
            address: ``unix:PATH``, in a directory that only this user can enter.

        Raises:
            RuntimeError: gRPC cannot listen there.
        """
        self._server.add_insecure_port(address)
        await self._server.start()

    async def stop(self) -> None:
        """Sends everybody to the next host, what is at work included, and closes the judges."""
        if not self._stopping.done():
            self._stopping.set_result(None)
        await self._server.stop(_LAST_REPLIES_S)
        self._looking.cancel()
        await self._library.close()

    def _handlers(self) -> grpc.GenericRpcHandler:
        handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
            "Open": grpc.unary_unary_rpc_method_handler(
                self._open, request_deserializer=NAME.decode, response_serializer=OPENED.encode
            ),
            "Ask": grpc.unary_unary_rpc_method_handler(
                self._ask, request_deserializer=ASKED.decode, response_serializer=ANSWERED.encode
            ),
            "Watch": grpc.unary_stream_rpc_method_handler(
                self._watch, request_deserializer=NAME.decode, response_serializer=STATE.encode
            ),
        }
        return grpc.method_handlers_generic_handler(SERVICE, handlers)

    async def _open(self, name: str, _: _Context) -> ModelStatus | Failure | Stopping:
        judge = await self._unless_stopping(self._judge(name))
        return judge if isinstance(judge, Failure | Stopping) else judge.status

    async def _ask(self, asked: HostRequest, context: _Context) -> HostReply | Stopping:
        set_current_caller(asked.caller)  # each question is a task of its own
        return await self._unless_stopping(self._traced(asked, context))

    async def _unless_stopping(self, work: Coroutine[Any, Any, R]) -> R | Stopping:
        working = asyncio.ensure_future(work)
        try:
            await asyncio.wait((working, self._stopping), return_when=asyncio.FIRST_COMPLETED)
            return working.result() if working.done() else Stopping.STOPPING
        finally:
            working.cancel()

    async def _traced(self, asked: HostRequest, context: _Context) -> HostReply:
        headers = dict(context.invocation_metadata() or ())
        traceparent = headers.get(TRACEPARENT_KEY)
        if self._tracer is None or not isinstance(traceparent, str):
            return await self._answered(asked)
        trace = TraceHeaders(traceparent, str(headers.get(TRACESTATE_KEY, "")))
        span = self._tracer.begin(path("Ask").removeprefix("/"), trace)
        try:
            return await self._answered(asked)
        finally:
            if span is not None:
                span.end()

    async def _answered(self, asked: HostRequest) -> HostReply:
        need, deadline_s = asked.need, asked.deadline_s
        try:
            async with asyncio.timeout_at(deadline_s):  # loop.time() is time.monotonic()
                judge = await self._judge(need.model)
        except TimeoutError:
            return HostReply(TIMED_OUT)
        if isinstance(judge, Failure):
            return HostReply(judge)
        if isinstance(need, Choose):
            chosen = await judge.choose(need, deadline_s=deadline_s)
            return HostReply(chosen.answer, chosen.source, chosen.timing)
        generated = await judge.generate(need, deadline_s=deadline_s)
        return HostReply(generated.answer, generated.source, generated.timing)

    async def _judge(self, reference: str) -> Judge | Failure:
        self._asked.add(reference.partition("@")[0])
        return await self._library.get(reference)

    async def _watch(self, _: str, __: _Context) -> AsyncIterator[HostState]:
        shown: HostState | None = None
        while not self._stopping.done():
            changed, state = self._changed, self._state
            if state != shown:
                shown = state
                yield state
                continue
            waiting = asyncio.ensure_future(changed.wait())
            try:
                await asyncio.wait((waiting, self._stopping), return_when=asyncio.FIRST_COMPLETED)
            finally:
                waiting.cancel()

    async def _look(self) -> None:
        """Tells those who watch of each change."""
        while True:
            loaded = {name: judge.status for name, judge in self._library.loaded.items()}
            troubles = {name: trouble for name in self._asked if (trouble := self._library.trouble(name))}
            state = HostState(loaded, troubles)
            if state != self._state:
                self._state = state
                self._changed.set()
                self._changed = asyncio.Event()
            await asyncio.sleep(_LOOK_EVERY_S)
