"""The span of a request of HTTP, in OpenTelemetry's terms."""

from typing import Final

from opentelemetry.trace import SpanKind
from starlette.datastructures import Headers
from starlette.types import Scope

from gradewire_gateway.requests import RequestRecord
from gradewire_proto.spans import (
    HTTP_METHOD,
    HTTP_ROUTE,
    HTTP_STATUS,
    REQUEST_ID,
    TRACEPARENT_KEY,
    TRACESTATE_KEY,
    URL_SCHEME,
)
from gradewire_proto.telemetry.providers import Providers
from gradewire_proto.telemetry.recorded import Recorded
from gradewire_proto.telemetry.recorder import Recorder

_UNTRACED: Final = frozenset({"/healthz", "/metrics"})
_FAULTS: Final = 500
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"})


class HttpTracer:
    """Made on the event loop that serves.

    Args:
        providers: Closed with this.
    """

    def __init__(self, providers: Providers) -> None:
        self._recorder = Recorder(providers)

    def begin(self, scope: Scope) -> Recorded | None:
        """Begins the span of a request, which may be one that is not sampled; None for what watches the gateway."""
        if scope["path"] in _UNTRACED:
            return None
        headers = Headers(scope=scope)
        method = scope["method"] if scope["method"] in _METHODS else "_OTHER"
        return self._recorder.begin(
            method,
            SpanKind.SERVER,
            headers.get(TRACEPARENT_KEY, ""),
            ",".join(headers.getlist(TRACESTATE_KEY)),
            {HTTP_METHOD: method, URL_SCHEME: scope.get("scheme", "http")},
        )

    def end(self, span: Recorded, record: RequestRecord) -> None:
        """Says of a request's span how it ended, and ends it; a path that is not ours is not told."""
        if not span.call.sampled:
            return
        if record.route:
            span.name = f"{span.name} {record.route}"
            span.set(HTTP_ROUTE, record.route)
        span.set(HTTP_STATUS, record.status)
        span.set(REQUEST_ID, record.request_id)
        if record.status >= _FAULTS:
            span.fail(str(record.status))
        span.end()

    def close(self) -> None:
        """Exports what there is, within a bounded time; blocks."""
        self._recorder.close()
