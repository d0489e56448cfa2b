"""What surrounds every request: its place, its id, the problem in place of an answer, log line and figures."""

import logging
import time
from typing import TYPE_CHECKING, Any, Final, Protocol

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gradewire_gateway.observing.figures import GatewayTelemetry
from gradewire_gateway.observing.log import RequestLog
from gradewire_gateway.problems import CLIENT_CLOSED, Problem, ProblemError
from gradewire_gateway.requests import RequestRecord, new_record
from gradewire_gateway.settings import GatewaySettings
from gradewire_gateway.wire.body import DisconnectedError
from gradewire_gateway.wire.bounding import Places
from gradewire_proto.conventions.metadata import REQUEST_ID_KEY

if TYPE_CHECKING:
    from gradewire_gateway.observing.spans import HttpTracer

_log = logging.getLogger(__name__)
_DEFECT: Final = Problem(500, "internal", "internal error; the gateway's log has the details under the request id")
_HEADERS: Final = {"x-content-type-options": "nosniff", "cache-control": "no-store"}


class Watched(Protocol):
    """What is asked of a gateway; see `Gateway`."""

    settings: GatewaySettings
    telemetry: GatewayTelemetry
    places: Places
    tracer: "HttpTracer | None"


class Observed:
    """ASGI middleware, the outermost.

    Args:
        app: What answers.
        gateway: Whose requests they are.
        log: Told of each that has ended.
    """

    def __init__(self, app: ASGIApp, gateway: Watched, log: RequestLog) -> None:
        self._app = app
        self._gateway = gateway
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request, whatever happens."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started_s = time.perf_counter()
        record = new_record(scope)
        telemetry, tracer = self._gateway.telemetry, self._gateway.tracer
        span = record.span = None if tracer is None else tracer.begin(scope)
        telemetry.in_flight.inc()
        try:
            await self._answer(scope, receive, _noting(record, send))
        finally:
            telemetry.in_flight.dec()
            duration_s = time.perf_counter() - started_s
            record.status = record.status or CLIENT_CLOSED
            exemplar = span.exemplar() if span is not None and span.call.sampled else None
            telemetry.finished(record.route, record.status, duration_s, exemplar)
            if tracer is not None and span is not None:
                tracer.end(span, record)
            self._log.add(record, scope["method"], duration_s)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        record: RequestRecord = scope["gradewire"]
        try:
            self._check_name(scope)
            with self._gateway.places.hold():
                await self._app(scope, receive, send)
        except DisconnectedError:
            record.code = "cancelled"
        except ProblemError as error:
            await _refuse(error.problem, record, scope, receive, send)
        except Exception:  # noqa: BLE001 - it is logged, and the caller is told where
            _log.exception("request %s failed by a defect", record.request_id)
            await _refuse(_DEFECT, record, scope, receive, send)

    def _check_name(self, scope: Scope) -> None:
        """Raises ProblemError where the caller addresses the gateway by a name that is not its own."""
        names = self._gateway.settings.listen.allowed_names
        name = _host_of(Headers(scope=scope).get("host", ""))
        if names and name not in names:
            detail = "the gateway does not go by the name in the header Host; http_api_names sets those that it goes by"
            raise ProblemError(Problem(421, "permission_denied", detail, "host"))


async def _refuse(problem: Problem, record: RequestRecord, scope: Scope, receive: Receive, send: Send) -> None:
    record.code = problem.code
    if not record.status:  # else the answer has begun, and all that is left is to end it
        await problem.response(record.request_id)(scope, receive, send)


def _noting(record: RequestRecord, send: Send) -> Send:
    async def noting(message: Message) -> None:
        if message["type"] == "http.response.start":
            record.status = message["status"]
            headers = MutableHeaders(raw=message.setdefault("headers", []))
            headers[REQUEST_ID_KEY] = record.request_id
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        else:
            body: Any = message.get("body", b"")
            record.reply_bytes += len(body)
        await send(message)

    return noting


def _host_of(header: str) -> str:
    """The name of ``NAME:PORT`` or ``[ADDRESS]:PORT``, in lower case."""
    name = header.rpartition("]")[0].lstrip("[") if header.startswith("[") else header.partition(":")[0]
    return name.lower()
