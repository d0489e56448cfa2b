"""What transport asks of tracing; knows nothing of OpenTelemetry."""

from typing import NamedTuple, Protocol

from gradewire_proto.spans import Span


class TraceHeaders(NamedTuple):
    """What a caller said of its trace.

    Attributes:
        traceparent: As W3C has it; empty where there is none.
        tracestate: As W3C has it; empty where there is none.
        by_caller: Whether the caller emits the events of its results itself.
        evaluated: The span whose answers are graded, as a traceparent; empty: the caller's.
    """

    traceparent: str = ""
    tracestate: str = ""
    by_caller: bool = False
    evaluated: str = ""


NO_TRACE: TraceHeaders = TraceHeaders()


class TracedCall(Span, Protocol):
    """The span of one call."""

    def exemplar(self) -> dict[str, str]:
        """By which a figure leads to its trace."""


class CallTracer(Protocol):
    """Traces calls. Lives on one event loop."""

    def begin(self, method: str, headers: TraceHeaders) -> TracedCall | None:
        """Begins the span of a call and makes it the task's current one; None for a call that is not sampled.

        Args:
            method: ``gradewire.v1.Scoring/Score``.
            headers: Of the call.
        """

    def close(self) -> None:
        """Exports what there is, within a bounded time; blocks."""
