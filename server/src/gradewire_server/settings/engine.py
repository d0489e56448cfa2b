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
from gradewire_server.settings.surface import (
    GIB,
    GROUP,
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
)

_NAMESPACE = re.compile(r"[A-Za-z0-9_.-]{1,64}")

_DEVICE: Final = re.compile(r"auto|cpu|cuda(:\d{1,3})?")

_QUOTA = Path("/sys/fs/cgroup/cpu.max")

_PORTS: Final = 65_536


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


@dataclass(frozen=True, slots=True, config=GROUP)
class ComputeConfig:
    """The defaults are the fastest measured for many short texts."""

    workers: Annotated[CountOrAuto, Setting("workers", "Encoder runs at a time; 0: one per core.")] = 0
    intra_op_threads: Annotated[Count, Setting("intra_op_threads", "Threads of one encoder run.")] = 1
    lone_run_threads: Annotated[
        CountOrAuto,
        Setting(
            "lone_run_threads",
            "Threads of a run that has all workers to itself; 0: one per core; 1: saves memory.",
        ),
    ] = 0
    """More than one costs memory: a second copy of the weights."""
    pin_workers: bool = True
    """Whether each worker stays on a core of its own, where there are as many workers as cores and one thread a run; a
    short call on two idle workers is half as long then."""
    allow_spinning: Annotated[
        bool,
        Setting("allow_spinning", "Let idle encoder threads spin: quicker to wake, but they keep their cores busy."),
    ] = False
    """Slower on a machine that does other work too."""
    nice: Annotated[
        int,
        Field(ge=0, le=19),
        Setting("encoder_nice", "Nice level of the threads that run encoders, so that calls are taken in first."),
    ] = 4
    """Only against other programs does it cost anything: they go first too. Linux."""
    window_choice: Annotated[
        Literal["fp32", "bf16"],
        Setting(
            "window_choice",
            "Arithmetic in which smile:v1 looks for windows that can be the closest; those are then embedded in fp32.",
        ),
    ] = "fp32"
    """bf16 costs memory: a second copy of the weights; where OpenVINO or the processor's instruction is missing, fp32
    stays, and the log says so."""
    max_batch_tokens: Annotated[Count, Setting("max_batch_tokens", "Padded tokens of one encoder run.")] = 256
    """More gain nothing and make others wait."""
    max_batch_texts: Annotated[Count, Setting("max_batch_texts", "Texts of one encoder run.")] = 128
    max_queue_tokens: Annotated[Count, Setting("max_queue_tokens", "Tokens that may wait for an encoder.")] = 1_000_000
    """A call that finds the queue full fails with UNAVAILABLE; the call that fills it is taken whole."""
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


@dataclass(frozen=True, slots=True, config=GROUP)
class GpuConfig:
    """Models for GPUs (``NAME-fp16-cuda``) need one; those for CPUs stay on the CPU beside one."""

    device: Annotated[
        str,
        AfterValidator(_check_device),
        Setting(
            "device",
            "Where models for GPUs run in this process: auto (the first GPU, if there is one), cpu (nowhere), cuda or "
            "cuda:N (that GPU, or the server does not start).",
        ),
    ] = "auto"
    batch_tokens: Annotated[Count, Setting("gpu_batch_tokens", "Padded tokens of one encoder run on a GPU.")] = 16_384
    memory_limit_bytes: Annotated[
        BytesOrAuto,
        Setting("gpu_memory_limit", "GPU memory that one encoder's activations may take; 0: all there is."),
    ] = 0
    cuda_graphs: Annotated[
        bool, Setting("cuda_graphs", "Record each shape of a run as a CUDA graph, which then starts at once.")
    ] = True

    @property
    def required(self) -> bool:
        """Whether the server shall not start without a GPU."""
        return self.device.startswith("cuda")

    @property
    def index(self) -> int:
        """Number of the GPU, from 0."""
        return int(self.device.partition(":")[2] or 0)


@dataclass(frozen=True, slots=True, config=GROUP)
class TritonConfig:
    """Where Triton is and how it is asked."""

    url: Annotated[str, Setting("triton_url", "HOST:PORT of Triton's gRPC.")] = "127.0.0.1:8001"
    tls: Annotated[bool, Setting("triton_tls", "Speak TLS with Triton.")] = False
    tls_ca: Annotated[
        OptionalPath,
        Setting("triton_tls_ca", "PEM authority that Triton's certificate must come from; unset: the usual ones."),
    ] = None
    tls_cert: Annotated[OptionalPath, Setting("triton_tls_cert", "PEM certificate chain shown to Triton.")] = None
    tls_key: Annotated[OptionalPath, Setting("triton_tls_key", "PEM private key of triton_tls_cert.")] = None
    token: Annotated[Secret, Setting("triton_token", "Bearer token sent to Triton, for a proxy before it.")] = field(
        default="", repr=False
    )
    timeout_s: Annotated[PositiveSeconds, Setting("triton_timeout_s", "Longest wait for one inference in Triton.")] = (
        30.0
    )
    max_in_flight: Annotated[
        CountOrAuto,
        Setting(
            "triton_max_in_flight",
            "Inferences of a model in flight to Triton; 0: one more than its instances.",
        ),
    ] = 0
    max_run_tokens: Annotated[Count, Setting("triton_max_run_tokens", "Tokens of one inference in Triton.")] = 256
    poll_s: Annotated[PositiveSeconds, Setting("triton_poll_s", "Time between checks of what Triton serves.")] = 1.0
    repair: Annotated[
        bool, Setting("triton_repair", "Have Triton load a model that it lacks, and reload one that fails.")
    ] = True

    def __post_init__(self) -> None:
        host, _, port = self.url.rpartition(":")
        usable = port.isascii() and port.isdigit() and 0 < int(port) < _PORTS
        if not host or not usable or "/" in self.url or any(letter.isspace() for letter in self.url):
            raise ValueError("triton_url must be HOST:PORT, of Triton's gRPC (8001 where nothing else is said)")
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("triton_tls_cert and triton_tls_key go together: set both or neither")
        if not self.tls and (self.tls_ca or self.tls_cert):
            raise ValueError("triton_tls_ca, triton_tls_cert and triton_tls_key need triton_tls")


@dataclass(frozen=True, slots=True, config=GROUP)
class EngineConfig:
    """Groups of the encoders, the stores and the judges."""

    model_repository: Annotated[
        Directory, Setting("model_repository", "Directory of built models; empty: where they are built.")
    ]
    default_model: Annotated[
        str, Setting("default_model", "Encoder of requests that name none; empty: the catalog's default.")
    ] = ""
    preload: Annotated[Names, Setting("preload", "Further models to load at start, not at first use.")] = ()
    triton: TritonConfig | None = None
    """Where encoders run; None: in this process."""
    compute: ComputeConfig = field(default_factory=ComputeConfig)
    gpu: GpuConfig = field(default_factory=GpuConfig)
    wordnet_directory: Annotated[
        OptionalDirectory,
        Setting("wordnet_directory", "WordNet's files, for meteor; unset: the usual places."),
    ] = None
    judge: JudgeConfig = field(default_factory=JudgeConfig)
    cache: CacheConfig = field(default_factory=CacheConfig)
