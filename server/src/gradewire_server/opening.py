"""Opens the server without its transport: what stands behind the ports, and the handlers before them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from prometheus_client import CollectorRegistry

from gradewire_server.backends import Backends
from gradewire_server.requests.admission.admission import Admission
from gradewire_server.requests.context import RequestContext
from gradewire_server.requests.handlers import Handlers
from gradewire_server.requests.prompts.directory import open_prompts
from gradewire_server.rpc.telemetry import RpcTelemetry
from gradewire_server.scoring import Scorer
from gradewire_server.scoring.remembered import RememberedResults
from gradewire_server.scoring.telemetry import RememberedTelemetry
from gradewire_server.settings.server import Settings


@asynccontextmanager
async def open_handlers(settings: Settings, registry: CollectorRegistry | None = None) -> AsyncIterator[Handlers]:
    """The whole server without a transport, for embedding; models are loaded at their first use unless preloaded.

    Args:
        settings: Those of transport, HTTP and log are not read.
        registry: Where Prometheus metrics go; one of its own where none is given.

    Raises:
        OSError: A directory or store cannot be used at all.
    """
    registry = registry or CollectorRegistry()
    async with opened(settings, registry, RpcTelemetry(registry)) as (handlers, _):
        yield handlers


@asynccontextmanager
async def opened(
    settings: Settings, registry: CollectorRegistry, telemetry: RpcTelemetry
) -> AsyncIterator[tuple[Handlers, Backends]]:
    """The handlers with what stands behind them, counted by `telemetry`; arguments and errors as `open_handlers`."""
    directory = settings.judge_prompt_directory
    prompts = await asyncio.to_thread(open_prompts, directory)
    backends = await Backends.open(settings.engine, registry)
    try:
        admission = Admission(settings.capacity)
        telemetry.admission.expose(admission)
        results = RememberedResults(settings.engine.cache.remembered_results_max_bytes)
        RememberedTelemetry(results, registry)
        context = RequestContext(
            Scorer(backends.ports, results=results),
            backends.ports,
            prompts=prompts,
            limits=settings.limits,
            deadlines=settings.deadlines,
            admission=admission,
            count_result=telemetry.results.count,
            count_synthetic=telemetry.synthetic.count,
        )
        handlers = Handlers(context)
        try:
            yield handlers, backends
        finally:
            await handlers.close()
    finally:
        await backends.close()
