"""Spans as they are noted while a request is answered: a few fields each, of which the SDK's spans are made later."""

import time
from collections.abc import Mapping, Sequence
from random import getrandbits
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, Self

from opentelemetry.trace import SpanContext, SpanKind, TraceFlags, TraceState

from gradewire_proto.spans import CURRENT, TRACEPARENT_KEY, TRACESTATE_KEY, Span, Value

if TYPE_CHECKING:
    from contextvars import Token

_FLUSH_AT: Final = 256
"""Spans and results of a call that are kept until it ends; a stream hands them over earlier."""
MAX_LINKS: Final = 32


class Result(NamedTuple):
    """A result of which an event is to be made.

    Attributes:
        metric: Name of the metric.
        item_index: Position of the item in its call.
        result: An object that the recorder's `describe` reads.
    """

    metric: str
    item_index: int | None
    result: Any


class Sink(Protocol):
    """Takes what was recorded; called on the event loop, so it must be quick."""

    def put(self, spans: "Sequence[Recorded]", results: Sequence[Result], evaluated: SpanContext | None) -> None:
        """Takes spans that have ended, and results to make events of, which belong to the evaluated span."""


class Call:
    """What all spans of one call share.

    Attributes:
        trace_id: Of the caller's trace, or a new one.
        trace_state: Handed on as it came.
        remote: The caller's span; None where it sent none.
        sampled: Whether the trace is kept.
        wants_events: Whether events are made of its results.
        evaluated_span: Parent of these events.
    """

    __slots__ = (
        "_ended",
        "_results",
        "_sink",
        "evaluated_span",
        "open",
        "remote",
        "sampled",
        "trace_id",
        "trace_state",
        "wants_events",
    )

    def __init__(self, sink: Sink, remote: SpanContext | None, trace_id: int, *, sampled: bool) -> None:
        self._sink = sink
        self._ended: list[Recorded] = []
        self._results: list[Result] = []
        self.open = True
        self.remote = remote
        self.trace_id = trace_id
        self.trace_state = TraceState() if remote is None else remote.trace_state
        self.sampled = sampled
        self.wants_events = False
        self.evaluated_span = remote

    def ended(self, span: "Recorded") -> None:
        """Takes a span of the call that has ended."""
        self._ended.append(span)
        if not self.open or len(self._ended) >= _FLUSH_AT:
            self.flush()

    def evaluated(self, result: Result) -> None:
        """Takes a result."""
        self._results.append(result)
        if not self.open or len(self._results) >= _FLUSH_AT:
            self.flush()

    def flush(self) -> None:
        """Hands over what there is."""
        spans, self._ended = self._ended, []
        results, self._results = self._results, []
        if spans or results:
            self._sink.put(spans, results, self.evaluated_span)


class Recorded(Span):
    """A span that has begun; a context manager that makes it the current one and ends it.

    Args:
        call: What it belongs to.
        name: Its name.
        parent_id: Of the span that it is a child of; 0 for none.
        kind: Its kind.
        attributes: Known from the start.
    """

    __slots__ = (
        "_token",
        "attributes",
        "call",
        "end_ns",
        "error",
        "kind",
        "links",
        "name",
        "parent_id",
        "span_id",
        "start_ns",
    )

    def __init__(
        self,
        call: Call,
        name: str,
        parent_id: int,
        kind: SpanKind = SpanKind.INTERNAL,
        attributes: Mapping[str, Value] | None = None,
    ) -> None:
        self.call = call
        self.name = name
        self.parent_id = parent_id
        self.span_id = getrandbits(64) or 1
        self.kind = kind
        self.attributes: dict[str, Value] = dict(attributes) if attributes else {}
        self.links: list[SpanContext] = []
        self.error = ""
        self.start_ns = time.time_ns()
        self.end_ns = 0
        self._token: Token[Span | None] | None = None

    @property
    def context(self) -> SpanContext:
        """Its ids."""
        return _span_context(self.call, self.span_id)

    @property
    def parent(self) -> SpanContext | None:
        """Ids of its parent; None for the first span of a trace."""
        if self.call.remote is not None and self.call.remote.span_id == self.parent_id:
            return self.call.remote
        return _span_context(self.call, self.parent_id) if self.parent_id else None

    @property
    def is_root(self) -> bool:
        """Whether its call ends with it."""
        remote = self.call.remote
        return self.parent_id == (0 if remote is None else remote.span_id)

    def child(
        self, name: str, attributes: Mapping[str, Value] | None = None, *, calls_out: bool = False, start_ns: int = 0
    ) -> "Recorded":
        """Begins a child; as `Span.child`."""
        kind = SpanKind.CLIENT if calls_out else SpanKind.INTERNAL
        begun = Recorded(self.call, name, self.span_id, kind, attributes)
        if start_ns:
            begun.start_ns = start_ns
        return begun

    def set(self, name: str, value: Value) -> None:
        """Sets an attribute."""
        self.attributes[name] = value

    def link(self, other: Span) -> None:
        """Refers to a span of another trace, or of this one; beyond a few dozen nothing is added."""
        if isinstance(other, Recorded) and len(self.links) < MAX_LINKS:
            self.links.append(other.context)

    def fail(self, error_type: str) -> None:
        """Says that what the span stands for failed."""
        self.error = error_type

    def evaluated(self, metric: str, index: int | None, result: object) -> None:
        """Takes a result of the call, for an event."""
        if self.call.wants_events:
            self.call.evaluated(Result(metric, index, result))

    def end(self, end_ns: int = 0) -> None:
        """Ends it; once is enough."""
        if self.end_ns or not self.call.sampled:
            return
        self.end_ns = end_ns or time.time_ns()
        self.call.ended(self)
        if self.is_root:
            self.call.open = False
            self.call.flush()

    def metadata(self) -> tuple[tuple[str, str], ...]:
        """W3C trace context for a call that is made within it."""
        flags = 1 if self.call.sampled else 0
        found = ((TRACEPARENT_KEY, f"00-{self.call.trace_id:032x}-{self.span_id:016x}-{flags:02x}"),)
        return (*found, (TRACESTATE_KEY, self.call.trace_state.to_header())) if self.call.trace_state else found

    def exemplar(self) -> dict[str, str]:
        """By which a figure leads to its trace."""
        return {"trace_id": f"{self.call.trace_id:032x}", "span_id": f"{self.span_id:016x}"}

    def __enter__(self) -> Self:
        self._token = CURRENT.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._token is not None:
            CURRENT.reset(self._token)
            self._token = None
        if kind is not None and not self.error:
            self.error = kind.__qualname__
        self.end()


def _span_context(call: Call, span_id: int) -> SpanContext:
    flags = TraceFlags(TraceFlags.SAMPLED if call.sampled else TraceFlags.DEFAULT)
    return SpanContext(call.trace_id, span_id, is_remote=False, trace_flags=flags, trace_state=call.trace_state)
