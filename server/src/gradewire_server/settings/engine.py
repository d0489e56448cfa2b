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
    """Directory of the store on this machine; unset: the user's cache directory; empty: none.

    Belongs to gradewire alone. Processes may share it; two opened stores of one process may not."""
    max_bytes: Annotated[Bytes, Setting("disk_max_bytes")] = 2 * GIB
    """Store of predictions' vectors.

    All generations together."""
    reference_max_bytes: Annotated[Bytes, Setting("reference_max_bytes")] = 2 * GIB
    """Store of references' vectors.

    When it is full, further ones are kept with the predictions."""
    prepared_max_bytes: Annotated[Bytes, Setting("prepared_max_bytes")] = GIB
    """Store of prepared synthetic answers.

    When it is full, storing fails."""

    def __post_init__(self) -> None:
        if min(self.max_bytes, self.reference_max_bytes, self.prepared_max_bytes) < MIB:
            raise ValueError("max_bytes, reference_max_bytes and prepared_max_bytes must be 1 MiB or more")


@dataclass(frozen=True, slots=True, config=group("Caches"))
class RedisConfig:
    """The second level that several machines share; takes the place of the disk for vectors and prepared answers."""

    url: Annotated[str, HIDDEN, Setting("redis_url", everyday=True)] = field(repr=False)
    """redis://, rediss:// or unix:// store shared by machines."""
    cluster: Annotated[bool, Setting("redis_cluster")] = False
    """The Redis server is a cluster."""
    mac_key: Annotated[Secret, Setting("redis_mac_key")] = field(default="", repr=False)
    """Secret that values in Redis are authenticated with (16 bytes or more), the same for all servers.

    Without it, anybody who can write to Redis can change scores."""
    mac_key_file: Annotated[OptionalDirectory, Setting("redis_mac_key_file")] = None
    """File with that secret, in place of redis_mac_key."""
    timeout_s: Annotated[PositiveSeconds, Setting("redis_timeout_s")] = 0.2
    """Longest wait for one Redis answer.

    Of connecting and of reading one chunk; what takes longer is a miss. Generous, because a busy machine delays even a
    quick answer, and the breaker bounds how often it is waited for."""
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
    """Tenants with different namespaces share no cache entry.

    Letters, digits, ``_ . -``, at most 64."""
    memory_max_bytes: Annotated[BytesOrAuto, Setting("memory_max_bytes", default=int)] = 256 * MIB
    """In-process cache of vectors; 0: a share of memory_limit.

    Keys and overhead are counted. Its share of memory_limit is at most 256 MiB."""
    remembered_results_max_bytes: Annotated[BytesOrAuto, Setting("remembered_results_max_bytes")] = 32 * MIB
    """Results of items scored before, in the process; 0: each is computed again from cached vectors.

    Keys and overhead are counted. Of metrics with an encoder or a grader, and without a judge or a corpus."""
    prediction_ttl_s: Annotated[Count, Setting("prediction_ttl_s")] = 7 * 24 * 3600
    """How long vectors of predictions are kept.

    In the second level; references have no time to live."""
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
    """Encoder runs at a time; 0: one per core."""
    intra_op_threads: Annotated[Count, Setting("intra_op_threads")] = 1
    """Threads of one encoder run."""
    lone_run_threads: Annotated[CountOrAuto, Setting("lone_run_threads")] = 0
    """Threads of a run that has all workers to itself; 0: one per core; 1: saves memory.

    More than one costs memory: a second copy of the weights."""
    pin_workers: bool = True
    """True keeps each worker on a core of its own, where there are as many workers as cores and one thread a run; a
    short call on two idle workers is half as long then."""
    allow_spinning: Annotated[bool, Setting("allow_spinning")] = False
    """Let idle encoder threads spin: quicker to wake, but they keep their cores busy.

    Slower on a machine that does other work too."""
    nice: Annotated[int, Field(ge=0, le=19), Setting("encoder_nice")] = 4
    """Nice level of the threads that run encoders, so that calls are taken in first.

    Only against other programs does it cost anything: they go first too. Linux."""
    window_choice: Annotated[Literal["fp32", "bf16"], Setting("window_choice")] = "fp32"
    """Arithmetic in which smile:v1 looks for windows that can be the closest; those are then embedded in fp32.

    bf16 costs memory: a second copy of the weights; where OpenVINO or the processor's instruction is missing, fp32
    stays, and the log says so."""
    max_batch_tokens: Annotated[Count, Setting("max_batch_tokens")] = 256
    """Padded tokens of one encoder run.

    More gain nothing and make others wait."""
    max_batch_texts: Annotated[Count, Setting("max_batch_texts")] = 128
    """Texts of one encoder run."""
    max_queue_tokens: Annotated[Count, Setting("max_queue_tokens")] = 1_000_000
    """Tokens that may wait for an encoder.

    A call that finds the queue full fails with UNAVAILABLE; the call that fills it is taken whole."""
    run_overhead_tokens: Count = 8
    """Cost of one run beside its tokens, in tokens: MiniLM's 2 ms to stream its weights, at 0.26 ms a token."""
    padding_cost: Annotated[float, Field(ge=0, le=1)] = 1.0
    """Cost of a token of padding, in tokens. Graphs that `models build` makes for CPUs have it in attention only."""

    @property
    def worker_count(self) -> int:
        """Workers with 0 resolved."""
        return self.workers or max(1, usable_cores() // self.intra_op_threads)

    @property
    def lone_thread_count(self) -> int:
        """Threads of a lone run with 0 resolved; never more than all workers together have."""
        together = self.worker_count * self.intra_op_threads
        return min(self.lone_run_threads, together) if self.lone_run_threads else together


@dataclass(frozen=True, slots=True, config=group("GPU"))
class GpuConfig:
    """Models for GPUs (``NAME-fp16-cuda``) need one; those for CPUs stay on the CPU beside one."""

    device: Annotated[str, AfterValidator(_check_device), Setting("device", everyday=True)] = "auto"
    """Where models for GPUs run in this process: auto (the first GPU, if there is one), cpu (nowhere), cuda or
    cuda:N (that GPU, or the server does not start)."""
    batch_tokens: Annotated[Count, Setting("gpu_batch_tokens")] = 16_384
    """Padded tokens of one encoder run on a GPU."""
    memory_limit_bytes: Annotated[BytesOrAuto, Setting("gpu_memory_limit")] = 0
    """GPU memory that one encoder's activations may take; 0: all there is."""
    cuda_graphs: Annotated[bool, Setting("cuda_graphs")] = True
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
    """HOST:PORT of Triton's gRPC."""
    tls: Annotated[bool, Setting("triton_tls")] = False
    """Speak TLS with Triton."""
    tls_ca: Annotated[OptionalPath, Setting("triton_tls_ca")] = None
    """PEM authority that Triton's certificate must come from; unset: the usual ones."""
    tls_cert: Annotated[OptionalPath, Setting("triton_tls_cert")] = None
    """PEM certificate chain shown to Triton."""
    tls_key: Annotated[OptionalPath, Setting("triton_tls_key")] = None
    """PEM private key of triton_tls_cert."""
    token: Annotated[Secret, Setting("triton_token")] = field(default="", repr=False)
    """Bearer token sent to Triton, for a proxy before it."""
    timeout_s: Annotated[PositiveSeconds, Setting("triton_timeout_s")] = 30.0
    """Longest wait for one inference in Triton."""
    max_in_flight: Annotated[CountOrAuto, Setting("triton_max_in_flight")] = 0
    """Inferences of a model in flight to Triton; 0: one more than its instances."""
    max_run_tokens: Annotated[Count, Setting("triton_max_run_tokens")] = 256
    """Tokens of one inference in Triton."""
    poll_s: Annotated[PositiveSeconds, Setting("triton_poll_s")] = 1.0
    """Time between checks of what Triton serves."""
    repair: Annotated[bool, Setting("triton_repair")] = True
    """Have Triton load a model that it lacks, and reload one that fails."""

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
    """Directory of built models; empty: where they are built."""
    default_model: Annotated[str, Setting("default_model", everyday=True)] = ""
    """Encoder of requests that name none; empty: the catalog's default."""
    preload: Annotated[Names, Setting("preload")] = ()
    """Further models to load at start, not at first use."""
    triton: TritonConfig | None = None
    """Triton that runs encoders; None: they run in this process."""
    compute: ComputeConfig = field(default_factory=ComputeConfig)
    gpu: GpuConfig = field(default_factory=GpuConfig)
    wordnet_directory: Annotated[OptionalDirectory, Setting("wordnet_directory")] = None
    """WordNet's files, for meteor; unset: the usual places."""
    judge: JudgeConfig = field(default_factory=JudgeConfig)
    cache: CacheConfig = field(default_factory=CacheConfig)
