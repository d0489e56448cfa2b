"""OpenTelemetry spans and events for calls, and for an engine in this process."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import Context as Variables
from contextvars import copy_context
from typing import Any, Final

from opentelemetry import context as active
from opentelemetry import trace
from opentelemetry._logs import get_logger
from opentelemetry.context import Context
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

_SCOPE: Final = "gradewire"


@contextmanager
def engine_span() -> Iterator[None]:
    """Make the engine trace within OpenTelemetry's current span, if that span is recorded."""
    if not trace.get_current_span().is_recording():
        yield
        return
    token = CURRENT.set(OtelSpan(trace.get_tracer(_SCOPE), trace.get_current_span()))
    try:
        yield
    finally:
        try:
            CURRENT.reset(token)
        except ValueError:  # a task with a different context closed the generator
            CURRENT.set(None)


_POINTS: Final = {"a": 1.0, "tie": 0.5, "b": 0.0}
"""The score in a comparison's event, by winner."""


@contextmanager
def call_span(name: str, attributes: Mapping[str, Any], *, is_current: bool) -> Iterator["OpenTelemetryCall"]:
    """Trace a client's call. With `is_current`, the call's span is the current span in the `with` block."""
    outside = active.get_current()
    with _started(name, SpanKind.INTERNAL, attributes) as span:
        within = trace.set_span_in_context(span, outside)
        token = active.attach(within) if is_current else None
        try:
            yield OpenTelemetryCall(outside, within)
        finally:
            if token is not None:
                active.detach(token)


@contextmanager
def request_span(method: str, address: str) -> Iterator["OpenTelemetryRequest"]:
    host, _, port = address.rpartition(":")
    attributes: dict[str, str | int] = {RPC_SYSTEM: GRPC, RPC_METHOD: method, SERVER_ADDRESS: host or address}
    if port.isdecimal() and host:
        attributes[SERVER_PORT] = int(port)
    with _started(method, SpanKind.CLIENT, attributes) as span:
        request = OpenTelemetryRequest(span)
        try:
            yield request
        except BaseException:
            request.code = request.code or "CANCELLED"
            raise
        finally:
            span.set_attribute(RPC_STATUS, request.code or "OK")


@contextmanager
def _started(name: str, kind: SpanKind, attributes: Mapping[str, Any]) -> Iterator[trace.Span]:
    span = trace.get_tracer(_SCOPE).start_span(name, kind=kind, attributes=attributes)
    try:
        yield span
    except BaseException as error:
        if not isinstance(error, GeneratorExit):
            # Leave out the error's message, because it may quote a user's text.
            span.set_attribute(ERROR_TYPE, type(error).__qualname__)
            span.set_status(Status(StatusCode.ERROR))
        raise
    finally:
        span.end()


class OpenTelemetryCall(CallTrace):
    """The trace of a call to a client's method.

    Args:
        outside: The application's context. Its span gets the events of rows that do not name a span.
        within: The same context, but with the call's span.
    """

    def __init__(self, outside: Context, within: Context) -> None:
        self._outside = outside
        self._within = within
        self._noted: dict[int, str] = {}

    @property
    def context(self) -> Variables:
        variables = copy_context()
        variables.run(active.attach, self._within)
        return variables

    def noted(self, index: int, row: Any) -> None:
        if traceparent := _traceparent_of(row):
            self._noted[index] = traceparent

    def answered(self, results: Sequence[ItemScores | Comparison]) -> None:
        if _has_events():
            for result in results:
                self._emit(result, self._noted.pop(result.index, ""))

    def _emit(self, result: ItemScores | Comparison, traceparent: str) -> None:
        contexts = (context_of(traceparent), self._outside)
        named = (each for each in contexts if trace.get_current_span(each).get_span_context().is_valid)
        evaluated = next(named, self._within)
        logger = get_logger(_SCOPE)
        for evaluation in _evaluations(result):
            emit(logger, evaluation, evaluated)


class OpenTelemetryRequest(RequestTrace):
    def __init__(self, span: trace.Span) -> None:
        self._span = span
        self.code = ""

    def metadata(self, own: Metadata | None) -> Metadata | None:
        events = ((EVENTS_KEY, BY_CALLER),) if _has_events() else ()
        return (*(own or ()), *metadata_of(self._span), *events) or None

    def answered_by(self, code: str) -> None:
        self.code = code


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
