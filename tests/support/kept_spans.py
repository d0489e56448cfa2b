"""A traced call whose spans stay in memory."""

from collections.abc import Mapping
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from gradewire_proto.tracing.otel import OtelSpan


class KeptSpans:
    """Keeps the spans that end.

    Attributes:
        call: Span to work in; a context.
    """

    def __init__(self) -> None:
        self._memory = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._memory))
        tracer = provider.get_tracer("tests")
        self.call = OtelSpan(tracer, tracer.start_span("call"))

    @property
    def ended(self) -> list[ReadableSpan]:
        """Spans in the order in which they ended."""
        return list(self._memory.get_finished_spans())

    def named(self, name: str) -> ReadableSpan:
        """Return the span of that name that ended first."""
        return next(span for span in self.ended if span.name == name)


def attributes_of(span: ReadableSpan) -> Mapping[str, Any]:
    """Return the attributes of a span as a plain mapping."""
    return dict(span.attributes or {})
