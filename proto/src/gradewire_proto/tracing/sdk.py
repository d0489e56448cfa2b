"""Tracing of a process with the SDK's providers and with exporters that never block."""

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import entry_points
from typing import Any, Final

from opentelemetry.context import Context
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import NonRecordingSpan, SpanKind, Tracer, set_span_in_context
from typing_extensions import override

from gradewire_proto.tracing.otel import OtelSpan, context_of, emit, span_context_of
from gradewire_proto.tracing.settings import TracingSettings, has_events, protocol_of
from gradewire_proto.tracing.spans import PROCESS_PID, SERVICE_NAME, SERVICE_VERSION, Evaluation, Value

Count = Callable[[str, str, int], None]
"""A function that receives "exported" or "dropped", the record type ("span" or "event"), and the record count."""
_log = logging.getLogger(__name__)
_MAX_SPANS: Final = 2048
_MAX_EVENTS: Final = 4096
_BATCH: Final = 64
"""Records per export. This number is small, because the event loop waits while the thread writes a batch."""
_EMIT_EVERY_S: Final = 0.25
_CLOSE_S: Final = 2.0
_FAILING_CLOSE_S: Final = 0.2
_CUT_OFF_S: Final = 1.0
_EXPORTERS: Final = {"grpc": "otlp_proto_grpc", "http/protobuf": "otlp_proto_http"}
"""Entry points of the exporters by protocol."""


class _Outbox:
    """An exporter that limits and counts one type of records.

    The SDK's queue drops records without counting them, so call `admit` before you queue a record.
    """

    def __init__(self, kind: str, max_records: int, exporter: Any, count: Count | None) -> None:
        self._kind = kind
        self._room = threading.BoundedSemaphore(max_records)
        self._exporter = exporter
        self._count = count
        self._closed = False
        self.is_failing = False

    def admit(self) -> bool:
        """Admit a record; count it as dropped and return False if the outbox is full."""
        if self._room.acquire(blocking=False):
            return True
        self._note(1, exported=False)
        return False

    def export(self, batch: Sequence[Any]) -> Any:
        exported = False
        try:
            result = self._exporter.export(batch)
            exported = result.name == "SUCCESS"
        finally:
            self.leave(len(batch), exported=exported)
        return result

    def leave(self, number: int, *, exported: bool) -> None:
        self._room.release(number)
        self._note(number, exported=exported)

    def shutdown(self) -> None:
        """Stop a running export and drop pending records."""
        if not self._closed:
            self._closed = True
            self._exporter.shutdown()

    def _note(self, number: int, *, exported: bool) -> None:
        if self._count is not None:
            self._count("exported" if exported else "dropped", self._kind, number)
        if exported == self.is_failing:
            self.is_failing = not exported
            _log.warning(
                "the collector accepts %ss again"
                if exported
                else "dropping %ss, because the collector is down or too slow; this is logged once",
                self._kind,
            )


class _Spans(BatchSpanProcessor):
    def __init__(self, outbox: _Outbox, max_records: int) -> None:
        batch = min(_setting("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", _BATCH), max_records)
        # The base class calls only `export` and `shutdown`.
        super().__init__(outbox, max_records, max_export_batch_size=batch)  # type: ignore[arg-type]
        self._outbox = outbox

    @override
    def on_end(self, span: ReadableSpan) -> None:
        if self._outbox.admit():
            super().on_end(span)


class _Events:
    """Evaluation events, which a thread emits a little later, because creating an event would delay the call."""

    def __init__(self, outbox: _Outbox, max_records: int, logs: LoggerProvider) -> None:
        batch = min(_setting("OTEL_BLRP_MAX_EXPORT_BATCH_SIZE", _BATCH), max_records)
        # The processor calls only `export` and `shutdown`.
        processor = BatchLogRecordProcessor(outbox, max_queue_size=max_records, max_export_batch_size=batch)  # type: ignore[arg-type]
        logs.add_log_record_processor(processor)
        self._outbox = outbox
        self._logger = logs.get_logger("gradewire")
        self._waiting: deque[tuple[Callable[[], Evaluation], Context]] = deque()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._emit, name="gradewire-events", daemon=True)
        self._thread.start()

    def put(self, describe: Callable[[], Evaluation], evaluated: Context) -> None:
        """Emit an event soon, unless the outbox is full."""
        if self._outbox.admit():
            self._waiting.append((describe, evaluated))

    def close(self) -> None:
        self._closing.set()
        self._thread.join(_CLOSE_S)

    def _emit(self) -> None:
        is_closing = False
        while not is_closing:
            is_closing = self._closing.wait(_EMIT_EVERY_S)
            while self._waiting:
                describe, evaluated = self._waiting.popleft()
                try:
                    emit(self._logger, describe(), evaluated)
                except Exception:  # noqa: BLE001 - a faulty event must not stop all later events
                    _log.exception("an evaluation event was lost because of a defect")
                    self._outbox.leave(1, exported=False)
                time.sleep(0)  # let the event loop run now instead of after 5 ms


