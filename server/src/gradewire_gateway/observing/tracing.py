"""Traces of the gateway: whether there are any, and the span of a call that it makes; OpenTelemetry stays unloaded."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry

from gradewire_gateway.problems import ProblemError
from gradewire_gateway.upstream import CallOptions
from gradewire_proto.conventions.telemetry_names import (
    GRPC,
    RPC_METHOD,
    RPC_STATUS,
    RPC_SYSTEM,
)
from gradewire_proto.telemetry.opening import providers_of
from gradewire_proto.telemetry.settings import TelemetrySettings

if TYPE_CHECKING:
    from gradewire_gateway.observing.spans import HttpTracer

_OK: Final = "OK"
_CANCELLED: Final = "CANCELLED"


def open_tracer(settings: TelemetrySettings, registry: CollectorRegistry) -> "HttpTracer | None":
    """Traces where the settings or the environment ask for it; None where they do not, or where it cannot be.

    Args:
        settings: Whether, and where to.
        registry: Where figures of what was exported go.
    """
    if not settings.is_on():
        return None
    if (providers := providers_of(settings, "gradewire-gateway")) is None:
        return None
    # These bring OpenTelemetry's SDK, which a gateway that traces nothing does not load.
    from gradewire_gateway.observing.spans import HttpTracer  # noqa: PLC0415
    from gradewire_proto.telemetry.figures import TelemetryFigures  # noqa: PLC0415

    registry.register(TelemetryFigures(providers.outboxes, "gradewire_gateway"))
    return HttpTracer(providers)


@contextmanager
def calling(options: CallOptions, path: str) -> Iterator[CallOptions]:
    """The span of one call of the server, where the request is traced; gives the options that the call is to have."""
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
