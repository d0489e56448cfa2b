"""Engine settings: models, encoder runs, GPU, Triton and caches."""

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

_GRPCS: Final = "grpcs://"
_PORTS: Final = 65_536
_MIN_MAC_KEY_BYTES: Final = 16


def _user_cache() -> Path:
    return platformdirs.user_cache_path("gradewire")


@dataclass(frozen=True, slots=True, config=group("Caches"))
class DiskConfig:
    """The second cache level on this machine's disk. It also stores prepared synthetic answers."""

    directory: Annotated[Directory, Setting("disk_directory", default=_user_cache)]
    """Keep vectors in this directory. If empty, keep none on disk.

    Set it to use a fast local disk. Only gradewire may write to the directory; its processes may share it."""
    max_bytes: Annotated[Bytes, Setting("disk_max_bytes")] = 2 * GIB
    """Limit the prediction store to this size. The reference store gets the same size, and prepared answers get half.

    Raise it if /metrics shows misses for texts that were scored before; lower it on a small disk."""
    reference_max_bytes: BytesOrAuto = 0
    """Maximum size of the reference vectors' store. 0 means `max_bytes`.

    When the store is full, new reference vectors go to the prediction store."""
    prepared_max_bytes: BytesOrAuto = 0
    """Maximum size of the store for prepared synthetic answers. 0 means half of `max_bytes`.

    When the store is full, storing an answer fails."""

    def __post_init__(self) -> None:
        if self.max_bytes < MIB:
            raise ValueError("disk_max_bytes must be 1 MiB or more")


@dataclass(frozen=True, slots=True, config=group("Caches"))
class RedisConfig:
    """A second cache level that several machines share. It replaces the disk for vectors and prepared answers."""

    url: Annotated[str, HIDDEN, Setting("redis_url", everyday=True)] = field(repr=False)
    """Keep vectors in this Redis server instead of on disk. The URL starts with redis://, rediss:// or unix://.

    Set it if several replicas should share a cache."""
    cluster: Annotated[bool, Setting("redis_cluster")] = False
    """Use the Redis Cluster protocol.

    Set it if redis_url is the address of a cluster node."""
    mac_key: Annotated[Secret, Setting("redis_mac_key")] = field(default="", repr=False)
    """Authenticate values in Redis with this secret (16 bytes or more).

    Set the same secret on all servers if anyone else can write to Redis and so could change scores."""
    timeout_s: Annotated[PositiveSeconds, Setting("redis_timeout_s")] = 0.2
    """Treat a lookup as a miss if Redis does not answer within this time.

    Raise it for a distant Redis, lower it if scoring must not wait."""
    write_timeout_s: PositiveSeconds = 2.0
    """Timeout for writing one chunk. No score waits for a write."""
    slow_s: PositiveSeconds = 0.15
    """Maximum time to read a chunk. A slower read's values are used, but the circuit breaker counts a failure."""
    failures_to_open: Count = 5
    """Number of failures within `failure_window_s` that open the circuit breaker."""
    failure_window_s: PositiveSeconds = 10.0
    open_s: PositiveSeconds = 1.0
    """Time between probes while the circuit breaker is open."""

    def __post_init__(self) -> None:
        if not self.url.startswith(("redis://", "rediss://", "unix://")):
            raise ValueError("the Redis URL must begin with redis://, rediss:// or unix://")
        if self.mac_key and (size := len(self.mac_key.strip().encode())) < _MIN_MAC_KEY_BYTES:
            raise ValueError(
                f"redis_mac_key must have {_MIN_MAC_KEY_BYTES} or more bytes, not {size}. Run: openssl rand -hex 32"
            )


@dataclass(frozen=True, slots=True, config=group("Caches"))
class CacheConfig:
    """The in-process cache and the second cache level behind it."""

    namespace: Annotated[str, Setting("namespace")] = "default"
    """Use only cache entries with this namespace. A namespace has 1 to 64 letters, digits, _, . or -.

    Set it to start from an empty cache, or to separate two services that share a store."""
    memory_max_bytes: Annotated[BytesOrAuto, Setting("memory_max_bytes", default=int)] = 256 * MIB
    """Limit the in-memory vector cache to this size. 0 means a share of memory_limit, at most 256 MiB.

    Raise it if your callers repeat more texts than fit."""
    remembered_results_max_bytes: Annotated[BytesOrAuto, Setting("remembered_results_max_bytes")] = 32 * MIB
    """Limit the memory for results that the server reuses for repeated items. 0 means that it reuses none.

    Set 0 to measure the cost of scoring. Results that need a judge or a corpus are not kept."""
    shared_max_bytes: Annotated[BytesOrAuto, Setting("shared_max_bytes")] = 0
    """Limit the memory that server processes share for vectors and results. 0 means a share of
    memory_limit, at most 256 MiB.

    Raise it if your callers repeat more texts than fit. A single process shares nothing."""
    prediction_ttl_s: Annotated[Count, Setting("prediction_ttl_s")] = 7 * 24 * 3600
    """Keep prediction vectors on disk or in Redis for this many seconds.

    Lower it if storage is short. Reference vectors do not expire."""
    disk: DiskConfig | None = None
    redis: RedisConfig | None = None
    """If set, vectors and prepared answers go to Redis, not to disk."""
    max_pending_writes: Count = 65_536
    """Maximum number of vectors waiting to be written to the second level. Further vectors are dropped and counted."""

    def __post_init__(self) -> None:
        if not _NAMESPACE.fullmatch(self.namespace):
            raise ValueError("the cache namespace must be 1 to 64 letters, digits, '_', '.' or '-'")
        if self.memory_max_bytes < MIB:
            raise ValueError("memory_max_bytes must be 1 MiB or more")