class Tracing:
    """A process's trace and log providers, which are not OpenTelemetry's global ones. `open_tracing` opens them."""

    def __init__(self, settings: TracingSettings, service: str, version: str, count: Count | None = None) -> None:
        process: dict[str, str | int] = {SERVICE_NAME: service, SERVICE_VERSION: version, PROCESS_PID: os.getpid()}
        # The standard variables override our description of the process.
        resource = Resource.create(process).merge(OTELResourceDetector().detect())
        # None lets the SDK read the standard variables.
        is_set = bool(os.environ.get("OTEL_TRACES_SAMPLER"))
        ratio = float(os.environ.get("OTEL_TRACES_SAMPLER_ARG", "").strip() or settings.sample_ratio)
        sampler = None if is_set else ParentBased(TraceIdRatioBased(ratio))
        most = _setting("OTEL_BSP_MAX_QUEUE_SIZE", _MAX_SPANS)
        spans = _Outbox("span", most, _exporter("TRACES", settings), count)
        self._outboxes = [spans]
        self.traces = TracerProvider(sampler, resource, shutdown_on_exit=False)
        self.traces.add_span_processor(_Spans(spans, most))
        self.tracer: Tracer = self.traces.get_tracer(service, version)
        self.logs: LoggerProvider | None = None
        self._events: _Events | None = None
        if has_events():
            most = _setting("OTEL_BLRP_MAX_QUEUE_SIZE", _MAX_EVENTS)
            events = _Outbox("event", most, _exporter("LOGS", settings), count)
            self._outboxes.append(events)
            self.logs = LoggerProvider(resource, shutdown_on_exit=False)
            self._events = _Events(events, most, self.logs)

    def begin(self, name: str, traceparent: str, tracestate: str, attributes: Mapping[str, Value]) -> OtelSpan:
        """Start the span for a call to this process, with the caller's span as its parent."""
        context = context_of(traceparent, tracestate)
        return OtelSpan(self.tracer, self.tracer.start_span(name, context, SpanKind.SERVER, attributes))

    def emit_results(
        self, call: OtelSpan, describe: Callable[[str, int | None, Any], Evaluation], *evaluated: str
    ) -> None:
        """Start to emit an event for each result of a sampled call.

        The events' parent is the first valid traceparent in `evaluated`. If none is valid, the parent is the call.
        """
        if (events := self._events) is None or not call.is_sampled:
            return
        named = next(filter(None, map(span_context_of, evaluated)), None)
        parent = set_span_in_context(call.span if named is None else NonRecordingSpan(named), Context())
        call.on_result = lambda *result: events.put(partial(describe, *result), parent)

    def close(self) -> None:
        """Export pending records. If the collector is down, give up before the 30 s that the SDK would wait."""
        if self._events is not None:
            self._events.close()
        providers = [provider for provider in (self.traces, self.logs) if provider is not None]
        threads = [threading.Thread(target=provider.shutdown, daemon=True) for provider in providers]
        for thread in threads:
            thread.start()
        is_failing = any(outbox.is_failing for outbox in self._outboxes)
        for thread in threads:
            thread.join(_FAILING_CLOSE_S if is_failing else _CLOSE_S)
        for outbox in self._outboxes:
            outbox.shutdown()
        for thread in threads:
            thread.join(_CUT_OFF_S)


def _setting(variable: str, default: int) -> int:
    return int(os.environ.get(variable, "").strip() or default)


def _exporter(signal: str, settings: TracingSettings) -> Any:
    """Return the exporter for "TRACES" or "LOGS"; raise ValueError if the protocol is unknown."""
    protocol = protocol_of(signal)
    if protocol not in _EXPORTERS:
        raise ValueError(f"{protocol!r} is not a collector's protocol: use grpc or http/protobuf")
    # Look up the entry point instead of importing both exporters: only one protocol's libraries may be installed.
    (found,) = entry_points(group=f"opentelemetry_{signal.lower()}_exporter", name=_EXPORTERS[protocol])
    make = found.load()
    if not settings.endpoint:
        return make()
    path = "" if protocol == "grpc" else f"/v1/{signal.lower()}"
    return make(endpoint=f"{settings.endpoint.rstrip('/')}{path}")
