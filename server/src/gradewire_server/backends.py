"""Stores, encoders, judges and lexicon, opened and closed together, and the handlers in front of them."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Self

from prometheus_client import CollectorRegistry

from gradewire_server.domain.items import Failure
from gradewire_server.domain.ports import ModelStatus, Ports
from gradewire_server.encoders.cached_encoder import BlobCache
from gradewire_server.encoders.factory import open_encoders
from gradewire_server.encoders.service import ModelsOfKind
from gradewire_server.judges.factory import open_judges
from gradewire_server.judges.service import JudgeHealth
from gradewire_server.judges.verdict_cache import VerdictCache
from gradewire_server.lexicon import Thesaurus
from gradewire_server.requests.admission import Admission
from gradewire_server.requests.context import RequestContext, open_prompts
from gradewire_server.requests.handlers import Handlers
from gradewire_server.rpc.telemetry import RpcTelemetry
from gradewire_server.scoring import Scorer
from gradewire_server.scoring.scorer import RememberedResults, RememberedTelemetry
from gradewire_server.settings.engine import EngineConfig
from gradewire_server.settings.server import Settings
from gradewire_server.storage.cache import SegmentedLru, StorageTelemetry
from gradewire_server.storage.factory import Stores, open_stores
from gradewire_server.storage.reference_sets import StoredReferenceSets


@dataclass(frozen=True, slots=True)
class Health:
    """The state of models, stores and judge; scores are right whatever is degraded. See also `EncoderHealth`."""

    models: Mapping[str, bool]
    troubles: Mapping[str, str]
    degraded: tuple[str, ...]
    judge: JudgeHealth


class Backends:
    """All of it; made by `open`. Lives on the event loop it was opened on.

    Attributes:
        ports: What scoring and requests ask.
    """

    def __init__(self, config: EngineConfig, stores: Stores, telemetry: StorageTelemetry) -> None:
        self._config = config
        self._stores = stores
        self._closed = False
        lru = SegmentedLru(config.cache.memory_max_bytes)
        telemetry.expose(lru)
        max_pending_writes = config.cache.max_pending_writes
        self._blobs = BlobCache(lru, stores.vectors, telemetry, max_pending_writes=max_pending_writes)
        verdicts = VerdictCache(
            lru,
            stores.vectors,
            telemetry,
            namespace=config.cache.namespace,
            max_pending_writes=max_pending_writes,
        )
        self._encoders = open_encoders(config, self._blobs, telemetry.registry)
        self._judges = open_judges(config.judge, telemetry.registry, verdicts)
        self.ports = Ports(
            embeddings=self._encoders,
            encoders=ModelsOfKind(self._encoders.library, "encoder"),
            judges=self._judges,
            judge_models=self._judges,
            reference_sets=StoredReferenceSets(stores.prepared, namespace=config.cache.namespace),
            lexicon=Thesaurus(config.wordnet_directory),
            graders=self._encoders,
            grader_models=ModelsOfKind(self._encoders.library, "grader"),
            of_namespace=self._within,
        )

    @classmethod
    async def open(cls, config: EngineConfig, registry: CollectorRegistry) -> Self:
        """Open stores and preload models.

        A store that cannot be opened is left out with a warning, a model that cannot be loaded is shown by `health`.

        Raises:
            OSError: A certificate cannot be read.
            ImportError: What encoders or judges run on is not installed.
        """
        telemetry = StorageTelemetry(registry)
        backends = cls(config, await open_stores(config.cache, telemetry), telemetry)
        await backends.preload()
        return backends

    def _within(self, namespace: str) -> Ports:
        encoders = self._encoders.within(namespace)
        return replace(
            self.ports,
            embeddings=encoders,
            graders=encoders,
            judges=self._judges.within(namespace),
            reference_sets=StoredReferenceSets(self._stores.prepared, namespace=namespace),
        )

    async def load(self, name: str) -> ModelStatus | Failure:
        """Loads and warms up an encoder, "" being the default one; the failure where it cannot be had."""
        return await self._encoders.load(name)

    async def preload(self) -> None:
        """Loads what the settings ask to load at start; `health` shows what cannot be had.

        A judge is opened beside: it may take a minute, and the others must not wait for it.
        """
        if self._config.judge.preload:
            self._judges.load_soon()
        await self._encoders.preload()

    def health(self) -> Health:
        """Models and stores as they are now."""
        encoders = self._encoders.health()
        degraded = (*encoders.degraded, *self._stores.degraded())
        return Health(encoders.models, encoders.troubles, degraded, self._judges.health())

    async def close(self) -> None:
        """Fails what is queued, finishes what is running, writes back what is computed. Closing twice is allowed."""
        if self._closed:
            return
        self._closed = True
        await self._judges.close()
        await self._encoders.close()
        await self._blobs.close()
        await self._stores.prepared.close()


@asynccontextmanager
async def open_handlers(settings: Settings, registry: CollectorRegistry | None = None) -> AsyncIterator[Handlers]:
    """Open the whole server without a transport, for embedding; models load at first use unless preloaded.

    Settings of transport, HTTP and log are not read.

    Raises:
        OSError: A directory or store cannot be used at all.
    """
    registry = registry or CollectorRegistry()
    async with opened_handlers(settings, registry, RpcTelemetry(registry)) as (handlers, _):
        yield handlers


@asynccontextmanager
async def opened_handlers(
    settings: Settings, registry: CollectorRegistry, telemetry: RpcTelemetry
) -> AsyncIterator[tuple[Handlers, Backends]]:
    """The handlers with what stands behind them, counted by `telemetry`; arguments and errors as `open_handlers`."""
    directory = settings.judge_prompt_directory
    prompts = await asyncio.to_thread(open_prompts, directory)
    backends = await Backends.open(settings.engine, registry)
    try:
        admission = Admission(settings.capacity)
        telemetry.expose_admission(admission)
        results = RememberedResults(settings.engine.cache.remembered_results_max_bytes)
        RememberedTelemetry(results, registry)
        context = RequestContext(
            Scorer(backends.ports, results=results),
            backends.ports,
            prompts=prompts,
            limits=settings.limits,
            deadlines=settings.deadlines,
            admission=admission,
            count_result=telemetry.count_result,
            count_synthetic=telemetry.count_synthetic,
        )
        handlers = Handlers(context)
        try:
            yield handlers, backends
        finally:
            await handlers.close()
    finally:
        await backends.close()
