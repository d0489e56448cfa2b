"""The stores for the settings: Redis, or this machine's disk, or neither."""

import asyncio
import logging
from dataclasses import dataclass

import lmdb
from typing_extensions import override

from gradewire_server.domain.items import Failure, Status
from gradewire_server.settings.engine import CacheConfig, DiskConfig
from gradewire_server.storage.cache import SecondLevel, StorageTelemetry
from gradewire_server.storage.lmdb_environment import StoreDirectory
from gradewire_server.storage.lmdb_stores import DiskPrepared, DiskVectors
from gradewire_server.storage.redis_client import RedisClient, read_mac_key
from gradewire_server.storage.redis_stores import RedisPrepared, RedisVectors
from gradewire_server.storage.reference_sets import MemoryPreparedStore, PreparedStore

_log = logging.getLogger(__name__)
_MEMORY_PREPARED_MAX_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Stores:
    """The stores behind the in-process cache. `prepared` is closed after `vectors`.

    `warning` says what could not be opened, "" when all could.
    """

    vectors: SecondLevel | None
    prepared: PreparedStore
    warning: str = ""

    def degraded(self) -> tuple[str, ...]:
        """Return why scoring is slower than it could be."""
        return tuple(filter(None, (self.warning, self.vectors.degraded() if self.vectors else "")))


async def open_stores(config: CacheConfig, telemetry: StorageTelemetry) -> Stores:
    """Opens the stores; a directory that cannot be used becomes a warning, never an error.

    Raises:
        MacKeyError: Values in Redis are to be authenticated, and the key cannot be had.
    """
    if config.redis is not None:
        key = await asyncio.to_thread(read_mac_key, config.redis.mac_key, config.redis.mac_key_file)
        client = RedisClient(config.redis, telemetry, mac_key=key)
        await client.connect()
        vectors = RedisVectors(client, telemetry, prediction_ttl_s=config.prediction_ttl_s)
        return Stores(vectors, RedisPrepared(client))
    if config.disk is None:
        return Stores(None, MemoryPreparedStore(_MEMORY_PREPARED_MAX_BYTES))
    try:
        return await asyncio.to_thread(_open_disk, config.disk, telemetry, config.prediction_ttl_s)
    except (OSError, lmdb.Error) as error:
        _log.warning("disk: %s cannot be used: %s; going on without it", config.disk.directory, error)
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
        _log.warning("disk: vectors in %s cannot be used: %s; going on without them", config.directory, error)
        warning = f"disk: vectors cannot be used ({_reason(error)}; the log has the path)"
    directory.share()
    return Stores(vectors, prepared, warning)


def _reason(error: OSError | lmdb.Error) -> str:
    """Return what is wrong without where: /healthz is read by others than those who may know this machine's paths."""
    return (isinstance(error, OSError) and error.strerror) or type(error).__name__


class _UnavailablePrepared(PreparedStore):
    """Stands where the settings ask for durable answers and there is no place to keep them."""

    _failure = Failure(Status.UNAVAILABLE, "the store of prepared references cannot be used; the server's log says why")

    async def _refuse(self, *_: object, **__: object) -> Failure:
        return self._failure

    read = write = member_count = members = add_members = _refuse

    @override
    async def close(self) -> None:
        return
