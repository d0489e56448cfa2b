"""The state that all endpoints of one gateway share, and traces of its calls."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry

from gradewire_gateway.body import ByteBudget, RequestLimit
from gradewire_gateway.observing import GatewayTelemetry
from gradewire_gateway.problems import ProblemError
from gradewire_gateway.settings import GatewaySettings
from gradewire_gateway.upstream import CallOptions, Upstream
from gradewire_gateway.wire import Json
from gradewire_proto.spans import GRPC, RPC_METHOD, RPC_STATUS, RPC_SYSTEM
from gradewire_proto.telemetry.opening import providers_of
from gradewire_proto.telemetry.settings import TelemetrySettings

if TYPE_CHECKING:
    from gradewire_gateway.telemetry import HttpTracer


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
    from gradewire_gateway.telemetry import HttpTracer  # noqa: PLC0415
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


class Gateway:
    """Made by the app; `open` and `close` belong to the event loop that serves.

    Args:
        settings: All of them.

    Attributes:
        settings: As given.
        telemetry: Figures of its requests.
        places: Requests in flight.
        budget: Bytes of their bodies.
        json: Reads and writes messages.
        tracer: Traces requests; None before `open`, and where nothing is traced.
        closing: What is to be closed with it, before the channel is.
    """

    def __init__(self, settings: GatewaySettings) -> None:
        self.settings = settings
        self.telemetry = GatewayTelemetry()
        self.places = RequestLimit(settings.bounds.max_requests)
        self.budget = ByteBudget(settings.bounds.max_bytes_in_flight)
        self.json = Json()
        self.tracer: HttpTracer | None = None
        self.closing = AsyncExitStack()
        self._upstream: Upstream | None = None

    @property
    def upstream(self) -> Upstream:
        """The server; a RuntimeError before `open`."""
        if self._upstream is None:
            raise RuntimeError("the gateway is not open: serve the app with its lifespan")
        return self._upstream

    def open(self) -> None:
        """Opens the channel to the server; connects at the first call."""
        self._upstream = Upstream(self.settings.upstream)
        self.tracer = open_tracer(self.settings.telemetry, self.telemetry.registry)

    async def close(self) -> None:
        """Closes all that is open, the channel last."""
        await self.closing.aclose()
        self.json.close()
        if self._upstream is not None:
            await self._upstream.close()
        if self.tracer is not None:
            await asyncio.to_thread(self.tracer.close)
