"""Spans for rooms that know nothing of OpenTelemetry: the current span, and names of spans, attributes and events."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import Final, Protocol, Self, TypeAlias

TRACEPARENT_KEY: Final = "traceparent"
TRACESTATE_KEY: Final = "tracestate"
"""Headers of HTTP and metadata of gRPC by which W3C trace context travels."""
EVENTS_KEY: Final = "x-gradewire-evaluation-events"
"""Metadata of a call; with the value `BY_CALLER` its caller makes the events of its results, and the server none."""
BY_CALLER: Final = "caller"
EVALUATED_KEY: Final = "x-gradewire-evaluated-span"
"""Metadata of a call: the span, written as a traceparent, whose answers the call grades; else it is the caller's."""

RPC_SYSTEM: Final = "rpc.system.name"
RPC_METHOD: Final = "rpc.method"
RPC_STATUS: Final = "rpc.response.status_code"
GRPC: Final = "grpc"
HTTP_METHOD: Final = "http.request.method"
HTTP_ROUTE: Final = "http.route"
HTTP_STATUS: Final = "http.response.status_code"
URL_PATH: Final = "url.path"
URL_SCHEME: Final = "url.scheme"
SERVER_ADDRESS: Final = "server.address"
SERVER_PORT: Final = "server.port"
CLIENT_ADDRESS: Final = "client.address"
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
"""With the lower-case name of a source behind it: how many texts that source answered."""
QUEUE_S: Final = "gradewire.queue_s"
INFERENCE_S: Final = "gradewire.inference_s"
SHARED_BY: Final = "gradewire.batch.shared_by"
"""For how many traced pieces of work a batch was computed; others than traced ones are not counted."""
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
"""Names of spans that stand for no call; those of calls are the method's."""


Value: TypeAlias = str | int | float | bool | Sequence[str]


class Span(AbstractContextManager["Span"], Protocol):
    """A piece of work that is being traced; as a context it is the current span, and ends with it."""

    def child(
        self, name: str, attributes: Mapping[str, Value] | None = None, *, calls_out: bool = False, start_ns: int = 0
    ) -> Self:
        """Begins a part of it.

        Args:
            name: Of the part.
            attributes: Known from the start.
            calls_out: Whether another process does it.
            start_ns: When it began, nanoseconds since 1970; 0: now.
        """

    def set(self, name: str, value: Value) -> None:
        """Sets an attribute."""

    def link(self, other: "Span") -> None:
        """Refers to another span, of whatever trace."""

    def fail(self, error_type: str) -> None:
        """Says that it failed."""

    def evaluated(self, metric: str, index: int | None, result: object) -> None:
        """Takes a result of the call that it belongs to."""

    def metadata(self) -> tuple[tuple[str, str], ...]:
        """W3C trace context for a call that is made within it: names and values of headers."""

    def end(self, end_ns: int = 0) -> None:
        """Ends it, at nanoseconds since 1970; 0: now."""


CURRENT: Final[ContextVar[Span | None]] = ContextVar("span", default=None)
"""Every task that a call starts inherits it."""
_NOTHING: Final[AbstractContextManager[None]] = nullcontext()


def current_span() -> Span | None:
    """The span that the asking task works in; None where the work is not traced, as nearly always."""
    return CURRENT.get()


def spanned(name: str, attributes: Mapping[str, Value] | None = None) -> AbstractContextManager[Span | None]:
    """A context for a part of the current span's work; gives None where there is none."""
    span = CURRENT.get()
    return _NOTHING if span is None else span.child(name, attributes)


def record_result(metric: str, index: int | None, result: object) -> None:
    """Tells the current call's trace of a result."""
    span = CURRENT.get()
    if span is not None:
        span.evaluated(metric, index, result)


def record_batch(
    name: str, waiting: Iterable[Span | None], *, start_ns: int, end_ns: int, attributes: Mapping[str, Value]
) -> None:
    """Tells of work that was done at once for all who wait for it.

    It is a part of the first of them; the others and it refer to each other, for it would count several times as a part
    of each.

    Args:
        name: Of the work.
        waiting: Spans of those who wait, None for one that is not traced.
        start_ns: When it began, nanoseconds since 1970.
        end_ns: When it ended, nanoseconds since 1970.
        attributes: Of the work.
    """
    traced = list(dict.fromkeys(span for span in waiting if span is not None))
    if not traced:
        return
    batch = traced[0].child(name, {**attributes, SHARED_BY: len(traced)}, start_ns=start_ns)
    for other in traced[1:]:
        other.link(batch)
        batch.link(other)
    batch.end(end_ns)
