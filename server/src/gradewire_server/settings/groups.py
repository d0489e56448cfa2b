"""Settings of the embedded engine, in groups; every limit has a unit in its name."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from gradewire_server.encoders.batching.workers import usable_cores
from gradewire_server.settings.judge import JudgeConfig

_NAMESPACE = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_PORTS = 65_536
_MIB = 1 << 20
_GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class ComputeConfig:
    """How texts are run through an encoder. The defaults are the fastest measured for many short texts.

    Attributes:
        workers: Runs at the same time, per model; 0 means one per core that the process may use.
        intra_op_threads: Threads inside one run. One is fastest where there are as many workers as cores.
        lone_run_threads: Threads of a run that has all workers to itself, such as one text of one request; 0 means one
            per core, 1 does without. More than one costs memory: a second copy of the weights.
        pin_workers: Whether each worker stays on a core of its own, where there are as many workers as cores and one
            thread a run; a short call on two idle workers is half as long then.
        allow_spinning: Whether idle threads of a run burn their core; slower on a machine that does other work too.
        max_batch_tokens: Padded tokens handed to a worker at once; more gain nothing and make others wait.
        max_batch_texts: Texts of one run.
        max_queue_tokens: Queue of one model. A call that finds it full fails with UNAVAILABLE; the call that fills it
            is taken whole.
    """

    workers: int = 0
    intra_op_threads: int = 1
    lone_run_threads: int = 0
    pin_workers: bool = True
    allow_spinning: bool = False
    max_batch_tokens: int = 256
    max_batch_texts: int = 128
    max_queue_tokens: int = 1_000_000

    def __post_init__(self) -> None:
        if min(self.workers, self.lone_run_threads) < 0 or self.intra_op_threads < 1:
            raise ValueError("workers and lone_run_threads must be 0 or more and intra_op_threads 1 or more")
        if min(self.max_batch_tokens, self.max_batch_texts, self.max_queue_tokens) < 1:
            raise ValueError("max_batch_tokens, max_batch_texts and max_queue_tokens must be 1 or more")

    @property
    def worker_count(self) -> int:
        """Workers with 0 resolved."""
        return self.workers or max(1, usable_cores() // self.intra_op_threads)

    @property
    def lone_thread_count(self) -> int:
        """Threads of a lone run with 0 resolved; never more than all workers together have."""
        together = self.worker_count * self.intra_op_threads
        return min(self.lone_run_threads, together) if self.lone_run_threads else together


@dataclass(frozen=True, slots=True)
class DiskConfig:
    """The second level on this machine; also the durable place of prepared synthetic answers.

    Attributes:
        directory: Belongs to gradewire alone. Processes may share it; threads of control of one process may not.
        max_bytes: Vectors of predictions, all generations together.
        reference_max_bytes: Vectors of references; when full, further ones are kept with the predictions.
        prepared_max_bytes: Synthetic answers; when full, storing fails.
    """

    directory: Path
    max_bytes: int = 2 * _GIB
    reference_max_bytes: int = 2 * _GIB
    prepared_max_bytes: int = _GIB

    def __post_init__(self) -> None:
        if min(self.max_bytes, self.reference_max_bytes, self.prepared_max_bytes) < _MIB:
            raise ValueError("max_bytes, reference_max_bytes and prepared_max_bytes must be 1 MiB or more")


@dataclass(frozen=True, slots=True)
class RedisConfig:
    """The second level that several machines share; takes the place of the disk for vectors and prepared answers.

    Attributes:
        url: ``redis://``, ``rediss://`` (TLS) or ``unix://``; may hold a password and is never shown.
        cluster: Whether the server is a Redis or Valkey cluster.
        timeout_s: Of connecting and of reading one chunk; what takes longer is a miss. Generous, because a busy machine
            delays even a quick answer, and the breaker bounds how often it is waited for.
        write_timeout_s: Of writing one chunk, which no score waits for.
        slow_s: A chunk that takes longer to read counts as a failure for the breaker, though its answers are used.
        failures_to_open: Failures within `failure_window_s` that open the breaker.
        failure_window_s: See `failures_to_open`.
        open_s: Time between an open breaker's probes.
    """

    url: str = field(repr=False)
    cluster: bool = False
    timeout_s: float = 0.2
    write_timeout_s: float = 2.0
    slow_s: float = 0.15
    failures_to_open: int = 5
    failure_window_s: float = 10.0
    open_s: float = 1.0

    def __post_init__(self) -> None:
        if not self.url.startswith(("redis://", "rediss://", "unix://")):
            raise ValueError("the Redis URL must begin with redis://, rediss:// or unix://")
        times_s = (self.timeout_s, self.write_timeout_s, self.slow_s, self.failure_window_s, self.open_s)
        if min(times_s) <= 0 or self.failures_to_open < 1:
            raise ValueError("Redis timeouts and windows must be positive and failures_to_open 1 or more")


@dataclass(frozen=True, slots=True)
class CacheConfig:
    """What is kept, where and for how long.

    Attributes:
        namespace: Tenants with different namespaces share no entry; letters, digits, ``_ . -``, at most 64.
        memory_max_bytes: In-process cache, keys and overhead counted.
        prediction_ttl_s: Time to live of predictions' vectors in the second level; references have none.
        disk: Second level on this machine, or None.
        redis: Second level shared between machines, or None; when set, vectors and prepared answers do not go to disk.
        max_pending_writes: Vectors that wait to be written to the second level; further ones are dropped and counted.
    """

    namespace: str = "default"
    memory_max_bytes: int = 256 * _MIB
    prediction_ttl_s: int = 7 * 24 * 3600
    disk: DiskConfig | None = None
    redis: RedisConfig | None = None
    max_pending_writes: int = 65_536

    def __post_init__(self) -> None:
        if not _NAMESPACE.fullmatch(self.namespace):
            raise ValueError("the cache namespace must be 1 to 64 letters, digits, '_', '.' or '-'")
        if self.memory_max_bytes < _MIB or self.prediction_ttl_s < 1 or self.max_pending_writes < 1:
            raise ValueError(
                "memory_max_bytes must be 1 MiB or more, prediction_ttl_s and max_pending_writes 1 or more"
            )


@dataclass(frozen=True, slots=True)
class TritonConfig:
    """Encoders in an NVIDIA Triton server.

    Attributes:
        url: HOST:PORT of its gRPC.
        tls: Whether to speak TLS.
        tls_ca: PEM authorities that its certificate must come from; None for the system's.
        tls_cert: Our PEM certificate chain, where it asks for one.
        tls_key: Our PEM private key.
        token: Bearer token that every call carries; empty for none.
        timeout_s: Longest wait for one inference.
        max_in_flight: Inferences on their way at a time, per model; 0 means one more than Triton computes at a time.
        max_run_tokens: Tokens of one inference.
        poll_s: Between two looks at what Triton serves.
        repair: Whether to have Triton load a model that it lacks, and load anew one that fails.
    """

    url: str
    tls: bool = False
    tls_ca: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    token: str = field(default="", repr=False)
    timeout_s: float = 30.0
    max_in_flight: int = 0
    max_run_tokens: int = 256
    poll_s: float = 1.0
    repair: bool = True

    def __post_init__(self) -> None:
        host, _, port = self.url.rpartition(":")
        usable = port.isascii() and port.isdigit() and 0 < int(port) < _PORTS
        if not host or not usable or "/" in self.url or any(letter.isspace() for letter in self.url):
            raise ValueError("triton_url must be HOST:PORT, of Triton's gRPC (8001 where nothing else is said)")
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("triton_tls_cert and triton_tls_key go together: set both or neither")
        if not self.tls and (self.tls_ca or self.tls_cert):
            raise ValueError("triton_tls_ca, triton_tls_cert and triton_tls_key need triton_tls")
        if min(self.timeout_s, self.poll_s) <= 0 or self.max_in_flight < 0 or self.max_run_tokens < 1:
            raise ValueError("triton_timeout_s and triton_poll_s must be positive, triton_max_run_tokens 1 or more")


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """Everything an engine needs to know.

    Attributes:
        model_repository: Directory of built models.
        default_model: Name that "" stands for; empty for the catalog's default.
        preload: Models loaded and warmed up at start; others are loaded at their first use.
        compute: How texts are run.
        cache: What is kept.
        triton: Where encoders run; None: in this process.
        wordnet_directory: WordNet's files; None: where they usually are.
        judge: Language models that grade.
    """

    model_repository: Path
    default_model: str = ""
    preload: tuple[str, ...] = ()
    compute: ComputeConfig = field(default_factory=ComputeConfig)
    cache: CacheConfig = field(default_factory=CacheConfig)
    triton: TritonConfig | None = None
    wordnet_directory: Path | None = None
    judge: JudgeConfig = field(default_factory=JudgeConfig)
