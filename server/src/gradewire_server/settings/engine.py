"""Settings of the engine: models, their runs, GPU, Triton, and the caches."""

import os
import re
from dataclasses import field
from pathlib import Path
from typing import Annotated, Final, Literal

import platformdirs
from pydantic import AfterValidator, Field
from pydantic.dataclasses import dataclass

from gradewire_server.settings.judge import JudgeConfig
from gradewire_server.settings.setting import (
    GIB,
    HIDDEN,
    MIB,
    Bytes,
    BytesOrAuto,
    Count,
    CountOrAuto,
    Directory,
    Names,
    OptionalDirectory,
    OptionalPath,
    PositiveSeconds,
    Secret,
    Setting,
    group,
)

_NAMESPACE = re.compile(r"[A-Za-z0-9_.-]{1,64}")

_DEVICE: Final = re.compile(r"auto|cpu|cuda(:\d{1,3})?")

_QUOTA = Path("/sys/fs/cgroup/cpu.max")

_PORTS: Final = 65_536


def _user_cache() -> Path:
    return platformdirs.user_cache_path("gradewire")


@dataclass(frozen=True, slots=True, config=group("Caches"))
class DiskConfig:
    """The second level on this machine; also the durable place of prepared synthetic answers."""

    directory: Annotated[Directory, Setting("disk_directory", default=_user_cache)]
    """Keep vectors of this process's engine in this directory. Empty: nowhere.

    Move it to a fast local disk. It belongs to gradewire alone; processes may share it."""
    max_bytes: Annotated[Bytes, Setting("disk_max_bytes")] = 2 * GIB
    """Bound the store of predictions. References get as much, prepared answers half.

    Raise it if /metrics shows misses of texts that were scored before; lower it on a small disk."""
    reference_max_bytes: BytesOrAuto = 0
    """Size of the store of references' vectors; 0: as `max_bytes`.

    When it is full, further ones are kept with the predictions."""
    prepared_max_bytes: BytesOrAuto = 0
    """Size of the store of prepared synthetic answers; 0: half of `max_bytes`.

    When it is full, storing fails."""

    def __post_init__(self) -> None:
        if self.max_bytes < MIB:
            raise ValueError("disk_max_bytes must be 1 MiB or more")


@dataclass(frozen=True, slots=True, config=group("Caches"))
class RedisConfig:
    """The second level that several machines share; takes the place of the disk for vectors and prepared answers."""

    url: Annotated[str, HIDDEN, Setting("redis_url", everyday=True)] = field(repr=False)
    """Keep vectors in this Redis server, shared by machines, not on the disk.

    Set it for several replicas: redis://, rediss:// or unix://."""
    cluster: Annotated[bool, Setting("redis_cluster")] = False
    """Treat the Redis server as a cluster.

    Set it if redis_url names a node of a cluster."""
    mac_key: Annotated[Secret, Setting("redis_mac_key")] = field(default="", repr=False)
    """Authenticate values in Redis with this secret (16 bytes or more).

    Set the same one in all servers if others can write to Redis: they could change scores."""
    mac_key_file: Annotated[OptionalDirectory, Setting("redis_mac_key_file")] = None
    """Read the secret of redis_mac_key from this file.

    Use it if secrets are mounted as files."""
    timeout_s: Annotated[PositiveSeconds, Setting("redis_timeout_s")] = 0.2
    """Count an answer of Redis as a miss after this time.

    Raise it for a distant Redis, lower it if scoring must not wait."""
    write_timeout_s: PositiveSeconds = 2.0
    """Longest wait for one chunk to be written, which no score waits for."""
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


