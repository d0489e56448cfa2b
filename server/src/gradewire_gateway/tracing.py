"""Spans of HTTP requests and of the calls that they make of the server; knows nothing of OpenTelemetry."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry
from starlette.datastructures import Headers
from starlette.types import Scope

from gradewire_gateway.problems import ProblemError
from gradewire_gateway.requests import record_of
from gradewire_gateway.upstream import CallOptions
from gradewire_proto.spans import (
    GRPC,
    HTTP_METHOD,
    HTTP_ROUTE,
    HTTP_STATUS,
    REQUEST_ID,
    RPC_METHOD,
    RPC_STATUS,
    RPC_SYSTEM,
    TRACEPARENT_KEY,
    TRACESTATE_KEY,
    URL_SCHEME,
)
from gradewire_proto.tracing import open_tracing, prometheus_counts
from gradewire_proto.tracing_settings import TracingSettings

if TYPE_CHECKING:
    from gradewire_proto.otel import OtelSpan
    from gradewire_proto.otel_sdk import Tracing


_UNTRACED: Final = frozenset({"/healthz", "/metrics"})
_FAULTS: Final = 500
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"})
_OK: Final = "OK"
_CANCELLED: Final = "CANCELLED"


class HttpTracer:
    """Traces requests; opened by `open_http_tracer`."""

    def __init__(self, tracing: "Tracing") -> None:
        self._tracing = tracing

    def begin(self, scope: Scope) -> "OtelSpan | None":
        """Start the span of a request, sampled or not; return None for a request that watches the gateway."""
        if scope["path"] in _UNTRACED:
            return None
        headers, method = Headers(scope=scope), _method(scope)
        return self._tracing.begin(
            method,
            headers.get(TRACEPARENT_KEY, ""),
            ",".join(headers.getlist(TRACESTATE_KEY)),
            {HTTP_METHOD: method, URL_SCHEME: scope.get("scheme", "http")},
        )

    def close(self) -> None:
        """Export what waits, within a bounded time; blocks."""
        self._tracing.close()


def open_http_tracer(settings: TracingSettings, registry: CollectorRegistry) -> HttpTracer | None:
    """Open tracing if the settings or the environment turn it on; return None if they do not, or it cannot be opened.

    Args:
        settings: Collector and share of traces.
        registry: Registry for counters of exported spans.
    """
    if not settings.is_on():
        return None
    tracing = open_tracing(settings, "gradewire-gateway", prometheus_counts(registry, "gradewire_gateway"))
    return None if tracing is None else HttpTracer(tracing)


def end_request_span(span: "OtelSpan", scope: Scope) -> None:
    """Set the outcome of a request on its span, and end it; an unknown path is left out."""
    record = record_of(scope)
    if record.route:
        span.rename(f"{_method(scope)} {record.route}")
        span.set(HTTP_ROUTE, record.route)
    span.set(HTTP_STATUS, record.status)
    span.set(REQUEST_ID, record.request_id)
    if record.status >= _FAULTS:
        span.fail(str(record.status))
    span.end()


@contextmanager
def calling(options: CallOptions, path: str) -> Iterator[CallOptions]:
    """Trace one call of the server if the request is traced; give the options that the call is to have."""
    if options.span is None:
        yield options
        return
    method = path.lstrip("/")
    span = options.span.child(method, {RPC_SYSTEM: GRPC, RPC_METHOD: method}, calls_out=True)
    code = _CANCELLED
    try:
        yield replace(options, metadata=(*options.metadata, *span.metadata()))
        code = _OK
    except ProblemError as error:
        code = error.problem.code.upper()
        raise
    finally:
        span.set(RPC_STATUS, code)
        if code not in {_OK, _CANCELLED}:
            span.fail(code)
        span.end()


def _method(scope: Scope) -> str:
    method: str = scope["method"]
    return method if method in _METHODS else "_OTHER"
