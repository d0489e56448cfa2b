"""What is kept, where and for how long."""

import re
from dataclasses import field
from pathlib import Path
from typing import Annotated

import platformdirs
from pydantic.dataclasses import dataclass

from gradewire_server.settings.types import (
    GIB,
    GROUP,
    HIDDEN,
    MIB,
    Bytes,
    BytesOrAuto,
    Count,
    Directory,
    OptionalDirectory,
    PositiveSeconds,
    Secret,
    Setting,
)

_NAMESPACE = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def _user_cache() -> Path:
    return platformdirs.user_cache_path("gradewire")


@dataclass(frozen=True, slots=True, config=GROUP)
class DiskConfig:
    """The second level on this machine; also the durable place of prepared synthetic answers."""

    directory: Annotated[
        Directory,
        Setting(
            "disk_directory",
            "Directory of the store on this machine; unset: the user's cache directory; empty: none.",
            default=_user_cache,
        ),
    ]
    """Belongs to gradewire alone. Processes may share it; two opened stores of one process may not."""
    max_bytes: Annotated[Bytes, Setting("disk_max_bytes", "Store of predictions' vectors.")] = 2 * GIB
    """All generations together."""
    reference_max_bytes: Annotated[Bytes, Setting("reference_max_bytes", "Store of references' vectors.")] = 2 * GIB
    """When it is full, further ones are kept with the predictions."""
    prepared_max_bytes: Annotated[Bytes, Setting("prepared_max_bytes", "Store of prepared synthetic answers.")] = GIB
    """When it is full, storing fails."""

    def __post_init__(self) -> None:
        if min(self.max_bytes, self.reference_max_bytes, self.prepared_max_bytes) < MIB:
            raise ValueError("max_bytes, reference_max_bytes and prepared_max_bytes must be 1 MiB or more")


@dataclass(frozen=True, slots=True, config=GROUP)
class RedisConfig:
    """The second level that several machines share; takes the place of the disk for vectors and prepared answers."""

    url: Annotated[str, HIDDEN, Setting("redis_url", "redis://, rediss:// or unix:// store shared by machines.")] = (
        field(repr=False)
    )
    cluster: Annotated[bool, Setting("redis_cluster", "The Redis server is a cluster.")] = False
    mac_key: Annotated[
        Secret,
        Setting(
            "redis_mac_key",
            "Secret that values in Redis are authenticated with (16 bytes or more), the same for all servers.",
        ),
    ] = field(default="", repr=False)
    """Without it, anybody who can write to Redis can change scores."""
    mac_key_file: Annotated[
        OptionalDirectory,
        Setting("redis_mac_key_file", "File with that secret, in place of redis_mac_key."),
    ] = None
    timeout_s: Annotated[PositiveSeconds, Setting("redis_timeout_s", "Longest wait for one Redis answer.")] = 0.2
    """Of connecting and of reading one chunk; what takes longer is a miss. Generous, because a busy machine delays even
    a quick answer, and the breaker bounds how often it is waited for."""
    write_timeout_s: PositiveSeconds = 2.0
    """Of writing one chunk, which no score waits for."""
    slow_s: PositiveSeconds = 0.15
    """A chunk that takes longer to read counts as a failure for the breaker, though its answers are used."""
    failures_to_open: Count = 5
    """Failures within `failure_window_s` that open the breaker."""
    failure_window_s: PositiveSeconds = 10.0
    open_s: PositiveSeconds = 1.0
    """Time between an open breaker's probes."""

    def __post_init__(self) -> None:
        if not self.url.startswith(("redis://", "rediss://", "unix://")):
            raise ValueError("the Redis URL must begin with redis://, rediss:// or unix://")
        if self.mac_key and self.mac_key_file is not None:
            raise ValueError("redis_mac_key and redis_mac_key_file exclude each other: set one")


@dataclass(frozen=True, slots=True, config=GROUP)
class CacheConfig:
    """The in-process cache, and the second level behind it."""

    namespace: Annotated[str, Setting("namespace", "Tenants with different namespaces share no cache entry.")] = (
        "default"
    )
    """Letters, digits, ``_ . -``, at most 64."""
    memory_max_bytes: Annotated[
        BytesOrAuto,
        Setting("memory_max_bytes", "In-process cache of vectors; 0: a share of memory_limit.", default=int),
    ] = 256 * MIB
    """Keys and overhead are counted. Its share of memory_limit is at most 256 MiB."""
    remembered_results_max_bytes: Annotated[
        BytesOrAuto,
        Setting(
            "remembered_results_max_bytes",
            "Results of items scored before, in the process; 0: each is computed again from cached vectors.",
        ),
    ] = 32 * MIB
    """Keys and overhead are counted. Of metrics with an encoder or a grader, and without a judge or a corpus."""
    prediction_ttl_s: Annotated[Count, Setting("prediction_ttl_s", "How long vectors of predictions are kept.")] = (
        7 * 24 * 3600
    )
    """In the second level; references have no time to live."""
    disk: DiskConfig | None = None
    redis: RedisConfig | None = None
    """When set, vectors and prepared answers do not go to disk."""
    max_pending_writes: Count = 65_536
    """Vectors that wait to be written to the second level; further ones are dropped and counted."""

    def __post_init__(self) -> None:
        if not _NAMESPACE.fullmatch(self.namespace):
            raise ValueError("the cache namespace must be 1 to 64 letters, digits, '_', '.' or '-'")
        if self.memory_max_bytes < MIB:
            raise ValueError(
                "memory_max_bytes must be 1 MiB or more, prediction_ttl_s and max_pending_writes 1 or more"
            )
