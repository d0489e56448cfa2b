"""What the engine's tests share."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from tests.support.servers.valkey import ValkeyServer
from tests.support.servers.wire import Wire, wire_server

from gradewire_server.backends import Backends
from gradewire_server.settings.engine import CacheConfig, ComputeConfig, EngineConfig
from gradewire_server.storage.cache import StorageTelemetry

OpenBackends = Callable[..., Awaitable[Backends]]


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def telemetry(registry: CollectorRegistry) -> StorageTelemetry:
    return StorageTelemetry(registry)


@pytest.fixture
async def open_backends(minilm: Path) -> AsyncIterator[OpenBackends]:
    """Opens engines on the default encoder and closes them at the end; closing one twice is allowed."""
    engines: list[Backends] = []

    async def open_(
        cache: CacheConfig | None = None,
        compute: ComputeConfig | None = None,
        registry: CollectorRegistry | None = None,
    ) -> Backends:
        config = EngineConfig(
            minilm, preload=("",), cache=cache or CacheConfig(), compute=compute or ComputeConfig(workers=2)
        )
        engine = await Backends.open(config, registry or CollectorRegistry())
        engines.append(engine)
        return engine

    yield open_
    for engine in engines:
        await engine.close()


@pytest.fixture(scope="module")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ValkeyServer]:
    with ValkeyServer(tmp_path_factory.mktemp("valkey")) as server:
        yield server


@pytest.fixture
async def wire() -> AsyncIterator[Wire]:
    """A server over the hash engine: what concerns the wire is tested on a real socket."""
    async with wire_server() as running:
        yield running
