"""Trace calls and requests. OpenTelemetry is used only if the application has imported it."""

import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import Context
from functools import cache
from importlib import import_module
from typing import Any, Final, TypeVar

from gradewire.transport import Metadata

T = TypeVar("T")

_API: Final = "opentelemetry.trace"


class CallTrace:
    """The trace of a client's call; this base class does nothing."""

    @property
    def context(self) -> Context | None:
        """Context for the call's tasks, with the call's span as the current span; None means the default context."""
        return None

    def noted(self, index: int, row: Any) -> None:
        """If a row names the span that produced the row's answer, remember this span until the result arrives."""

    def answered(self, results: Sequence[Any]) -> None:
        """Emit an event for each result (`ItemScores`, `Comparison`)."""

    def evaluated(self, rows: Sequence[Any], results: Sequence[Any]) -> None:
        """Emit an event for each result. If the result's row names a span, the event belongs to that span."""
        for result in results:
            self.noted(result.index, rows[result.index])
        self.answered(results)


class RequestTrace:
    """The span of a request to a server; this base class does nothing."""

    def metadata(self, own: Metadata | None) -> Metadata | None:
        """Return the request's metadata, with the trace's metadata added."""
        return own

    def answered_by(self, code: str) -> None:
        """Record the request's gRPC code. If this method is never called and no error occurs, the code is OK."""


UNTRACED: Final = CallTrace()
_NO_CALL: Final = nullcontext(UNTRACED)
_NO_REQUEST: Final = nullcontext(RequestTrace())


def call_trace(name: str, attributes: Callable[[], dict[str, Any]] = dict) -> AbstractContextManager[CallTrace]:
    return _opened(lambda tracing: tracing.call_span(name, attributes(), is_current=True), _NO_CALL)


def stream_trace(name: str) -> AbstractContextManager[CallTrace]:
    """Return a context manager for a stream's trace.

    The stream's span does not become the current span, because a generator shares its caller's context.
    """
    return _opened(lambda tracing: tracing.call_span(name, {}, is_current=False), _NO_CALL)


def request_trace(method: str, address: str) -> AbstractContextManager[RequestTrace]:
    """Return a context manager for a request's span. The span records an exception that leaves the context."""
    return _opened(lambda tracing: tracing.request_span(method, address), _NO_REQUEST)


def engine_trace() -> AbstractContextManager[object]:
    """Return a context manager in which this process's engine traces its work within the current span."""
    return _opened(lambda tracing: tracing.engine_span(), _NO_CALL)


def _opened(
    open_span: Callable[[Any], AbstractContextManager[T]], untraced: AbstractContextManager[T]
) -> AbstractContextManager[T]:
    is_traced = _API in sys.modules and _is_usable()
    return open_span(import_module("gradewire._opentelemetry")) if is_traced else untraced


@cache
def _is_usable() -> bool:
    try:
        logs: Any = import_module("opentelemetry._logs")
    except ImportError:
        return False
    return hasattr(logs, "Logger") and hasattr(logs.Logger, "enabled")
