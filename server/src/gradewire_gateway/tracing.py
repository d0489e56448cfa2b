"""Spans for HTTP requests and for their calls to the server. This module does not import OpenTelemetry."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from starlette.datastructures import Headers
from starlette.types import Scope

from gradewire_gateway.problems import ProblemError
from gradewire_gateway.requests import record_of
from gradewire_gateway.upstream import CallOptions
from gradewire_proto.tracing.spans import (
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

if TYPE_CHECKING:
    from gradewire_proto.tracing.otel import OtelSpan
    from gradewire_proto.tracing.sdk import Tracing


_UNTRACED: Final = frozenset({"/healthz", "/metrics"})
_FAULTS: Final = 500
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"})
_OK: Final = "OK"
_CANCELLED: Final = "CANCELLED"


def begin_request_span(tracing: "Tracing", scope: Scope) -> "OtelSpan | None":
    """Start a request's span, sampled or not. Return None for requests for health and metrics."""
    if scope["path"] in _UNTRACED:
        return None
    headers, method = Headers(scope=scope), _method(scope)
    traceparent, tracestate = headers.get(TRACEPARENT_KEY, ""), ",".join(headers.getlist(TRACESTATE_KEY))
    attributes = {HTTP_METHOD: method, URL_SCHEME: scope.get("scheme", "http")}
    return tracing.begin(method, traceparent, tracestate, attributes)


def end_request_span(span: "OtelSpan", scope: Scope) -> None:
    """Set a request's result on its span, and end the span. Do not record an unknown path."""
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
    """Trace a call to the server if its request is traced. Yield the options for the call."""
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
