"""What calls and transports ask of tracing; OpenTelemetry is never imported where the application has not done so."""

import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import Context
from typing import Any, Final

from gradewire._tracing.port import CallTrace, Metadata, RequestTrace

_API: Final = "opentelemetry.trace"


class _Untraced:
    """Of either kind, where nothing is traced."""

    context: Context | None = None

    def evaluated(self, rows: Sequence[Any], results: Sequence[Any]) -> None:
        """Nothing to emit."""

    def noted(self, index: int, row: Any) -> None:
        """Nothing to keep."""

    def answered(self, results: Sequence[Any]) -> None:
        """Nothing to emit."""

    def metadata(self, own: Metadata | None) -> Metadata | None:
        """As it is."""
        return own

    def answered_by(self, code: str) -> None:
        """Nothing to note."""


UNTRACED: Final = _Untraced()
_UNTRACED: Final[AbstractContextManager[_Untraced]] = nullcontext(UNTRACED)


def call_trace(name: str, attributes: Callable[[], dict[str, Any]] = dict) -> AbstractContextManager[CallTrace]:
    """The trace of a call; as a context it makes the call's span the current one, and ends it."""
    if _API not in sys.modules:
        return _UNTRACED
    from gradewire._tracing.otel import OpenTelemetryCall  # noqa: PLC0415 - see above

    return OpenTelemetryCall(name, attributes(), is_current=True)


def stream_trace(name: str) -> AbstractContextManager[CallTrace]:
    """As `call_trace`, for a generator, which shares its variables with its caller: its span is current nowhere."""
    if _API not in sys.modules:
        return _UNTRACED
    from gradewire._tracing.otel import OpenTelemetryCall  # noqa: PLC0415 - as in `call_trace`

    return OpenTelemetryCall(name, {}, is_current=False)


def request_trace(method: str, address: str) -> AbstractContextManager[RequestTrace]:
    """The span of a request; as a context it ends with it, and says by which error."""
    if _API not in sys.modules:
        return _UNTRACED
    from gradewire._tracing.otel import OpenTelemetryRequest  # noqa: PLC0415 - as in `call_trace`

    return OpenTelemetryRequest(method, address)


def engine_trace() -> AbstractContextManager[object]:
    """Has an engine in this process trace its work as a part of the current span."""
    if _API not in sys.modules:
        return _UNTRACED
    from gradewire._tracing.engine import engine_span  # noqa: PLC0415 - as in `call_trace`

    return engine_span()
