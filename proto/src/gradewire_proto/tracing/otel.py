"""Spans and evaluation events over OpenTelemetry's API, which an application may have without the SDK.

A process without tracing does not import this module.
"""

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from opentelemetry._logs import Logger, SeverityNumber
from opentelemetry.context import Context
from opentelemetry.trace import Span as ApiSpan
from opentelemetry.trace import (
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    Tracer,
    get_current_span,
    set_span_in_context,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from gradewire_proto.tracing.spans import (
    CURRENT,
    ERROR_TYPE,
    EVALUATION_EVENT,
    TRACEPARENT_KEY,
    TRACESTATE_KEY,
    Evaluation,
    Span,
    Value,
)

if TYPE_CHECKING:
    from contextvars import Token

_W3C: Final = TraceContextTextMapPropagator()
_MAX_CHARACTERS: Final = 512
"""Maximum length of a header to parse. The library would log each longer header."""

OnResult = Callable[[str, int | None, Any], None]
"""A function that receives the metric's name, the item's position, and the result."""


def context_of(traceparent: str, tracestate: str = "") -> Context:
    """Return the context from a caller's headers; an empty context if the headers cannot be parsed."""
    if not traceparent or len(traceparent) > _MAX_CHARACTERS:
        return Context()
    carrier = {TRACEPARENT_KEY: traceparent}
    if tracestate and len(tracestate) <= _MAX_CHARACTERS:
        carrier[TRACESTATE_KEY] = tracestate
    return _W3C.extract(carrier, Context())


def span_context_of(traceparent: str) -> SpanContext | None:
    """Return a traceparent's span context; None if the header is invalid."""
    found = get_current_span(context_of(traceparent)).get_span_context()
    return found if found.is_valid else None


def metadata_of(span: ApiSpan) -> tuple[tuple[str, str], ...]:
    """Return headers that make a span the parent of a call; no headers if the span is invalid."""
    carrier: dict[str, str] = {}
    _W3C.inject(carrier, set_span_in_context(span, Context()))
    return tuple(carrier.items())


def emit(logger: Logger, evaluation: Evaluation, evaluated: Context) -> None:
    """Emit a result's event, with the context's span as parent."""
    logger.emit(
        context=evaluated,
        severity_number=SeverityNumber.INFO,
        event_name=EVALUATION_EVENT,
        attributes=evaluation.attributes(),
    )


class OtelSpan(Span):
    """A span of OpenTelemetry's API, with children from the same tracer. Only a span with `on_result` emits events."""

    __slots__ = ("_failed", "_token", "_tracer", "on_result", "span")

    def __init__(self, tracer: Tracer, span: ApiSpan, on_result: OnResult | None = None) -> None:
        self._tracer = tracer
        self.span = span
        self.on_result = on_result
        self._failed = False
        self._token: Token[Span | None] | None = None

    @property
    def is_sampled(self) -> bool:
        """True if the trace is sampled."""
        return self.span.get_span_context().trace_flags.sampled

    def child(
        self, name: str, attributes: Mapping[str, Value] | None = None, *, calls_out: bool = False, start_ns: int = 0
    ) -> "OtelSpan":
        """Start a child span; see `Span.child`."""
        kind = SpanKind.CLIENT if calls_out else SpanKind.INTERNAL
        above = set_span_in_context(self.span, Context())
        made = self._tracer.start_span(name, above, kind, attributes, start_time=start_ns or None)
        return OtelSpan(self._tracer, made, self.on_result)

    def rename(self, name: str) -> None:
        """Replace the span's name."""
        self.span.update_name(name)

    def set(self, name: str, value: Value) -> None:
        """Set an attribute."""
        self.span.set_attribute(name, value)

    def link(self, other: Span) -> None:
        """Link another span. This has no effect after this span has ended."""
        if isinstance(other, OtelSpan) and self.span.is_recording():
            self.span.add_link(other.span.get_span_context())

    def fail(self, error_type: str) -> None:
        """Mark the span as failed."""
        self._failed = True
        self.span.set_attribute(ERROR_TYPE, error_type)
        self.span.set_status(Status(StatusCode.ERROR))

    def evaluated(self, metric: str, index: int | None, result: object) -> None:
        """Emit a result's event if events are enabled."""
        if self.on_result is not None:
            self.on_result(metric, index, result)

    def metadata(self) -> tuple[tuple[str, str], ...]:
        """Return the trace context; see `Span.metadata`."""
        return metadata_of(self.span)

    def exemplar(self) -> dict[str, str]:
        """Return a Prometheus exemplar that links a metric to this span."""
        context = self.span.get_span_context()
        return {"trace_id": f"{context.trace_id:032x}", "span_id": f"{context.span_id:016x}"}

    def end(self, end_ns: int = 0) -> None:
        """End the span; see `Span.end`."""
        self.span.end(end_ns or None)

    def __enter__(self) -> Self:
        self._token = CURRENT.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._token is not None:
            CURRENT.reset(self._token)
            self._token = None
        if kind is not None and not self._failed:
            self.fail(kind.__qualname__)
        self.end()