@dataclass(frozen=True, slots=True, config=group("Caches"))
class CacheConfig:
    """The in-process cache, and the second level behind it."""

    namespace: Annotated[str, Setting("namespace")] = "default"
    """Share no cache entry with other namespaces.

    Set it to start from an empty cache, or to keep two services on one store apart. Letters, digits, ``_ . -``, at
    most 64."""
    memory_max_bytes: Annotated[BytesOrAuto, Setting("memory_max_bytes", default=int)] = 256 * MIB
    """Bound the cache of vectors in this process. 0: a share of memory_limit.

    Raise it if texts repeat more often than it can hold. The share is at most 256 MiB."""
    remembered_results_max_bytes: Annotated[BytesOrAuto, Setting("remembered_results_max_bytes")] = 32 * MIB
    """Bound the store of results of items scored before. 0: none.

    Set 0 to measure the cost of scoring. Results with a judge or a corpus are not kept here."""
    prediction_ttl_s: Annotated[Count, Setting("prediction_ttl_s")] = 7 * 24 * 3600
    """Keep vectors of predictions for this time in the second level.

    Lower it if storage is short. References do not expire."""
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


def _check_device(device: str) -> str:
    if _DEVICE.fullmatch(device) is None:
        raise ValueError("device is auto, cpu, cuda or cuda:N, N being the number of a GPU from 0")
    return device


def allowed_cores() -> list[int]:
    """Cores that this process may run on; a system that does not say gives as many as there are."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def usable_cores(quota: Path = _QUOTA) -> int:
    """Cores' worth of time that this process may use: a container's quota may be less than the cores it sees."""
    cores = len(allowed_cores())
    try:
        limit, period = quota.read_text().split()
        return max(1, min(cores, -(-int(limit) // int(period))))
    except (OSError, ValueError):  # no such file, or "max"
        return cores


@dataclass(frozen=True, slots=True, config=group("Encoders"))
class ComputeConfig:
    """The defaults are the fastest measured for many short texts."""

    workers: Annotated[CountOrAuto, Setting("workers")] = 0
    """Run this many encoder runs at a time. 0: one per core.

    Lower it if other programs need the cores."""
    lone_run_threads: Annotated[CountOrAuto, Setting("lone_run_threads")] = 0
    """Use this many threads for a run without others. 0: all workers' cores.

    Set 1 to save memory: more needs a second copy of the weights."""
    pin_workers: bool = True
    """True keeps each worker on a core of its own, where there are as many workers as cores and one thread a run; a
    short call on two idle workers is half as long then."""
    window_choice: Annotated[Literal["fp32", "bf16"], Setting("window_choice")] = "fp32"
    """Look for windows of smile:v1 in this arithmetic.

    Use bf16 on a processor that has it: faster, with a second copy of the weights. The best windows are still
    scored in fp32."""
    max_batch_tokens: Count = 256
    """Padded tokens of one encoder run. More gain nothing and make others wait."""
    max_batch_texts: Count = 128
    max_queue_tokens: Count = 1_000_000
    """Tokens that may wait for an encoder.

    A call that finds the queue full fails with UNAVAILABLE; the call that fills it is taken whole."""
    run_overhead_tokens: Count = 8
    """Cost of one run beside its tokens, in tokens: MiniLM's 2 ms to stream its weights, at 0.26 ms a token."""
    padding_cost: Annotated[float, Field(ge=0, le=1)] = 1.0
    """Cost of a token of padding, in tokens. Graphs that `models build` makes for CPUs have it in attention only."""

    @property
    def worker_count(self) -> int:
        """Workers with 0 resolved."""
        return self.workers or usable_cores()

    @property
    def lone_thread_count(self) -> int:
        """Threads of a lone run with 0 resolved; never more than all workers together have."""
        return min(self.lone_run_threads or self.worker_count, self.worker_count)


@dataclass(frozen=True, slots=True, config=group("GPU"))
class GpuConfig:
    """Models for GPUs (``NAME-fp16-cuda``) need one; those for CPUs stay on the CPU beside one."""

    device: Annotated[str, AfterValidator(_check_device), Setting("device", everyday=True)] = "auto"
    """Run models for GPUs on auto, cpu, cuda or cuda:N.

    auto takes the first GPU if there is one. With cuda the server does not start without it."""
    batch_tokens: Count = 16_384
    """Padded tokens of one encoder run on a GPU."""
    memory_limit_bytes: Annotated[BytesOrAuto, Setting("gpu_memory_limit")] = 0
    """Bound the GPU memory of one encoder's activations. 0: no bound.

    Set it if another program shares the GPU."""
    cuda_graphs: bool = True
    """Record each shape of a run as a CUDA graph, which then starts at once."""

    @property
    def required(self) -> bool:
        """True if the server shall not start without a GPU."""
        return self.device.startswith("cuda")

    @property
    def index(self) -> int:
        """Number of the GPU, from 0."""
        return int(self.device.partition(":")[2] or 0)


