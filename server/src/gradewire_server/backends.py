"""Open and close a server's stores, encoders, judges and lexicon, and the request handlers that use them."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Self

import lmdb
from prometheus_client import CollectorRegistry, Gauge
from typing_extensions import override

from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.ports import ModelStatus, Ports
from gradewire_server.encoders.cached_encoder import BlobCache
from gradewire_server.encoders.factory import open_encoders
from gradewire_server.encoders.gpu_watch import lost_gpu
from gradewire_server.encoders.service import EncoderHealth, ModelsOfKind
from gradewire_server.judges.factory import open_judges
from gradewire_server.judges.service import JudgeHealth
from gradewire_server.judges.verdict_cache import VerdictCache
from gradewire_server.lexicon import Thesaurus
from gradewire_server.requests.admission import Admission
from gradewire_server.requests.context import RequestContext, open_prompts
from gradewire_server.requests.handlers import Handlers
from gradewire_server.rpc.telemetry import RpcTelemetry
from gradewire_server.scoring import Scorer
from gradewire_server.scoring.scorer import RememberedResults
from gradewire_server.settings.engine import CacheConfig, DiskConfig, EngineConfig
from gradewire_server.settings.server import Settings
from gradewire_server.storage.cache import ReadCounter, SecondLevel, SegmentedLru, StorageTelemetry
from gradewire_server.storage.lmdb_environment import StoreDirectory
from gradewire_server.storage.lmdb_prepared import DiskPrepared
from gradewire_server.storage.lmdb_vectors import DiskVectors
from gradewire_server.storage.reference_sets import MemoryPreparedStore, PreparedStore, StoredReferenceSets
from gradewire_server.storage.shared_cache import SharedLru, expose_table
from gradewire_server.storage.shared_table import SharedTable

_log = logging.getLogger(__name__)
_REMEMBERED = "gradewire_remembered_results"
_MEMORY_PREPARED_MAX_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Stores:
    """The stores behind the in-process cache. `warning` says which store could not be opened, or is "" if all are open.

    Close `vectors` before `prepared`.
    """

    vectors: SecondLevel | None
    prepared: PreparedStore
    warning: str = ""

    def degraded(self) -> tuple[str, ...]:
        """Return the problems with stores. Scoring may be slower because of these problems."""
        return tuple(filter(None, (self.warning, self.vectors.degraded() if self.vectors else "")))


async def open_stores(config: CacheConfig, telemetry: StorageTelemetry) -> Stores:
    """Open the stores. An unusable directory causes only a warning."""
    if config.redis is not None:
        # Redis's client takes 0.2 s to import, with OpenTelemetry, and most servers have no Redis.
        from gradewire_server.storage.redis_client import RedisClient  # noqa: PLC0415 - see above
        from gradewire_server.storage.redis_stores import RedisPrepared, RedisVectors  # noqa: PLC0415 - see above

        client = RedisClient(config.redis, telemetry)
        await client.connect()
        vectors = RedisVectors(client, telemetry, prediction_ttl_s=config.prediction_ttl_s)
        return Stores(vectors, RedisPrepared(client))
    if config.disk is None:
        return Stores(None, MemoryPreparedStore(_MEMORY_PREPARED_MAX_BYTES))
    try:
        return await asyncio.to_thread(_open_disk, config.disk, telemetry, config.prediction_ttl_s)
    except (OSError, lmdb.Error) as error:
        _log.warning("disk: %s cannot be used: %s; continuing without a disk store", config.disk.directory, error)
        return Stores(None, _UnavailablePrepared(), f"disk: cannot be used ({_reason(error)}; the log has the path)")


def _open_disk(config: DiskConfig, telemetry: StorageTelemetry, prediction_ttl_s: int) -> Stores:
    directory = StoreDirectory(config.directory)
    try:
        prepared = DiskPrepared(directory, config)
    except BaseException:
        directory.close()
        raise
    vectors, warning = None, ""
    try:
        vectors = DiskVectors(directory, config, telemetry, prediction_ttl_s=prediction_ttl_s)
    except (OSError, lmdb.Error) as error:
        _log.warning("disk: vectors in %s cannot be used: %s; continuing without them", config.directory, error)
        warning = f"disk: vectors cannot be used ({_reason(error)}; the log has the path)"
    directory.share()
    return Stores(vectors, prepared, warning)


def _reason(error: OSError | lmdb.Error) -> str:
    """Return the error without its path, because readers of /healthz must not learn this machine's paths."""
    return (isinstance(error, OSError) and error.strerror) or type(error).__name__


