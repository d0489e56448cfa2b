"""The state that all endpoints of one gateway share."""

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from gradewire_gateway.body import Budget
from gradewire_gateway.observing import GatewayTelemetry
from gradewire_gateway.settings import GatewaySettings
from gradewire_gateway.upstream import Upstream
from gradewire_gateway.wire import Json
from gradewire_proto.tracing.factory import open_tracing, prometheus_counts

if TYPE_CHECKING:
    from gradewire_proto.tracing.sdk import Tracing


class Gateway:
    """The state of a gateway; `open` and `close` belong to the event loop that serves.

    Attributes:
        places: Requests in flight.
        budget: Bytes of their bodies.
        tracing: Tracing of requests; None before `open`, and where nothing is traced.
        closing: What is to be closed with it, before the channel is.
    """

    def __init__(self, settings: GatewaySettings) -> None:
        self.settings = settings
        self.telemetry = GatewayTelemetry()
        bounds = settings.bounds
        self.places = Budget(bounds.max_requests, f"{bounds.max_requests} requests are in flight")
        self.budget = Budget(bounds.max_bytes_in_flight, "the bodies of the requests in flight take too much memory")
        self.json = Json()
        self.tracing: Tracing | None = None
        self.closing = AsyncExitStack()
        self._upstream: Upstream | None = None

    @property
    def upstream(self) -> Upstream:
        """The server; a RuntimeError before `open`."""
        if self._upstream is None:
            raise RuntimeError("the gateway is not open: serve the app with its lifespan")
        return self._upstream

    def open(self) -> None:
        """Open the channel to the server; connects at the first call."""
        self._upstream = Upstream(self.settings.upstream)
        if self.settings.tracing.is_on():
            counts = prometheus_counts(self.telemetry.registry, "gradewire_gateway")
            self.tracing = open_tracing(self.settings.tracing, "gradewire-gateway", counts)

    async def close(self) -> None:
        """Close all that is open, the channel last."""
        await self.closing.aclose()
        self.json.close()
        if self._upstream is not None:
            await self._upstream.close()
        if self.tracing is not None:
            await asyncio.to_thread(self.tracing.close)
