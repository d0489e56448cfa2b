"""Opens tracing where the settings or the environment ask for it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from prometheus_client import CollectorRegistry

from gradewire_proto.telemetry.opening import providers_of
from gradewire_proto.telemetry.settings import TelemetrySettings
from gradewire_server.tracing.port import CallTracer


@asynccontextmanager
async def open_tracing(settings: TelemetrySettings, registry: CollectorRegistry) -> AsyncIterator[CallTracer | None]:
    """Traces for as long as the context lasts; None where nothing is to be traced, or cannot be.

    Args:
        settings: Whether, and where to.
        registry: Where figures of what was exported go.
    """
    tracer = await asyncio.to_thread(_open, settings, registry) if settings.is_on() else None
    try:
        yield tracer
    finally:
        if tracer is not None:
            await asyncio.to_thread(tracer.close)


def _open(settings: TelemetrySettings, registry: CollectorRegistry) -> CallTracer | None:
    if (providers := providers_of(settings, "gradewire-server")) is None:
        return None
    # These bring OpenTelemetry's SDK, which a server that traces nothing does not load.
    from gradewire_proto.telemetry.figures import TelemetryFigures  # noqa: PLC0415
    from gradewire_server.tracing.calls import OpenTelemetryCalls  # noqa: PLC0415

    registry.register(TelemetryFigures(providers.outboxes, "gradewire"))
    return OpenTelemetryCalls(providers)