@dataclass(frozen=True, slots=True, config=group("Triton"))
class TritonConfig:
    """Triton's address and the manner of asking it."""

    url: Annotated[str, Setting("triton_url")] = "127.0.0.1:8001"
    """HOST:PORT of Triton's gRPC.

    Set it if Triton runs on another machine."""
    tls: Annotated[bool, Setting("triton_tls")] = False
    """Use TLS to Triton.

    Set it if Triton is reached over a network."""
    tls_ca: Annotated[OptionalPath, Setting("triton_tls_ca")] = None
    """Trust this authority for Triton's certificate (PEM).

    Set it for an authority of your own."""
    tls_cert: Annotated[OptionalPath, Setting("triton_tls_cert")] = None
    """Show this certificate to Triton (PEM chain).

    Set it if Triton asks for one."""
    tls_key: Annotated[OptionalPath, Setting("triton_tls_key")] = None
    """Private key of triton_tls_cert (PEM).

    Set it with triton_tls_cert."""
    token: Annotated[Secret, Setting("triton_token")] = field(default="", repr=False)
    """Send this bearer token to Triton.

    Set it for a proxy in front of Triton."""
    timeout_s: PositiveSeconds = 30.0
    """Longest wait for one inference in Triton."""
    max_in_flight: Annotated[CountOrAuto, Setting("triton_max_in_flight")] = 0
    """Send a model in Triton this many inferences at a time. 0: one more than its instances.

    Raise it if Triton is far away and its instances wait."""
    max_run_tokens: Annotated[Count, Setting("triton_max_run_tokens")] = 256
    """Put this many tokens into one inference in Triton.

    256 is best on CPUs; raise it to thousands for a GPU."""
    poll_s: PositiveSeconds = 1.0
    """Time between checks of what Triton serves."""
    repair: Annotated[bool, Setting("triton_repair")] = True
    """Have Triton load a model that it lacks, and reload one that fails.

    Turn it off if others decide on Triton's models."""

    def __post_init__(self) -> None:
        host, _, port = self.url.rpartition(":")
        usable = port.isascii() and port.isdigit() and 0 < int(port) < _PORTS
        if not host or not usable or "/" in self.url or any(letter.isspace() for letter in self.url):
            raise ValueError("triton_url must be HOST:PORT, of Triton's gRPC (8001 where nothing else is said)")
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("triton_tls_cert and triton_tls_key go together: set both or neither")
        if not self.tls and (self.tls_ca or self.tls_cert):
            raise ValueError("triton_tls_ca, triton_tls_cert and triton_tls_key need triton_tls")


@dataclass(frozen=True, slots=True, config=group("Encoders"))
class EngineConfig:
    """Groups of the encoders, the stores and the judges."""

    model_repository: Annotated[Directory, Setting("model_repository")]
    """Use the built models in this directory.

    Empty: the place where gradewire models build puts them. Set it for a mounted directory."""
    default_model: Annotated[str, Setting("default_model", everyday=True)] = ""
    """Use this encoder for requests that name none.

    Empty: the catalog's default. Set it to change the encoder for all callers."""
    preload: Annotated[Names, Setting("preload")] = ()
    """Load these models at start too.

    Set it if the first request with another model must not wait."""
    triton: TritonConfig | None = None
    """Triton that runs encoders; None: they run in this process."""
    compute: ComputeConfig = field(default_factory=ComputeConfig)
    gpu: GpuConfig = field(default_factory=GpuConfig)
    wordnet_directory: Annotated[OptionalDirectory, Setting("wordnet_directory")] = None
    """Find WordNet's files for meteor in this directory.

    Unset: $WNSEARCHDIR, $WNHOME/dict, then the usual places."""
    judge: JudgeConfig = field(default_factory=JudgeConfig)
    cache: CacheConfig = field(default_factory=CacheConfig)
