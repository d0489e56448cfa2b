"""Log, metrics and middleware of requests: one JSON line each, stable names, a problem in place of an error."""

import json
import logging
import random
import sys
import time
from typing import TYPE_CHECKING, Any, Final, Protocol, TextIO

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gradewire_gateway.body import DisconnectedError, RequestLimit
from gradewire_gateway.problems import CLIENT_CLOSED, Problem, ProblemError
from gradewire_gateway.requests import RequestRecord, new_record
from gradewire_gateway.settings import GatewaySettings
from gradewire_proto.wire_rules import REQUEST_ID_KEY

if TYPE_CHECKING:
    from gradewire_gateway.telemetry import HttpTracer


_DURATION_BUCKETS_S: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 300)
_NO_ROUTE: Final = "other"


class GatewayTelemetry:
    """Registers them in a registry of its own; labels are bounded: routes of the gateway and statuses of HTTP.

    Attributes:
        registry: What ``/metrics`` shows.
        in_flight: Requests being answered.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._requests = Counter(
            "gradewire_gateway_requests",
            "HTTP requests that have ended, by route and status; 499: the caller went away.",
            ("route", "status"),
            registry=self.registry,
        )
        self._duration = Histogram(
            "gradewire_gateway_request_duration_seconds",
            "Time from a request's head to the end of its answer.",
            ("route",),
            registry=self.registry,
            buckets=_DURATION_BUCKETS_S,
        )
        self.in_flight = Gauge(
            "gradewire_gateway_requests_in_flight", "HTTP requests being answered.", registry=self.registry
        )

    def finished(self, route: str, status: int, duration_s: float, exemplar: dict[str, str] | None = None) -> None:
        """Counts a request that has ended.

        Args:
            route: Empty where the gateway has none such.
            status: Of HTTP.
            duration_s: Seconds that it took.
            exemplar: Leads to its trace; None where there is none.
        """
        self._requests.labels(route or _NO_ROUTE, str(status)).inc()
        self._duration.labels(route or _NO_ROUTE).observe(duration_s, exemplar)


_PER_S: Final = 200
"""Requests that are logged in a second; of the others one line tells the number."""
_MAX_CHARACTERS: Final = 256
_MAX_EVENT_CHARACTERS: Final = 4096
_MAX_TRACEBACK_CHARACTERS: Final = 8192
_SERVER_FAULTS: Final = 500


class RequestLog:
    """Writes a line for each request that has ended; successful ones by a share, and so many a second in all.

    Args:
        share: Of successful requests, 0 to 1.
        stream: Where to.
    """

    def __init__(self, share: float = 1.0, stream: TextIO | None = None) -> None:
        self._share = share
        self._stream = stream or sys.stderr
        self._second = 0
        self._written = 0
        self._left_out = 0

    def add(self, record: RequestRecord, method: str, duration_s: float) -> None:
        """Logs a request that has ended."""
        fine = record.status < 400 and record.code == "ok"
        if fine and self._share < 1.0 and random.random() >= self._share:  # noqa: S311 - a sample
            return
        now_s = time.time()
        if int(now_s) != self._second:
            self._tell_left_out()
            self._second, self._written = int(now_s), 0
        if self._written >= _PER_S:
            self._left_out += 1
            return
        self._written += 1
        self._write(
            {
                "time": _iso(now_s),
                "level": "info" if fine else "error" if record.status >= _SERVER_FAULTS else "warning",
                "event": "request",
                "request_id": record.request_id,
                "method": method,
                "route": record.route or "other",
                "status": record.status,
                "code": record.code,
                "duration_s": round(duration_s, 6),
                "request_bytes": record.request_bytes,
                "reply_bytes": record.reply_bytes,
                "peer": record.peer[:_MAX_CHARACTERS],
            }
        )

    def close(self) -> None:
        """Tells how many were left out."""
        self._tell_left_out()

    def _tell_left_out(self) -> None:
        if self._left_out:
            line = {"time": _iso(time.time()), "level": "warning", "event": "requests left out"}
            self._write(line | {"requests": self._left_out})
            self._left_out = 0

    def _write(self, line: dict[str, Any]) -> None:
        self._stream.write(json.dumps(line) + "\n")
        self._stream.flush()


class JsonFormatter(logging.Formatter):
    """Messages of the gateway and of what it runs on."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        line = {
            "time": _iso(record.created),
            "level": record.levelname.lower(),
            "event": record.getMessage()[:_MAX_EVENT_CHARACTERS],
            "logger": record.name,
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)[-_MAX_TRACEBACK_CHARACTERS:]
        return json.dumps(line)


def configure_log(level: str) -> None:
    """Sends what is logged to stderr as JSON lines."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # It tells of each broken request and of its own start and stop: figures and our own lines say what matters.
    logging.getLogger("uvicorn").setLevel(logging.ERROR)


def _iso(time_s: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time_s)) + f".{int(time_s % 1 * 1000):03d}Z"


_log = logging.getLogger(__name__)
_DEFECT: Final = Problem(500, "internal", "internal error; the gateway's log has the details under the request id")
_HEADERS: Final = {"x-content-type-options": "nosniff", "cache-control": "no-store"}


class Watched(Protocol):
    """What is asked of a gateway; see `Gateway`."""

    settings: GatewaySettings
    telemetry: GatewayTelemetry
    places: RequestLimit
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
