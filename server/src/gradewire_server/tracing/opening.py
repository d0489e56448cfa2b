"""Opens tracing where the settings or the environment ask for it."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from importlib.util import find_spec

from prometheus_client import CollectorRegistry

from gradewire_proto.telemetry.settings import TelemetrySettings
from gradewire_server.tracing.port import CallTracer

_log = logging.getLogger(__name__)


@asynccontextmanager
async def tracing(settings: TelemetrySettings, registry: CollectorRegistry) -> AsyncIterator[CallTracer | None]:
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
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.sdk") is None:
        # Of the settings' own endpoint they say so themselves: this one is of the environment, which others share.
        _log.warning("OTEL_EXPORTER_OTLP_ENDPOINT is set, and nothing is traced: pip install 'gradewire[otel]'")
        return None
    # These bring OpenTelemetry's SDK, which a server that traces nothing does not load.
    from gradewire_proto.telemetry.figures import TelemetryFigures  # noqa: PLC0415
    from gradewire_proto.telemetry.providers import Service, open_providers  # noqa: PLC0415
    from gradewire_server.tracing.calls import OpenTelemetryCalls  # noqa: PLC0415

    providers = open_providers(settings, Service("gradewire-server", version("gradewire")))
    if providers is None:
        return None
    registry.register(TelemetryFigures(providers.outboxes, "gradewire"))
    return OpenTelemetryCalls(providers)
