"""An engine in this process, traced by the application's own provider."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span as ApiSpan
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode

from gradewire_proto.conventions.spans import CURRENT, Span, Value
from gradewire_proto.conventions.telemetry_names import ERROR_TYPE
from gradewire_proto.telemetry.context import metadata_of

if TYPE_CHECKING:
    from contextvars import Token

_SCOPE: Final = "gradewire"


class EngineSpan(Span):
    """A part of the engine's work.

    Args:
        above: Context that holds its parent.
        name: Its name; empty: it stands for the span of `above` itself, which is not ended.
        attributes: Known from the start.
        kind: Its kind.
    """

    def __init__(
        self,
        above: Context | None,
        name: str,
        attributes: Mapping[str, Value] | None = None,
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> None:
        self._above = above
        self._name = name
        self._kind = kind
        self._attributes = dict(attributes or {})
        self._start_ns = time.time_ns()
        self._error = ""
        self._made: ApiSpan | None = None if name else trace.get_current_span(above)
        self._token: Token[Span | None] | None = None

    def child(
        self, name: str, attributes: Mapping[str, Value] | None = None, *, calls_out: bool = False, start_ns: int = 0
    ) -> Self:
        """As `Span.child`."""
        kind = SpanKind.CLIENT if calls_out else SpanKind.INTERNAL
        begun = type(self)(trace.set_span_in_context(self._span), name, attributes, kind)
        if start_ns:
            begun._start_ns = start_ns  # noqa: SLF001 - of the same class
        return begun

    def set(self, name: str, value: Value) -> None:
        """As `Span.set`."""
        self._span.set_attribute(name, value)

    def link(self, other: Span) -> None:
        """As `Span.link`."""
        if isinstance(other, EngineSpan):
            self._span.add_link(other.context)

    def fail(self, error_type: str) -> None:
        """As `Span.fail`."""
        self._error = error_type

    def evaluated(self, metric: str, index: int | None, result: object) -> None:
        """The client emits the events of its results."""

    def metadata(self) -> tuple[tuple[str, str], ...]:
        """As `Span.metadata`."""
        return metadata_of(self._span)

    def end(self, end_ns: int = 0) -> None:
        """As `Span.end`."""
        span = self._span
        if not self._name:
            return
        if self._error:
            span.set_attribute(ERROR_TYPE, self._error)
            span.set_status(Status(StatusCode.ERROR))
        span.end(end_ns or time.time_ns())

    @property
    def context(self) -> SpanContext:
        """Its ids."""
        return self._span.get_span_context()

    @property
    def _span(self) -> ApiSpan:
        """Made when it is first needed: `child` may say that it began earlier."""
        if self._made is None:
            self._made = trace.get_tracer(_SCOPE).start_span(
                self._name,
                context=self._above,
                kind=self._kind,
                attributes=self._attributes,
                start_time=self._start_ns,
            )
        return self._made

    def __enter__(self) -> Self:
        self._token = CURRENT.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._token is not None:
            CURRENT.reset(self._token)
            self._token = None
        if kind is not None and not self._error:
            self._error = kind.__qualname__
        self.end()


@contextmanager
def engine_span() -> Iterator[None]:
    """Makes OpenTelemetry's current span that of the engine, where it is recorded."""
    if not trace.get_current_span().is_recording():
        yield
        return
    token = CURRENT.set(EngineSpan(None, ""))
    try:
        yield
    finally:
        try:
            CURRENT.reset(token)
        except ValueError:  # a generator that was closed by another task, whose variables are its own
            CURRENT.set(None)
