"""The process that runs the judges for several server processes: `python -m gradewire_server.judge_host FD`.

FD is this process's end of the connection to the supervisor. Each judge runs in a separate worker process, which starts
when the judge is first used.
"""

import asyncio
import logging
import socket
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack
from typing import Any, Final, TypeAlias, TypeVar

import grpc
from grpc import aio
from prometheus_client import CollectorRegistry, ProcessCollector

from gradewire_proto.tracing.spans import TRACEPARENT_KEY, TRACESTATE_KEY
from gradewire_server.domain.caller import set_current_caller
from gradewire_server.domain.items import Failure
from gradewire_server.domain.ports import JudgeReply, ModelStatus
from gradewire_server.judges import service
from gradewire_server.judges.backend import Judge, JudgeBackend, failed_reply
from gradewire_server.judges.factory import NoJudges
from gradewire_server.judges.local.judge import EmbeddedJudges
from gradewire_server.judges.prometheus import JudgeTelemetry
from gradewire_server.judges.shared import (
    ASK_REPLY,
    ASK_REQUEST,
    NAME,
    OPEN_REPLY,
    SERVICE,
    STATE,
    UNBOUNDED,
    HostRequest,
    HostState,
    Stopping,
    path,
)
from gradewire_server.judges.wrappers import TIMED_OUT, CheckedJudge, QueueLimit, SingleFlightJudge
from gradewire_server.process import Phase, Reporter, Stop, unless
from gradewire_server.processes.child import Child, StartMessage, run_to_exit
from gradewire_server.rpc.log import FloodFilter
from gradewire_server.settings.server import Settings
from gradewire_server.settings.setting import SettingsError
from gradewire_server.tracing import CallTracer, TraceHeaders, open_call_tracer

_log = logging.getLogger(__name__)

_STATE_CHECK_EVERY_S: Final = 0.1
"""Seconds between checks. A worker's restart takes longer, so health shows each restart."""
_LAST_REPLIES_S: Final = 1.0
"""Timeout for the replies that send waiting callers to the next host."""

_Context: TypeAlias = aio.ServicerContext[Any, Any]
R = TypeVar("R")


