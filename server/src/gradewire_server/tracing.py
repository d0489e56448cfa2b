"""Trace the server's calls with spans, and their results with events. Only `open_tracing` imports OpenTelemetry."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, NamedTuple

from prometheus_client import CollectorRegistry

from gradewire_proto.tracing.factory import open_tracing, prometheus_counts
from gradewire_proto.tracing.settings import TracingSettings, captures_content
from gradewire_proto.tracing.spans import CURRENT, GRPC, RPC_METHOD, RPC_SYSTEM, Evaluation, explanation_of
from gradewire_server.domain.items import MetricResult, Status

if TYPE_CHECKING:
    from gradewire_proto.tracing.otel import OtelSpan
    from gradewire_proto.tracing.sdk import Tracing


class TraceHeaders(NamedTuple):
    """A caller's trace headers. The W3C headers `traceparent` and `tracestate` are "" if the caller does not send them.

    Attributes:
        by_caller: True if the caller itself emits the events for its results.
        evaluated: The traceparent of the span whose answers are graded, or "" for the caller's span.
    """

    traceparent: str = ""
    tracestate: str = ""
    by_caller: bool = False
    evaluated: str = ""


class CallTracer:
    """A tracer for calls. Create it with `open_call_tracer`."""

    def __init__(self, tracing: "Tracing") -> None:
        self._tracing = tracing

    def begin(self, method: str, headers: TraceHeaders) -> "OtelSpan | None":
        """Start a call's span, and make it the task's current span. Return None if the call is not sampled."""
        attributes = {RPC_SYSTEM: GRPC, RPC_METHOD: method}
        span = self._tracing.begin(method, headers.traceparent, headers.tracestate, attributes)
        if not span.is_sampled:
            return None
        if not headers.by_caller:
            self._tracing.emit_results(span, evaluation_of, headers.evaluated, headers.traceparent)
        CURRENT.set(span)  # each call has its own task
        return span


@asynccontextmanager
async def open_call_tracer(settings: TracingSettings, registry: CollectorRegistry) -> AsyncIterator[CallTracer | None]:
    """Yield a tracer for the context, or None if tracing is off or unavailable."""
    if not settings.is_on():
        yield None
        return
    counts = prometheus_counts(registry, "gradewire")
    tracing = await asyncio.to_thread(open_tracing, settings, "gradewire-server", counts)
    try:
        yield None if tracing is None else CallTracer(tracing)
    finally:
        if tracing is not None:
            await asyncio.to_thread(tracing.close)


def evaluation_of(metric: str, index: int | None, result: MetricResult) -> Evaluation:
    """Convert a result to an evaluation event, with users' texts only if the environment allows them."""
    text = _text_of(result) if captures_content() else ""
    return Evaluation(
        name=metric,
        score=result.score,
        error_type="" if result.status is Status.OK else result.status.name,
        label=_label_of(result),
        explanation=explanation_of([each.name for each in result.warnings], result.matched_reference, text),
        item_index=index,
    )


def _label_of(result: MetricResult) -> str:
    if result.compared is not None and result.compared.winner is not None:
        return result.compared.winner.name.lower()
    return "" if result.correct is None else "correct" if result.correct else "incorrect"


def _text_of(result: MetricResult) -> str:
    """Return a result's message and parts, which may quote users' texts."""
    parts = "" if result.parts is None else json.dumps(asdict(result.parts), ensure_ascii=False, default=str)
    return "; ".join(filter(None, (result.message, parts)))
