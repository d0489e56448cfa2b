"""Spans and evaluations for code without OpenTelemetry, and the names of spans, attributes and events."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, Protocol, Self, TypeAlias

TRACEPARENT_KEY: Final = "traceparent"
TRACESTATE_KEY: Final = "tracestate"
"""HTTP headers and gRPC metadata that carry W3C trace context."""
EVENTS_KEY: Final = "x-gradewire-evaluation-events"
"""Call metadata. If it is `BY_CALLER`, the caller (and not the server) emits the results' events."""
BY_CALLER: Final = "caller"
EVALUATED_KEY: Final = "x-gradewire-evaluated-span"
"""Call metadata: traceparent of the span that produced the graded answers. The default is the caller's span."""

RPC_SYSTEM: Final = "rpc.system.name"
RPC_METHOD: Final = "rpc.method"
RPC_STATUS: Final = "rpc.response.status_code"
GRPC: Final = "grpc"
HTTP_METHOD: Final = "http.request.method"
HTTP_ROUTE: Final = "http.route"
HTTP_STATUS: Final = "http.response.status_code"
URL_SCHEME: Final = "url.scheme"
SERVER_ADDRESS: Final = "server.address"
SERVER_PORT: Final = "server.port"
ERROR_TYPE: Final = "error.type"
SERVICE_NAME: Final = "service.name"
SERVICE_VERSION: Final = "service.version"
PROCESS_PID: Final = "process.pid"

OPERATION: Final = "gen_ai.operation.name"
REQUEST_MODEL: Final = "gen_ai.request.model"
EMBEDDINGS: Final = "embeddings"
CHAT: Final = "chat"
"""Values of `OPERATION`."""
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"

EVALUATION_EVENT: Final = "gen_ai.evaluation.result"
EVALUATION_NAME: Final = "gen_ai.evaluation.name"
SCORE_VALUE: Final = "gen_ai.evaluation.score.value"
SCORE_LABEL: Final = "gen_ai.evaluation.score.label"
EXPLANATION: Final = "gen_ai.evaluation.explanation"

REQUEST_ID: Final = "gradewire.request.id"
TENANT: Final = "gradewire.tenant"
ITEMS: Final = "gradewire.items"
ITEM_INDEX: Final = "gradewire.item.index"
METRICS: Final = "gradewire.metrics"
METRIC_LINE: Final = "gradewire.metric.line"
TEXTS: Final = "gradewire.texts"
TOKENS: Final = "gradewire.tokens"
CACHE_LEVEL: Final = "gradewire.cache.level"
CACHE_HITS: Final = "gradewire.cache.hits"
ANSWERED_FROM: Final = "gradewire.answered_from"
"""Prefix of attribute names, before a lower-case source. The value is the number of texts from that source."""
QUEUE_S: Final = "gradewire.queue_s"
INFERENCE_S: Final = "gradewire.inference_s"
SHARED_BY: Final = "gradewire.batch.shared_by"
"""Number of traced spans that share the batch."""
FAILURES: Final = "gradewire.failures"

CLIENT_SCORE: Final = "gradewire score"
CLIENT_STREAM: Final = "gradewire score_stream"
CLIENT_REWARDS: Final = "gradewire rewards"
CLIENT_REWARD_STREAM: Final = "gradewire rewards stream"
CLIENT_COMPARE: Final = "gradewire compare"
CLIENT_COMPARE_STREAM: Final = "gradewire compare_stream"
CLIENT_PREPARE: Final = "gradewire prepare"
SCORE: Final = "score"
ENCODE: Final = "encode"
ENCODE_TOKENS: Final = "encode tokens"
GRADE: Final = "grade"
JUDGE: Final = "judge"
PREPARED: Final = "prepared answers"
SYNONYMS: Final = "synonyms"
CORPUS: Final = "corpus"
CACHE: Final = "cache"
BATCH: Final = "batch"
JUDGE_RUN: Final = "judge run"
"""Names of spans within calls. A call's own span has the method's name."""


