"""The state that all endpoints of one gateway share."""

import asyncio
from contextlib import AsyncExitStack

from gradewire_gateway.body import ByteBudget, RequestLimit
from gradewire_gateway.observing import GatewayTelemetry
from gradewire_gateway.settings import GatewaySettings
from gradewire_gateway.tracing import HttpTracer, open_http_tracer
from gradewire_gateway.upstream import Upstream
from gradewire_gateway.wire import Json


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
        self.tracer = open_http_tracer(self.settings.tracing, self.telemetry.registry)

    async def close(self) -> None:
        """Closes all that is open, the channel last."""
        await self.closing.aclose()
        self.json.close()
        if self._upstream is not None:
            await self._upstream.close()
        if self.tracer is not None:
            await asyncio.to_thread(self.tracer.close)
