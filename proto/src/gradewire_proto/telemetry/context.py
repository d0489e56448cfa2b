"""W3C trace context in the metadata of a call or the headers of a request; what is malformed counts as none."""

from collections.abc import Iterable
from typing import Final

from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, Span, SpanContext, get_current_span, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from gradewire_proto.spans import TRACEPARENT_KEY, TRACESTATE_KEY

_W3C: Final = TraceContextTextMapPropagator()
_MAX_CHARACTERS: Final = 512
"""Of either: longer ones are left out here, for the library writes a line of log about each."""


def context_of(traceparent: str, tracestate: str = "") -> Context:
    """The context that a caller sent; an empty one where it sent none that can be read. Never raises."""
    if not traceparent or len(traceparent) > _MAX_CHARACTERS:
        return Context()
    carrier = {TRACEPARENT_KEY: traceparent}
    if tracestate and len(tracestate) <= _MAX_CHARACTERS:
        carrier[TRACESTATE_KEY] = tracestate
    return _W3C.extract(carrier, Context())


def span_context_of(traceparent: str) -> SpanContext | None:
    """The span that a text names; None where it names none."""
    found = get_current_span(context_of(traceparent)).get_span_context()
    return found if found.is_valid else None


def metadata_of(span: Span) -> tuple[tuple[str, str], ...]:
    """What tells the other side of a call that this span is its parent; empty for a span that is none."""
    carrier: dict[str, str] = {}
    _W3C.inject(carrier, set_span_in_context(span, Context()))
    return tuple(carrier.items())


def parent(context: SpanContext) -> Context:
    """A context in which a span, of whatever process, is the current one."""
    return set_span_in_context(NonRecordingSpan(context), Context())


def exemplar_of(span: Span) -> dict[str, str] | None:
    """The exemplar of a figure by which its trace is found; None for a span that is not sampled."""
    context = span.get_span_context()
    if not context.trace_flags.sampled:
        return None
    return {"trace_id": f"{context.trace_id:032x}", "span_id": f"{context.span_id:016x}"}


def first(pairs: Iterable[tuple[str, object]], key: str) -> str:
    """The first text under a key; empty where there is none."""
    return next((value for name, value in pairs if name == key and isinstance(value, str)), "")
