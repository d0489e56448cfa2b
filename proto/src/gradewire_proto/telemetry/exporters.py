"""Exporters and processors of OpenTelemetry's SDK behind an `Outbox`."""

import os
from collections.abc import Sequence
from typing import Any, Final

from opentelemetry.context import Context
from opentelemetry.sdk._logs import LogRecordProcessor, ReadableLogRecord, ReadWriteLogRecord
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, LogRecordExporter, LogRecordExportResult
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from typing_extensions import override

from gradewire_proto.telemetry.outbox import Outbox

_BATCH: Final = 64


class _CountedSpans(SpanExporter):
    def __init__(self, exporter: SpanExporter, outbox: Outbox) -> None:
        self._exporter = exporter
        self._outbox = outbox
        self._closed = False

    @override
    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = SpanExportResult.FAILURE
        try:
            if not self._closed:
                result = self._exporter.export(spans)
        finally:
            self._outbox.ended(len(spans), taken=result is SpanExportResult.SUCCESS)
        return result

    @override
    def shutdown(self) -> None:
        if not self._closed:
            self._closed = True
            self._exporter.shutdown()


class _CountedRecords(LogRecordExporter):
    def __init__(self, exporter: LogRecordExporter, outbox: Outbox) -> None:
        self._exporter = exporter
        self._outbox = outbox
        self._closed = False

    @override
    def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
        result = LogRecordExportResult.FAILURE
        try:
            if not self._closed:
                result = self._exporter.export(batch)
        finally:
            self._outbox.ended(len(batch), taken=result is LogRecordExportResult.SUCCESS)
        return result

    @override
    def shutdown(self) -> None:
        if not self._closed:
            self._closed = True
            self._exporter.shutdown()  # type: ignore[no-untyped-call] # as the SDK has it

    @override
    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return True


class BoundedSpans(SpanProcessor):
    """A batch processor that takes no span for which the outbox has no room.

    Args:
        exporter: Where they go.
        outbox: Bounds and counts them.
        max_queue_size: Of the SDK's queue, at least what the outbox holds.
    """

    def __init__(self, exporter: SpanExporter, outbox: Outbox, max_queue_size: int) -> None:
        self._counted = _CountedSpans(exporter, outbox)
        self._outbox = outbox
        self._batches = BatchSpanProcessor(
            self._counted,
            max_queue_size=max_queue_size,
            max_export_batch_size=batch_size("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", max_queue_size),
        )

    @override
    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Nothing to do."""

    @override
    def on_end(self, span: ReadableSpan) -> None:
        if span.context is not None and span.context.trace_flags.sampled and self._outbox.admit():
            self._batches.on_end(span)

    @override
    def shutdown(self) -> None:
        self._batches.shutdown()  # type: ignore[no-untyped-call] # as the SDK has it

    @override
    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._batches.force_flush(timeout_millis)

    def cut_off(self) -> None:
        """Ends an export that is under way; what waits is dropped."""
        self._counted.shutdown()


class BoundedRecords(LogRecordProcessor):
    """As `BoundedSpans`, for events."""

    def __init__(self, exporter: LogRecordExporter, outbox: Outbox, max_queue_size: int) -> None:
        self._counted = _CountedRecords(exporter, outbox)
        self._outbox = outbox
        self._batches = BatchLogRecordProcessor(
            self._counted,
            max_queue_size=max_queue_size,
            max_export_batch_size=batch_size("OTEL_BLRP_MAX_EXPORT_BATCH_SIZE", max_queue_size),
        )

    @override
    def on_emit(self, log_record: ReadWriteLogRecord) -> None:
        if self._outbox.admit():
            self._batches.on_emit(log_record)

    @override
    def shutdown(self) -> None:
        self._batches.shutdown()  # type: ignore[no-untyped-call] # as the SDK has it

    @override
    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._batches.force_flush(timeout_millis)

    def cut_off(self) -> None:
        """As `BoundedSpans.cut_off`."""
        self._counted.shutdown()


def batch_size(variable: str, most: int) -> int:
    """Records that are exported at a time, by the standard variable; few by default: the event loop waits meanwhile."""
    return min(number_from(os.environ.get(variable, ""), _BATCH), most)


def number_from(text: str, default: int) -> int:
    """A whole number, 1 or more, that a variable says."""
    return int(text) if text.isdecimal() and int(text) > 0 else default


def span_exporter(protocol: str, endpoint: str) -> SpanExporter:
    """The exporter of spans for "grpc" or "http/protobuf"; an empty endpoint leaves it to the standard variables.

    Raises:
        ValueError: Another protocol.
    """
    made: Any = _module(protocol, "trace_exporter").OTLPSpanExporter(**_given(protocol, endpoint, "v1/traces"))
    assert isinstance(made, SpanExporter)  # noqa: S101 - for mypy: found by name
    return made


def record_exporter(protocol: str, endpoint: str) -> LogRecordExporter:
    """The exporter of events; as `span_exporter`."""
    made: Any = _module(protocol, "_log_exporter").OTLPLogExporter(**_given(protocol, endpoint, "v1/logs"))
    assert isinstance(made, LogRecordExporter)  # noqa: S101 - for mypy: found by name
    return made


def _given(protocol: str, endpoint: str, path: str) -> dict[str, str]:
    if not endpoint:
        return {}
    return {"endpoint": endpoint if protocol == "grpc" else f"{endpoint.rstrip('/')}/{path}"}


def _module(protocol: str, name: str) -> Any:
    from importlib import import_module  # noqa: PLC0415 - each brings libraries that the other does not need

    packages = {"grpc": "grpc", "http/protobuf": "http"}
    if protocol not in packages:
        raise ValueError(f"{protocol!r} is no protocol of collectors that is known here: grpc or http/protobuf")
    return import_module(f"opentelemetry.exporter.otlp.proto.{packages[protocol]}.{name}")
