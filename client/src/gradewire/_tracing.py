"""Traces of calls and requests; OpenTelemetry is never imported where the application has not done so."""

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
    """The trace of one call of a client's method; this one traces nothing."""

    @property
    def context(self) -> Context | None:
        """The context of tasks in which the call's span is the current one; None: as they come."""
        return None

    def noted(self, index: int, row: Any) -> None:
        """Keep the span that made the answer of a row, as the row names it, until its result comes."""

    def answered(self, results: Sequence[Any]) -> None:
        """Emit an event for each result (`ItemScores`, `Comparison`)."""

    def evaluated(self, rows: Sequence[Any], results: Sequence[Any]) -> None:
        """Emit an event for each result of these rows."""
        for result in results:
            self.noted(result.index, rows[result.index])
        self.answered(results)


class RequestTrace:
    """The span of one request to a server; this one traces nothing."""

    def metadata(self, own: Metadata | None) -> Metadata | None:
        """Return the request's metadata with the trace's."""
        return own

    def answered_by(self, code: str) -> None:
        """Note the gRPC code by which the request ended; OK where it is not called and no error passes."""


UNTRACED: Final = CallTrace()
_NO_CALL: Final = nullcontext(UNTRACED)
_NO_REQUEST: Final = nullcontext(RequestTrace())


def call_trace(name: str, attributes: Callable[[], dict[str, Any]] = dict) -> AbstractContextManager[CallTrace]:
    """Return the trace of a call; as a context it makes the call's span the current one, and ends it."""
    return _opened(lambda tracing: tracing.call_span(name, attributes(), is_current=True), _NO_CALL)


def stream_trace(name: str) -> AbstractContextManager[CallTrace]:
    """As `call_trace`, for a generator, which shares its variables with its caller: its span is current nowhere."""
    return _opened(lambda tracing: tracing.call_span(name, {}, is_current=False), _NO_CALL)


def request_trace(method: str, address: str) -> AbstractContextManager[RequestTrace]:
    """Return the span of a request; as a context it ends with it, and says by which error."""
    return _opened(lambda tracing: tracing.request_span(method, address), _NO_REQUEST)


def engine_trace() -> AbstractContextManager[object]:
    """Return a context in which an engine in this process traces its work as a part of the current span."""
    return _opened(lambda tracing: tracing.engine_span(), _NO_CALL)


def _opened(
    open_span: Callable[[Any], AbstractContextManager[T]], untraced: AbstractContextManager[T]
) -> AbstractContextManager[T]:
    """Open a span of the module that traces, if the application has loaded an OpenTelemetry that has what it needs."""
    is_traced = _API in sys.modules and _is_usable()
    return open_span(import_module("gradewire._opentelemetry")) if is_traced else untraced


@cache
def _is_usable() -> bool:
    """Return True if the application's OpenTelemetry has what events need; an older one counts as none."""
    try:
        logs: Any = import_module("opentelemetry._logs")
    except ImportError:
        return False
    return hasattr(logs, "Logger") and hasattr(logs.Logger, "enabled")