def _check_device(device: str) -> str:
    if _DEVICE.fullmatch(device) is None:
        raise ValueError("device must be auto, cpu, cuda or cuda:N, where N is a GPU's index from 0")
    return device


def allowed_cores() -> list[int]:
    """Return the cores that this process may run on, or all cores if the system does not restrict them."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def usable_cores(quota: Path = _QUOTA) -> int:
    """Return the number of cores that this process may use, at most its container's CPU quota (rounded up)."""
    cores = len(allowed_cores())
    try:
        limit, period = quota.read_text().split()
        return max(1, min(cores, -(-int(limit) // int(period))))
    except (OSError, ValueError):  # no such file, or "max"
        return cores


@dataclass(frozen=True, slots=True, config=group("Encoders"))
class ComputeConfig:
    """Settings for encoder runs. The defaults were the fastest measured for many short texts."""

    workers: Annotated[CountOrAuto, Setting("workers")] = 0
    """Number of parallel encoder runs. 0 means one per core.

    Lower it if other programs need the cores."""
    lone_run_threads: Annotated[CountOrAuto, Setting("lone_run_threads")] = 0
    """Number of threads for an encoder run when no other run is active. 0 means one per worker.

    Set 1 to save memory, since a higher value needs a second copy of the weights."""
    pin_workers: bool = True
    """True pins each worker to its own core if there are as many workers as cores and each run has one thread. A
    short call on two idle workers then takes half the time."""
    window_choice: Annotated[Literal["auto", "fp32", "bf16"], Setting("window_choice")] = "auto"
    """Find smile:v1's best windows in this number format. auto means 8-bit integers where they are faster, else fp32.

    Scores do not depend on it: they are always computed in fp32. auto needs disk_directory, 40 MB of memory, a
    memory_limit of 1.5 GiB or more, and a processor with VNNI. Use fp32 to save the memory."""
    max_batch_tokens: Count = 256
    """Maximum number of padded tokens in one encoder run. Larger runs are no faster, and other calls wait longer."""
    max_batch_texts: Count = 128
    max_queue_tokens: Count = 1_000_000
    """Maximum number of tokens that wait for an encoder.

    The queue accepts the whole call that fills it. While it is full, new calls fail with UNAVAILABLE."""
    run_overhead_tokens: Count = 8
    """Fixed cost of one run, in tokens. MiniLM needs 2 ms to load its weights and 0.26 ms for each token."""
    padding_cost: Annotated[float, Field(ge=0, le=1)] = 1.0
    """Cost of one padding token, in tokens. CPU graphs from `models build` compute padding only in attention."""

    @property
    def worker_count(self) -> int:
        """Number of workers: the setting, or one per core if the setting is 0."""
        return self.workers or usable_cores()

    @property
    def lone_thread_count(self) -> int:
        """Number of threads, at most `worker_count`, for a run when no other run is active."""
        return min(self.lone_run_threads or self.worker_count, self.worker_count)


@dataclass(frozen=True, slots=True, config=group("GPU"))
class GpuConfig:
    """Settings for GPU models (``NAME-fp16-cuda``). CPU models run on the CPU even if there is a GPU."""

    device: Annotated[str, AfterValidator(_check_device), Setting("device")] = "auto"
    """Device for models that were built for a GPU: auto, cpu, cuda or cuda:N.

    auto uses the first GPU if there is one. With cuda or cuda:N the server does not start without that GPU.
    With cuda, several processes use all GPUs in turn."""
    batch_tokens: Annotated[CountOrAuto, Setting("gpu_batch_tokens")] = 0
    """Limit an encoder run on a GPU to this many padded tokens. 0 means the smallest run with nearly the
    highest speed, measured at start, up to 16,384 tokens.

    Lower it if single answers wait too long beside bulk calls."""
    memory_limit_bytes: Annotated[BytesOrAuto, Setting("gpu_memory_limit")] = 0
    """Limit the GPU memory for one encoder's activations. 0 means no limit.

    Set it if another program shares the GPU."""
    cuda_graphs: bool = True
    """Record each input shape as a CUDA graph. A recorded run starts without delay."""

    @property
    def required(self) -> bool:
        """True if the server must not start without a GPU."""
        return self.device.startswith("cuda")

    @property
    def index(self) -> int:
        """The GPU's index, from 0."""
        return int(self.device.partition(":")[2] or 0)


def is_triton_address(url: str) -> bool:
    """Return True for HOST:PORT or grpcs://HOST:PORT."""
    host, _, port = url.removeprefix(_GRPCS).rpartition(":")
    usable = port.isascii() and port.isdigit() and 0 < int(port) < _PORTS
    return bool(host) and usable and "/" not in host and not any(letter.isspace() for letter in host)


@dataclass(frozen=True, slots=True, config=group("Triton"))
class TritonConfig:
    """Triton's address and the settings for requests to Triton."""

    url: Annotated[str, Setting("triton_url")] = "127.0.0.1:8001"
    """Address of Triton's gRPC port (HOST:PORT, or grpcs://HOST:PORT for TLS).

    Set it if Triton runs on another machine. Use TLS if the connection crosses a network."""
    tls_ca: Annotated[OptionalPath, Setting("triton_tls_ca")] = None
    """Verify Triton's certificate with this CA certificate (PEM).

    Set it if a private CA signed Triton's certificate."""
    tls_cert: Annotated[OptionalPath, Setting("triton_tls_cert")] = None
    """Present this client certificate to Triton (PEM chain).

    Set it if Triton requires a client certificate."""
    tls_key: Annotated[OptionalPath, Setting("triton_tls_key")] = None
    """Private key for triton_tls_cert (PEM).

    Set it together with triton_tls_cert."""
    token: Annotated[Secret, Setting("triton_token")] = field(default="", repr=False)
    """Send this bearer token to Triton.

    Set it if a proxy in front of Triton requires a token."""
    timeout_s: PositiveSeconds = 30.0
    """Timeout for one inference in Triton."""
    max_in_flight: Annotated[CountOrAuto, Setting("triton_max_in_flight")] = 0
    """Maximum number of parallel requests to one Triton model. 0 means its number of instances plus one.

    Raise it if Triton's instances are idle because the network is slow."""
    max_run_tokens: Annotated[Count, Setting("triton_max_run_tokens")] = 256
    """Maximum number of tokens in one inference in Triton.

    256 is best on CPUs. Raise it to thousands for a GPU."""
    poll_s: PositiveSeconds = 1.0
    """Time between checks for models that Triton serves."""
    repair: Annotated[bool, Setting("triton_repair")] = True
    """Make Triton load missing models and reload failing ones.

    Turn it off if another program manages Triton's models."""

    @property
    def tls(self) -> bool:
        """True if connections to Triton use TLS."""
        return self.url.startswith(_GRPCS)

    @property
    def address(self) -> str:
        """HOST:PORT of Triton's gRPC port."""
        return self.url.removeprefix(_GRPCS)

    def __post_init__(self) -> None:
        if not is_triton_address(self.url):
            raise ValueError(
                "triton_url must be HOST:PORT of Triton's gRPC port (8001 by default), or grpcs://HOST:PORT"
            )
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("set both triton_tls_cert and triton_tls_key, or neither")
        if not self.tls and (self.tls_ca or self.tls_cert):
            raise ValueError("triton_tls_ca, triton_tls_cert and triton_tls_key need triton_url to begin with grpcs://")


@dataclass(frozen=True, slots=True, config=group("Encoders"))
class EngineConfig:
    """Settings for encoders, stores and judges."""

    model_repository: Annotated[Directory, Setting("model_repository")]
    """Use this directory of built models. If neither it nor $GRADEWIRE_MODEL_REPOSITORY is set, use the checkout's
    model_repo/models, or a folder in the user's data directory.

    Set it for a mounted directory."""
    default_model: Annotated[str, Setting("default_model")] = ""
    """Use this encoder for requests that name none. If empty, use the catalog's default.

    Set it to change the encoder for all callers."""
    preload: Annotated[Names, Setting("preload")] = ()
    """Also load these encoders at start; "judge" loads the judge.

    Set it if the first request for one of them must not wait. The default encoder and its grader are always loaded."""
    triton: TritonConfig | None = None
    """The Triton server that runs encoders. None means that they run in this process."""
    compute: ComputeConfig = field(default_factory=ComputeConfig)
    gpu: GpuConfig = field(default_factory=GpuConfig)
    wordnet_directory: Annotated[OptionalDirectory, Setting("wordnet_directory")] = None
    """Read WordNet's files, which meteor needs, from this directory.

    Set it if the files are not in $WNSEARCHDIR, $WNHOME/dict or a standard directory."""
    judge: JudgeConfig = field(default_factory=JudgeConfig)
    cache: CacheConfig = field(default_factory=CacheConfig)