class _UnavailablePrepared(PreparedStore):
    """A store that refuses every operation. It stands in for a required store that could not be opened."""

    _failure = Failure(Status.UNAVAILABLE, "the store of prepared references cannot be used; the server's log says why")

    async def _refuse(self, *_: object, **__: object) -> Failure:
        return self._failure

    read = write = member_count = members = add_members = _refuse

    @override
    async def close(self) -> None:
        return


class Backends:
    """All stores and models of a server, on one event loop. Create them with `open`.

    Attributes:
        ports: The interfaces that scoring and requests use.
    """

    def __init__(
        self, config: EngineConfig, stores: Stores, telemetry: StorageTelemetry, table: SharedTable | None = None
    ) -> None:
        self._config = config
        self._stores = stores
        self._closed = False
        most = config.cache.memory_max_bytes
        lru = SegmentedLru(most) if table is None else SharedLru(most, table)
        telemetry.expose(lru)
        if table is not None:
            expose_table(table, telemetry)
        max_pending_writes = config.cache.max_pending_writes
        self._blobs = BlobCache(lru, stores.vectors, telemetry, max_pending_writes=max_pending_writes, claims=table)
        verdicts = VerdictCache(
            lru,
            stores.vectors,
            telemetry,
            namespace=config.cache.namespace,
            max_pending_writes=max_pending_writes,
            claims=table,
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
    async def open(cls, config: EngineConfig, registry: CollectorRegistry, table: SharedTable | None = None) -> Self:
        """Open stores and preload models. `table` is the memory that processes share.

        If a store cannot be opened, a warning is logged. If a model cannot be loaded, `health` reports this.

        Raises:
            OSError: A certificate cannot be read.
            ImportError: A library that runs encoders or judges is not installed.
        """
        telemetry = StorageTelemetry(registry)
        backends = cls(config, await open_stores(config.cache, telemetry), telemetry, table)
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
        """Load and warm up an encoder ("" for the default encoder). Return a failure if this is not possible."""
        return await self._encoders.load(name)

    async def preload(self) -> None:
        """Load the models listed in the settings. `health` reports models that fail to load.

        A judge loads in the background, because loading may take a minute and encoders must not wait.
        """
        if self._config.judge.preload:
            self._judges.load_soon()
        await self._encoders.preload()

    def health(self) -> EncoderHealth:
        """Return the current state of models and stores. A degraded store never changes a score."""
        encoders = self._encoders.health()
        return replace(encoders, degraded=(*encoders.degraded, *self._stores.degraded()))

    @staticmethod
    def lost() -> str:
        """Return the reason why this process can no longer compute and must be replaced, or ""."""
        return lost_gpu()

    def judge_health(self) -> JudgeHealth:
        """Return the judge's state."""
        return self._judges.health()

    async def close(self) -> None:
        """Fail queued work, finish running work and write back results. You may call `close` twice."""
        if self._closed:
            return
        self._closed = True
        await self._judges.close()
        await self._encoders.close()
        await self._blobs.close()
        await self._stores.prepared.close()


def expose_results(results: RememberedResults, registry: CollectorRegistry) -> None:
    """Export the size and use of remembered results as metrics that are computed at each scrape."""
    size = Gauge(f"{_REMEMBERED}_bytes", "Bytes of remembered results.", registry=registry)
    size.set_function(lambda: results.used_bytes)
    for name, text, read in (
        ("found", "Results that were returned from memory instead of being computed.", lambda: results.found),
        (
            "texts",
            "Texts in reused results. They need no look-up in an encoder's cache.",
            lambda: results.texts,
        ),
    ):
        registry.register(ReadCounter(f"{_REMEMBERED}_{name}", text, read))


@asynccontextmanager
async def open_handlers(settings: Settings, registry: CollectorRegistry | None = None) -> AsyncIterator[Handlers]:
    """Open the server without a transport, for use inside a program. Models load at first use unless preloaded.

    Settings for transport, HTTP and log are ignored.

    Raises:
        OSError: A directory or store cannot be used.
    """
    registry = registry or CollectorRegistry()
    async with opened_handlers(settings, registry, RpcTelemetry(registry)) as (handlers, _):
        yield handlers


@asynccontextmanager
async def opened_handlers(
    settings: Settings, registry: CollectorRegistry, telemetry: RpcTelemetry, table: SharedTable | None = None
) -> AsyncIterator[tuple[Handlers, Backends]]:
    """Open handlers and their backends; raise the same errors as `open_handlers`. `telemetry` counts their work.

    `table` is the memory that this process shares with others.
    """
    directory = settings.judge_prompt_directory
    prompts = await asyncio.to_thread(open_prompts, directory)
    backends = await Backends.open(settings.engine, registry, table)
    try:
        admission = Admission(settings.capacity)
        telemetry.expose_admission(admission)
        results = RememberedResults(settings.engine.cache.remembered_results_max_bytes, table)
        expose_results(results, registry)
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
