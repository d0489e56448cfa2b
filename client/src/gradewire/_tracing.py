"""What calls and transports ask of tracing; OpenTelemetry is never imported where the application has not done so."""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any, Final

from gradewire.transport import CallTrace, RequestTrace

_API: Final = "opentelemetry.trace"


UNTRACED: Final = CallTrace()
_NO_CALL: Final = nullcontext(UNTRACED)
_NO_REQUEST: Final = nullcontext(RequestTrace())


def call_trace(name: str, attributes: Callable[[], dict[str, Any]] = dict) -> AbstractContextManager[CallTrace]:
    """The trace of a call; as a context it makes the call's span the current one, and ends it."""
    if not _is_traced():
        return _NO_CALL
    from gradewire._opentelemetry import OpenTelemetryCall  # noqa: PLC0415 - see `_is_traced`

    return OpenTelemetryCall(name, attributes(), is_current=True)


def stream_trace(name: str) -> AbstractContextManager[CallTrace]:
    """As `call_trace`, for a generator, which shares its variables with its caller: its span is current nowhere."""
    if not _is_traced():
        return _NO_CALL
    from gradewire._opentelemetry import OpenTelemetryCall  # noqa: PLC0415 - as in `call_trace`

    return OpenTelemetryCall(name, {}, is_current=False)


def request_trace(method: str, address: str) -> AbstractContextManager[RequestTrace]:
    """The span of a request; as a context it ends with it, and says by which error."""
    if not _is_traced():
        return _NO_REQUEST
    from gradewire._opentelemetry import OpenTelemetryRequest  # noqa: PLC0415 - as in `call_trace`

    return OpenTelemetryRequest(method, address)


def engine_trace() -> AbstractContextManager[object]:
    """Has an engine in this process trace its work as a part of the current span."""
    if not _is_traced():
        return _NO_CALL
    from gradewire._opentelemetry import engine_span  # noqa: PLC0415 - as in `call_trace`

    return engine_span()


def _is_traced() -> bool:
    return _API in sys.modules and _is_usable()


@cache
def _is_usable() -> bool:
    """Whether the application's OpenTelemetry has what events need; one of before that counts as not there."""
    try:
        from opentelemetry._logs import Logger  # noqa: PLC0415 - the application has loaded what it belongs to
    except ImportError:
        return False
    return hasattr(Logger, "enabled")