Value: TypeAlias = str | int | float | bool | Sequence[str]


class Span(AbstractContextManager["Span"], Protocol):
    """A traced piece of work. As a context manager, a span is the current span until it ends."""

    def child(
        self, name: str, attributes: Mapping[str, Value] | None = None, *, calls_out: bool = False, start_ns: int = 0
    ) -> Self:
        """Start a child, at `start_ns` nanoseconds since 1970 (0: now). `calls_out` means work in another process."""

    def set(self, name: str, value: Value) -> None:
        """Set an attribute."""

    def link(self, other: "Span") -> None:
        """Link another span, from any trace."""

    def fail(self, error_type: str) -> None:
        """Mark the span as failed."""

    def evaluated(self, metric: str, index: int | None, result: object) -> None:
        """Record a result of the span's call."""

    def metadata(self) -> tuple[tuple[str, str], ...]:
        """Return the W3C trace context for a call within the span, as header names and values."""

    def end(self, end_ns: int = 0) -> None:
        """End the span, at `end_ns` nanoseconds since 1970 (0: now)."""


_MAX_EXPLANATION: Final = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """A metric's result, for the event `gen_ai.evaluation.result`.

    Attributes:
        error_type: Status in capitals; empty if the result has a score.
        label: "correct", "incorrect" or a pair's winner; empty if the metric has no verdict.
        line: Metric identifier that reproduces the score; empty if unknown.
    """

    name: str
    score: float | None
    error_type: str = ""
    label: str = ""
    explanation: str = ""
    item_index: int | None = None
    line: str = ""

    def attributes(self) -> dict[str, str | float | int]:
        """Return the event's attributes. Leave out the value and the label if there is no score."""
        found: dict[str, str | float | int] = {EVALUATION_NAME: self.name}
        if self.score is None or self.error_type:
            found[ERROR_TYPE] = self.error_type or "UNKNOWN"
        else:
            found[SCORE_VALUE] = self.score
            if self.label:
                found[SCORE_LABEL] = self.label
        if self.explanation:
            found[EXPLANATION] = self.explanation[:_MAX_EXPLANATION]
        if self.item_index is not None:
            found[ITEM_INDEX] = self.item_index
        if self.line:
            found[METRIC_LINE] = self.line
        return found


def explanation_of(warnings: Iterable[str], matched_reference: int | None, text: str) -> str:
    """Return a result's explanation. The explanation contains users' texts only if you pass them as `text`."""
    matched = [] if matched_reference is None else [f"reference {matched_reference} gave the score"]
    return "; ".join([*matched, *warnings, *([text] if text else [])])


CURRENT: Final[ContextVar[Span | None]] = ContextVar("span", default=None)
"""Current span of a task. Tasks that a call starts inherit the span."""
_NOTHING: Final[AbstractContextManager[None]] = nullcontext()


def current_span() -> Span | None:
    """Return the task's current span; None without tracing."""
    return CURRENT.get()


def spanned(name: str, attributes: Mapping[str, Value] | None = None) -> AbstractContextManager[Span | None]:
    """Return a context manager for a child of the current span; it yields None without tracing."""
    span = CURRENT.get()
    return _NOTHING if span is None else span.child(name, attributes)


def record_result(metric: str, index: int | None, result: object) -> None:
    """Record a result on the current span."""
    span = CURRENT.get()
    if span is not None:
        span.evaluated(metric, index, result)


def record_batch(
    name: str, waiting: Iterable[Span | None], *, start_ns: int, end_ns: int, attributes: Mapping[str, Value]
) -> None:
    """Record work done once for several spans. None stands for a caller without tracing.

    The work becomes a child of the first span, with links to all other spans. As a child of each span, the work would
    count several times.
    """
    traced = list(dict.fromkeys(span for span in waiting if span is not None))
    if not traced:
        return
    batch = traced[0].child(name, {**attributes, SHARED_BY: len(traced)}, start_ns=start_ns)
    for other in traced[1:]:
        other.link(batch)
        batch.link(other)
    batch.end(end_ns)
