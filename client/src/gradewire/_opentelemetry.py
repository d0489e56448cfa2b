"""Spans and events by OpenTelemetry's API, of calls and of an engine in this process."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import Context as Variables
from contextvars import Token, copy_context
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from opentelemetry import context as active
from opentelemetry import trace
from opentelemetry._logs import get_logger
from opentelemetry.trace import SpanKind, Status, StatusCode

from gradewire._tracing import CallTrace, RequestTrace
from gradewire.pairs import Comparison
from gradewire.results import ItemScores, MetricScore
from gradewire.results import Status as ScoreStatus
from gradewire.transport import Metadata
from gradewire_proto.tracing.otel import OtelSpan, context_of, emit, metadata_of
from gradewire_proto.tracing.settings import captures_content
from gradewire_proto.tracing.spans import (
    BY_CALLER,
    CURRENT,
    ERROR_TYPE,
    EVALUATION_EVENT,
    EVENTS_KEY,
    GRPC,
    RPC_METHOD,
    RPC_STATUS,
    RPC_SYSTEM,
    SERVER_ADDRESS,
    SERVER_PORT,
    TRACEPARENT_KEY,
    Evaluation,
    explanation_of,
)

if TYPE_CHECKING:
    from opentelemetry.context import Context

_SCOPE: Final = "gradewire"


@contextmanager
def engine_span() -> Iterator[None]:
    """Make OpenTelemetry's current span that of the engine, if it is recorded."""
    if not trace.get_current_span().is_recording():
        yield
        return
    token = CURRENT.set(OtelSpan(trace.get_tracer(_SCOPE), trace.get_current_span()))
    try:
        yield
    finally:
        try:
            CURRENT.reset(token)
        except ValueError:  # a generator that was closed by another task, whose variables are its own
            CURRENT.set(None)


_POINTS: Final = {"a": 1.0, "tie": 0.5, "b": 0.0}
"""Points of answer A by winner."""


class OpenTelemetryCall(CallTrace):
    """The span of a call of a client's method.

    Args:
        name: Of the span.
        attributes: Of the span.
        is_current: Whether, as a context, it makes its span the current one.
    """

    def __init__(self, name: str, attributes: Mapping[str, Any], *, is_current: bool) -> None:
        # Of the application: where the evaluated span is its own, it is this one.
        self._outside = active.get_current()
        self._span = trace.get_tracer(_SCOPE).start_span(name, kind=SpanKind.INTERNAL, attributes=attributes)
        self._within = trace.set_span_in_context(self._span, self._outside)
        self._noted: dict[int, str] = {}
        self._is_current = is_current
        self._token: Token[Context] | None = None

    @property
    def context(self) -> Variables:
        """As `CallTrace.context`."""
        variables = copy_context()
        variables.run(active.attach, self._within)
        return variables

    def noted(self, index: int, row: Any) -> None:
        """As `CallTrace.noted`."""
        if traceparent := _traceparent_of(row):
            self._noted[index] = traceparent

    def answered(self, results: Sequence[ItemScores | Comparison]) -> None:
        """As `CallTrace.answered`."""
        if _has_events():
            for result in results:
                self._emit(result, self._noted.pop(result.index, ""))

    def __enter__(self) -> Self:
        if self._is_current:
            self._token = active.attach(self._within)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._token is not None:
            active.detach(self._token)
        _end(self._span, error)

    def _emit(self, result: ItemScores | Comparison, traceparent: str) -> None:
        contexts = (context_of(traceparent), self._outside)
        named = (each for each in contexts if trace.get_current_span(each).get_span_context().is_valid)
        evaluated = next(named, self._within)
        logger = get_logger(_SCOPE)
        for evaluation in _evaluations(result):
            emit(logger, evaluation, evaluated)


class OpenTelemetryRequest(RequestTrace):
    """The span of one request.

    Args:
        method: ``gradewire.v1.Scoring/Score``.
        address: Of the server.
    """

    def __init__(self, method: str, address: str) -> None:
        host, _, port = address.rpartition(":")
        attributes: dict[str, str | int] = {RPC_SYSTEM: GRPC, RPC_METHOD: method, SERVER_ADDRESS: host or address}
        if port.isdecimal() and host:
            attributes[SERVER_PORT] = int(port)
        self._code = ""
        self._span = trace.get_tracer(_SCOPE).start_span(method, kind=SpanKind.CLIENT, attributes=attributes)

    def metadata(self, own: Metadata | None) -> Metadata | None:
        """As `RequestTrace.metadata`."""
        events = ((EVENTS_KEY, BY_CALLER),) if _has_events() else ()
        return (*(own or ()), *metadata_of(self._span), *events) or None

    def answered_by(self, code: str) -> None:
        """As `RequestTrace.answered_by`."""
        self._code = code

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._span.set_attribute(RPC_STATUS, self._code or ("OK" if error is None else "CANCELLED"))
        _end(self._span, error)


def _end(span: trace.Span, error: BaseException | None) -> None:
    if error is not None and not isinstance(error, GeneratorExit):
        # Not its message, which may quote a text.
        span.set_attribute(ERROR_TYPE, type(error).__qualname__)
        span.set_status(Status(StatusCode.ERROR))
    span.end()


def _has_events() -> bool:
    return get_logger(_SCOPE).enabled(event_name=EVALUATION_EVENT)


def _traceparent_of(row: Any) -> str:
    found = row.get(TRACEPARENT_KEY) if isinstance(row, Mapping) else getattr(row, TRACEPARENT_KEY, "")
    return found if isinstance(found, str) else ""


def _evaluations(result: ItemScores | Comparison) -> list[Evaluation]:
    if isinstance(result, ItemScores):
        return [_evaluation(label, result.index, score) for label, score in result.scores.items()]
    winner = result.winner
    return [
        Evaluation(
            name="compare",
            score=None if winner is None else _POINTS[winner],
            error_type="" if result.status is ScoreStatus.OK else str(result.status),
            label=winner or "",
            explanation=explanation_of([], None, result.message if captures_content() else ""),
            item_index=result.index,
            line="" if result.provenance is None else result.provenance.line,
        )
    ]


def _evaluation(label: str, index: int, score: MetricScore) -> Evaluation:
    provenance = score.provenance
    text = ""
    if captures_content():
        parts = "" if score.parts is None else repr(score.parts)
        text = "; ".join(filter(None, (score.message, parts)))
    return Evaluation(
        name=label if provenance is None else provenance.name,
        score=score.score,
        error_type="" if score.status is ScoreStatus.OK else str(score.status),
        label="" if score.correct is None else "correct" if score.correct else "incorrect",
        explanation=explanation_of([str(each) for each in score.warnings], score.matched_reference, text),
        item_index=index,
        line="" if provenance is None else provenance.line,
    )
