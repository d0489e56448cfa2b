"""The gateway's metrics, and its request log with one JSON line for each request."""

import asyncio
import json
import logging
import sys
import time
from collections import Counter as Counts
from http import HTTPMethod
from typing import Any, Final, TextIO

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

from gradewire_gateway.requests import RequestRecord

_DURATION_BUCKETS_S: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 300)
_OTHER: Final = "other"
"""The name that stands for every path that the gateway does not have, and for every method that HTTP lacks."""


class GatewayTelemetry:
    """The gateway's metrics, in a separate registry. Labels contain only routes and HTTP statuses."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._requests = Counter(
            "gradewire_gateway_requests",
            "Finished HTTP requests by route and status; 499 means that the caller disconnected.",
            ("route", "status"),
            registry=self.registry,
        )
        self._duration = Histogram(
            "gradewire_gateway_request_duration_seconds",
            "Time from the head of a request to the end of the reply.",
            ("route",),
            registry=self.registry,
            buckets=_DURATION_BUCKETS_S,
        )
        self.in_flight = Gauge(
            "gradewire_gateway_requests_in_flight", "HTTP requests in flight.", registry=self.registry
        )

    def finished(self, route: str, status: int, duration_s: float, exemplar: dict[str, str] | None = None) -> None:
        """Count a finished request. `route` is empty if the gateway does not have the path."""
        self._requests.labels(route or _OTHER, str(status)).inc()
        self._duration.labels(route or _OTHER).observe(duration_s, exemplar)


_PER_S: Final = 200
"""Maximum number of requests to log per second for each method and status."""
_SECOND_S: Final = 1.0
_MAX_CHARACTERS: Final = 256
_MAX_EVENT_CHARACTERS: Final = 4096
_MAX_TRACEBACK_CHARACTERS: Final = 8192
_SERVER_FAULTS: Final = 500


class RequestLog:
    """The log of finished requests at or above `level`, with a limit per second. Successes have level info.

    The limit applies to each method and status, so that a flood of one kind does not hide the others. At the end of a
    second, one line for each kind above the limit counts the omitted requests.
    """

    def __init__(self, level: str = "info", stream: TextIO | None = None) -> None:
        self._level = logging.getLevelNamesMapping()[level.upper()]
        self._stream = stream or sys.stderr
        self._seen: Counts[tuple[str, int]] = Counts()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, record: RequestRecord, method: str, duration_s: float) -> None:
        """Log a finished request. Call `add` on the event loop."""
        fine = record.status < 400 and record.code == "ok"
        # A health check that reports a server that is not ready has worked: its code is ok, its status 503.
        is_fault = record.status >= _SERVER_FAULTS and record.code != "ok"
        level = logging.INFO if fine else logging.ERROR if is_fault else logging.WARNING
        if level < self._level:
            return
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_SECOND_S, self.close)
        method = method if method in HTTPMethod.__members__ else _OTHER  # callers may invent any number of methods
        self._seen[method, record.status] += 1
        if self._seen[method, record.status] > _PER_S:
            return
        self._write(
            {
                "time": _iso(time.time()),
                "level": logging.getLevelName(level).lower(),
                "event": "request",
                "request_id": record.request_id,
                "method": method,
                "route": record.route or _OTHER,
                "status": record.status,
                "code": record.code,
                "duration_s": round(duration_s, 6),
                "request_bytes": record.request_bytes,
                "reply_bytes": record.reply_bytes,
                "peer": record.peer[:_MAX_CHARACTERS],
            }
        )

    def close(self) -> None:
        """End the current second: log the numbers of omitted requests, and start counting from 0."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for (method, status), count in self._seen.items():
            if count > _PER_S:
                line = {"time": _iso(time.time()), "level": "warning", "event": "requests left out"}
                self._write(line | {"method": method, "status": status, "requests": count - _PER_S})
        self._seen.clear()

    def _write(self, line: dict[str, Any]) -> None:
        self._stream.write(json.dumps(line) + "\n")
        self._stream.flush()


class JsonFormatter(logging.Formatter):
    """A formatter that writes log messages of the gateway and its libraries in JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the message on one line."""
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
    """Write all log messages to stderr as JSON lines."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # uvicorn logs each broken request and its own start and stop; our metrics and log lines already cover these.
    logging.getLogger("uvicorn").setLevel(logging.ERROR)


def _iso(time_s: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time_s)) + f".{int(time_s % 1 * 1000):03d}Z"
