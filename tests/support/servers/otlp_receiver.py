"""A real receiver of OTLP over gRPC on a real socket, which keeps what it is sent."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import grpc
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2, logs_service_pb2_grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

_WAIT_S = 20.0
F = TypeVar("F")


@dataclass(frozen=True)
class SeenSpan:
    """One span, as it came."""

    service: str
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    kind: str
    failed: bool
    attributes: dict[str, Any]
    links: list[str]
    start_ns: int
    end_ns: int


@dataclass(frozen=True)
class SeenEvent:
    """One event, as it came."""

    service: str
    name: str
    trace_id: str
    span_id: str
    attributes: dict[str, Any]


@dataclass
class OtlpReceiver:
    """What has come so far.

    Attributes:
        endpoint: Where to send.
    """

    endpoint: str = ""
    spans: list[SeenSpan] = field(default_factory=list)
    events: list[SeenEvent] = field(default_factory=list)
    arrived: threading.Condition = field(default_factory=threading.Condition)

    def wait_for(self, find: Callable[["OtlpReceiver"], F | None]) -> F:
        """Waits until `find` gives something true, and returns it."""
        ends_s = time.monotonic() + _WAIT_S
        with self.arrived:
            while not (found := find(self)):
                if not self.arrived.wait(max(0.0, ends_s - time.monotonic())):
                    raise AssertionError(f"not among {[span.name for span in self.spans]}, {self.events}")
            return found

    def trace_with(self, trace_id: str, *names: str) -> dict[str, SeenSpan]:
        """The spans of a trace by name, once those named are all there."""

        def found(_: "OtlpReceiver") -> dict[str, SeenSpan] | None:
            spans = {span.name: span for span in self.spans if span.trace_id == trace_id}
            return spans if spans.keys() >= set(names) else None

        return self.wait_for(found)

    def spans_named(self, trace_id: str, name: str, count: int) -> list[SeenSpan]:
        """The spans of that name in a trace, once there are so many."""

        def found(_: "OtlpReceiver") -> list[SeenSpan] | None:
            spans = [span for span in self.spans if (span.trace_id, span.name) == (trace_id, name)]
            return spans if len(spans) >= count else None

        return self.wait_for(found)

    def events_of(self, trace_id: str, count: int) -> list[SeenEvent]:
        """The events of a trace, once there are so many."""

        def found(_: "OtlpReceiver") -> list[SeenEvent] | None:
            events = [event for event in self.events if event.trace_id == trace_id]
            return events if len(events) >= count else None

        return self.wait_for(found)


@contextmanager
def otlp_receiver() -> Iterator[OtlpReceiver]:
    """Runs one."""
    seen = OtlpReceiver()
    server = grpc.server(ThreadPoolExecutor(2))
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(_Traces(seen), server)
    logs_service_pb2_grpc.add_LogsServiceServicer_to_server(_Logs(seen), server)
    seen.endpoint = f"http://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        yield seen
    finally:
        server.stop(0).wait()


class _Traces(trace_service_pb2_grpc.TraceServiceServicer):
    def __init__(self, seen: OtlpReceiver) -> None:
        self._seen = seen

    def Export(self, request: Any, context: Any) -> Any:  # noqa: N802 - the service's name
        del context
        found = [
            _span(_plain(each.resource.attributes), span)
            for each in request.resource_spans
            for scope in each.scope_spans
            for span in scope.spans
        ]
        with self._seen.arrived:
            self._seen.spans += found
            self._seen.arrived.notify_all()
        return trace_service_pb2.ExportTraceServiceResponse()


class _Logs(logs_service_pb2_grpc.LogsServiceServicer):
    def __init__(self, seen: OtlpReceiver) -> None:
        self._seen = seen

    def Export(self, request: Any, context: Any) -> Any:  # noqa: N802 - the service's name
        del context
        found = [
            _event(_plain(each.resource.attributes), record)
            for each in request.resource_logs
            for scope in each.scope_logs
            for record in scope.log_records
        ]
        with self._seen.arrived:
            self._seen.events += found
            self._seen.arrived.notify_all()
        return logs_service_pb2.ExportLogsServiceResponse()


def _span(resource: dict[str, Any], span: Span) -> SeenSpan:
    return SeenSpan(
        service=resource["service.name"],
        name=span.name,
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        kind=Span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_"),
        failed=span.status.code == Status.STATUS_CODE_ERROR,
        attributes=_plain(span.attributes),
        links=[link.span_id.hex() for link in span.links],
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano,
    )


def _event(resource: dict[str, Any], record: LogRecord) -> SeenEvent:
    return SeenEvent(
        service=resource["service.name"],
        name=record.event_name,
        trace_id=record.trace_id.hex(),
        span_id=record.span_id.hex(),
        attributes=_plain(record.attributes),
    )


def _plain(attributes: Any) -> dict[str, Any]:
    return {each.key: _value(each.value) for each in attributes}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(each) for each in value.array_value.values]
    return getattr(value, kind) if kind else None