class JudgeHost:
    """The judges that several server processes share. Judges open at first use, and answer equal questions only once.

    `max_queue_items` limits the questions in progress, for all processes and judges together. Use the host on the event
    loop that created it. `stop` closes the backend.
    """

    def __init__(self, backend: JudgeBackend, *, max_queue_items: int, tracer: CallTracer | None = None) -> None:
        limit = QueueLimit(max_queue_items)

        def wrapped(judge: Judge) -> Judge:
            return SingleFlightJudge(CheckedJudge(judge), limit)

        self._library = service.JudgeLibrary(backend, default="", wrap=wrapped)
        self._tracer = tracer
        self._models: set[str] = set()
        self._stopping = asyncio.Event()
        self._state = HostState({}, {})
        self._changed = asyncio.Event()
        self._looking = asyncio.create_task(self._report_changes())
        self._server = aio.server(options=[*UNBOUNDED, ("grpc.so_reuseport", 0)])
        self._server.add_generic_rpc_handlers((self._handlers(),))

    async def start(self, address: str) -> None:
        """Listen at ``unix:PATH``, in a directory that only this user can enter.

        Raises:
            RuntimeError: gRPC cannot listen at the address.
        """
        self._server.add_insecure_port(address)
        await self._server.start()

    async def stop(self) -> None:
        """Send all callers to the next host, even callers with questions in progress, and close the judges."""
        self._stopping.set()
        await self._server.stop(_LAST_REPLIES_S)
        self._looking.cancel()
        await self._library.close()

    def _handlers(self) -> grpc.GenericRpcHandler:
        unary, stream = grpc.unary_unary_rpc_method_handler, grpc.unary_stream_rpc_method_handler
        return grpc.method_handlers_generic_handler(
            SERVICE,
            {
                "Open": unary(self._open, NAME.validate_json, OPEN_REPLY.dump_json),
                "Ask": unary(self._ask, ASK_REQUEST.validate_json, ASK_REPLY.dump_json),
                "Watch": stream(self._watch, NAME.validate_json, STATE.dump_json),
            },
        )

    async def _open(self, name: str, _: _Context) -> ModelStatus | Failure | Stopping:
        judge = await self._unless_stopping(self._judge(name))
        return judge if isinstance(judge, Failure | Stopping) else judge.status

    async def _ask(self, request: HostRequest, context: _Context) -> JudgeReply[Any] | Stopping:
        set_current_caller(request.caller)  # each question has its own task
        return await self._unless_stopping(self._trace(request, context))

    async def _unless_stopping(self, work: Coroutine[Any, Any, R]) -> R | Stopping:
        result = await unless(self._stopping, work)
        return Stopping.STOPPING if result is None else result

    async def _trace(self, request: HostRequest, context: _Context) -> JudgeReply[Any]:
        headers = dict(context.invocation_metadata() or ())
        traceparent, span = headers.get(TRACEPARENT_KEY), None
        if self._tracer is not None and isinstance(traceparent, str):
            trace = TraceHeaders(traceparent, str(headers.get(TRACESTATE_KEY, "")))
            span = self._tracer.begin(path("Ask").removeprefix("/"), trace)
        try:
            return await self._reply_to(request)
        finally:
            if span is not None:
                span.end()

    async def _reply_to(self, request: HostRequest) -> JudgeReply[Any]:
        need, deadline_s = request.need, request.deadline_s
        try:
            async with asyncio.timeout_at(deadline_s):  # the loop's clock is also the deadline's
                judge = await self._judge(need.model)
        except TimeoutError:
            return failed_reply(TIMED_OUT)
        if isinstance(judge, Failure):
            return failed_reply(judge)
        return await judge.answer(need, deadline_s=deadline_s)

    async def _judge(self, reference: str) -> Judge | Failure:
        self._models.add(reference.partition("@")[0])
        return await self._library.get(reference)

    async def _watch(self, _: str, __: _Context) -> AsyncIterator[HostState]:
        shown: HostState | None = None
        while not self._stopping.is_set():
            changed, state = self._changed, self._state
            if state != shown:
                shown = state
                yield state
                continue
            await unless(self._stopping, changed.wait())

    async def _report_changes(self) -> None:
        while True:
            loaded = {name: judge.status for name, judge in self._library.loaded.items()}
            troubles = {name: trouble for name in self._models if (trouble := self._library.trouble(name))}
            state = HostState(loaded, troubles)
            if state != self._state:
                self._state = state
                self._changed.set()
                self._changed = asyncio.Event()
            await asyncio.sleep(_STATE_CHECK_EVERY_S)


class _Readiness(Reporter):
    def __init__(self) -> None:
        self.phase = Phase.LOADING

    @property
    def ready(self) -> bool:
        return self.phase is Phase.SERVING

    def report(self) -> dict[str, Any]:
        """Return only the phase, because the server processes report the judges' health."""
        return {"phase": self.phase.value, "degraded": [], "judging": None}


async def host_judges(settings: Settings, child: Child, stop: Stop) -> None:
    """Run the judges until `stop` is requested. Do nothing if the settings no longer have an embedded judge.

    Raises:
        RuntimeError: gRPC cannot listen at the judge host's address.
    """
    judge = settings.engine.judge
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    readiness = _Readiness()
    async with AsyncExitStack() as stack:
        tracer = await stack.enter_async_context(open_call_tracer(settings.tracing.settings(), registry))
        await stack.enter_async_context(child.joined(registry, readiness))
        telemetry = JudgeTelemetry(registry)
        judges = NoJudges() if judge.embedded is None else EmbeddedJudges(judge.embedded, telemetry)
        host = JudgeHost(judges, max_queue_items=judge.max_queue_items, tracer=tracer)
        stack.push_async_callback(host.stop)
        await host.start(child.position.judges)
        readiness.phase = Phase.SERVING
        _log.info("the judge host is serving")
        await stop.requested.wait()
        readiness.phase = Phase.DRAINING


def main() -> int:
    """Run the judges until the supervisor stops this process or ends; return the exit code."""
    start = StartMessage.read()
    try:
        settings = Settings.load(**start.values)
    except SettingsError as error:
        sys.stderr.write(f"the judge host cannot start: {error}\n")
        return 2
    stop = Stop()
    child = Child(start.position, socket.socket(fileno=int(sys.argv[1])), stop)

    async def until_signal(_flood: FloodFilter) -> None:
        stop.listen(stop.request)
        await host_judges(settings, child, stop)

    return run_to_exit(until_signal, settings.log.level)


if __name__ == "__main__":
    sys.exit(main())
