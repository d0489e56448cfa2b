"""The span of a call of gRPC, in OpenTelemetry's terms."""

from opentelemetry.trace import SpanKind

from gradewire_proto.spans import CURRENT, GRPC, RPC_METHOD, RPC_SYSTEM
from gradewire_proto.telemetry.context import span_context_of
from gradewire_proto.telemetry.providers import Providers
from gradewire_proto.telemetry.recorded import Recorded
from gradewire_proto.telemetry.recorder import Recorder
from gradewire_server.tracing.evaluations import evaluation_of
from gradewire_server.tracing.port import CallTracer, TraceHeaders


class OpenTelemetryCalls(CallTracer):
    """Made on the event loop that serves.

    Args:
        providers: Closed with this.
    """

    def __init__(self, providers: Providers) -> None:
        self._recorder = Recorder(providers, evaluation_of)

    def begin(self, method: str, headers: TraceHeaders) -> Recorded | None:
        """As `CallTracer.begin`."""
        attributes = {RPC_SYSTEM: GRPC, RPC_METHOD: method}
        span = self._recorder.begin(method, SpanKind.SERVER, headers.traceparent, headers.tracestate, attributes)
        if not span.call.sampled:
            return None
        span.call.wants_events = span.call.wants_events and not headers.by_caller
        if (evaluated := span_context_of(headers.evaluated)) is not None:
            span.call.evaluated_span = evaluated
        CURRENT.set(span)  # each call is a task of its own
        return span

    def close(self) -> None:
        """As `CallTracer.close`."""
        self._recorder.close()
