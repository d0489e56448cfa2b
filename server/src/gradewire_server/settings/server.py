"""Every setting of the server, in groups, with the number of processes and the share of each."""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import field
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic.dataclasses import dataclass

from gradewire_models.judges import default_judge_repository
from gradewire_models.repository.built import default_repository
from gradewire_proto.tracing.settings import endpoint_problem
from gradewire_server.settings.engine import (
    CacheConfig,
    ComputeConfig,
    DiskConfig,
    EngineConfig,
    GpuConfig,
    RedisConfig,
    TritonConfig,
    usable_cores,
)
from gradewire_server.settings.judge import EmbeddedJudgeConfig, ImageConfig, JudgeConfig, RemoteJudgeConfig
from gradewire_server.settings.limits import (
    Capacity,
    Connections,
    Deadlines,
    Limits,
    MemoryConfig,
    usable_memory,
    with_shares,
)
from gradewire_server.settings.surface import (
    ENV_PREFIX,
    GIB,
    GROUP,
    MIB,
    CountOrAuto,
    OptionalDirectory,
    OptionalPath,
    Setting,
    SettingInfo,
    SettingsError,
    Values,
    all_setting_fields,
    printable,
    read_values,
    setting_info,
)
from gradewire_server.settings.transport import (
    HttpApiConfig,
    ListenConfig,
    LogConfig,
    RewardsConfig,
    ShutdownConfig,
    Tls,
    TracingConfig,
)

_CORES_PER_PROCESS: Final = 2
"""One for the event loop of a process, which is Python under one lock, and one for the encoder's runs."""
_MEMORY_PER_PROCESS_BYTES: Final = GIB
_MOST_BY_DEFAULT: Final = 8
_LEAST_BYTES: Final = 16 * MIB
_SUPERVISOR_BYTES: Final = 64 * MIB
_JUDGE_HOST_BYTES: Final = 96 * MIB
"""Of the process that runs the judges, without their workers: those are no part of memory_limit, nor is that of a
server alone."""
_DIVIDED_BYTES: Final = (
    "memory_max_bytes",
    "remembered_results_max_bytes",
    "max_bytes_in_flight",
    "max_stream_bytes",
    "gpu_memory_limit",
)
_DIVIDED_COUNTS: Final = ("max_items_in_flight", "max_streams", "max_connections")


@dataclass(frozen=True, slots=True, config=GROUP)
class ProcessesConfig:
    """How many processes share the port of gRPC."""

    count: Annotated[
        CountOrAuto,
        Setting(
            "processes",
            "Server processes that share the port of gRPC; 0: one for every two cores and GiB of memory_limit, 8 at "
            "most, and one where device is a GPU.",
        ),
    ] = 0
    """With one the server runs in the process that was started, without a supervisor."""


def process_count(given: Mapping[str, Any], *, cores: int | None = None) -> int:
    """How many processes are to serve.

    Args:
        given: The value of every setting by its name, shares of memory resolved.
        cores: That may be used; None: as many as this machine or container has.

    Raises:
        SettingsError: Several are asked for, and cannot serve together with these settings.
    """
    wanted, reason = int(given["processes"]), _single_process_reason(given)
    if wanted > 1 and reason:
        raise SettingsError(f"processes above 1 {reason}")
    if wanted or reason:
        return wanted or 1
    if given["device"].startswith("cuda"):
        return 1  # each would hold the model on the GPU and wait for the runs of the others
    by_cores = (usable_cores() if cores is None else cores) // _CORES_PER_PROCESS
    by_memory = given["memory_limit"] // _MEMORY_PER_PROCESS_BYTES
    return int(max(1, min(by_cores, by_memory, _MOST_BY_DEFAULT)))


def _single_process_reason(given: Mapping[str, Any]) -> str:
    """Why several processes cannot serve together with these settings; empty where they can."""
    if sys.platform != "linux":
        return "needs Linux, which alone spreads connections over processes that share a port"
    if given["disk_directory"] is None and given["redis_url"] is None:
        return "needs a store that all of them see, for prepared references: set disk_directory or redis_url"
    return ""


def share_of(given: Mapping[str, Any], count: int) -> dict[str, Any]:
    """The settings of one of `count` processes: what is set for all of them together is divided.

    Args:
        given: The value of every setting by its name; zeros stand for shares of memory and for cores.
        count: 2 or more.
    """
    beside = _SUPERVISOR_BYTES + (_JUDGE_HOST_BYTES if given["judge_backend"] == "embedded" else 0)
    cores = usable_cores()
    workers = given["workers"] or max(1, cores // given["intra_op_threads"])
    lone_threads = given["lone_run_threads"] or cores
    divided = {
        "memory_limit": ((given["memory_limit"] or usable_memory()) - beside) // count,
        **{name: max(_LEAST_BYTES, given[name] // count) for name in _DIVIDED_BYTES if given[name]},
        **{name: _divided(given[name], count) for name in _DIVIDED_COUNTS},
        "workers": _divided(workers, count),
        "lone_run_threads": _divided(lone_threads, count),
        "http": False,
        "http_api_port": None,
    }
    return {**given, **divided}


def _divided(whole: int, count: int) -> int:
    return int(-(-whole // count))


@dataclass(frozen=True, slots=True, kw_only=True, config=GROUP)
class Settings:
    """All settings; made by `load`."""

    config: Annotated[OptionalPath, Setting("config", "TOML file with settings.")] = None
    processes: ProcessesConfig
    listen: ListenConfig
    http_api: HttpApiConfig
    log: LogConfig
    tracing: TracingConfig
    deadlines: Deadlines
    shutdown: ShutdownConfig
    memory: MemoryConfig
    limits: Limits
    capacity: Capacity
    connections: Connections
    engine: EngineConfig
    backend: Annotated[
        Literal["embedded", "triton"],
        Setting("backend", "Where encoders run: in this process, or in NVIDIA Triton."),
    ] = "embedded"
    judge_prompt_directory: Annotated[
        OptionalDirectory,
        Setting(
            "judge_prompt_directory",
            "Directory of further prompt files (*.toml), which requests may name; read at start.",
        ),
    ] = None
    given: Mapping[str, Any] = field(repr=False)
    """The value of every setting by its name, secrets in the clear."""

    @classmethod
    def load(cls, **values: Any) -> Self:
        """Reads all sources; `values` are the flags (None: not given), as text or typed.

        Raises:
            SettingsError: One line that names the setting.
        """
        _check_protection(values)
        given = read_values(cls, values)
        _check(given)
        return cls._of(given)

    @classmethod
    def load_share(cls, count: int, **values: Any) -> Self:
        """As `load`, for one of `count` processes that serve together."""
        _check_protection(values)
        given = read_values(cls, values)
        _check(given)
        return cls._of(share_of(given, count))

    @classmethod
    def _of(cls, values: Mapping[str, Any]) -> Self:
        given = with_shares(values)
        made = Values(given)
        return made.group(
            cls,
            listen=made.group(ListenConfig, tls=made.group(Tls) if given["tls_cert"] else None),
            http_api=made.group(HttpApiConfig, rewards=made.group(RewardsConfig)),
            log=made.group(LogConfig),
            tracing=made.group(TracingConfig),
            deadlines=made.group(Deadlines),
            shutdown=made.group(ShutdownConfig),
            limits=made.group(Limits),
            memory=made.group(MemoryConfig),
            processes=made.group(ProcessesConfig),
            capacity=made.group(Capacity),
            connections=made.group(Connections),
            engine=_engine(made),
            given=given,
        )

    @property
    def process_count(self) -> int:
        """How many processes are to serve, with 0 resolved; raises SettingsError where so many cannot."""
        return process_count(self.given)

    def printable(self) -> dict[str, Any]:
        """Every setting as a plain value of TOML, secrets as stars; unset ones are empty texts."""
        return {info.name: printable(self.given[info.name], secret=info.secret) for info in setting_infos()}

    def to_toml(self) -> str:
        """What `--print-settings` prints: a file that `--config` reads, but for the stars."""
        return "".join(
            f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in self.printable().items()
        )


def setting_infos() -> tuple[SettingInfo, ...]:
    """All settings, in the order in which they are documented."""
    return tuple(setting_info(each) for each in all_setting_fields(Settings).values())


def _engine(made: Values) -> EngineConfig:
    repository = made["model_repository"]
    repository = repository.expanduser() if repository else default_repository()
    disk = made.group(DiskConfig) if made["disk_directory"] else None
    redis = made.group(RedisConfig) if made["redis_url"] is not None else None
    return made.group(
        EngineConfig,
        model_repository=repository,
        compute=made.group(ComputeConfig),
        gpu=made.group(GpuConfig),
        cache=made.group(CacheConfig, disk=disk, redis=redis),
        triton=made.group(TritonConfig) if made["backend"] == "triton" else None,
        judge=_judge(made, made["judge_repository"] or default_judge_repository(repository)),
    )


def _judge(made: Values, repository: Path) -> JudgeConfig:
    embedded = remote = None
    if made["judge_backend"] == "embedded":
        embedded = made.group(EmbeddedJudgeConfig, repository=repository)
    elif made["judge_backend"] != "none":
        remote = made.group(RemoteJudgeConfig)
    return made.group(JudgeConfig, embedded=embedded, remote=remote, images=made.group(ImageConfig))


def _check_protection(values: Mapping[str, Any]) -> None:
    """Raises SettingsError where a flag or a variable is blank that would switch a protection on: an empty Secret."""
    for name in ("redis_mac_key", "redis_mac_key_file"):
        for value in (values.get(name), os.environ.get(f"{ENV_PREFIX}{name.upper()}")):
            if isinstance(value, str) and not value.strip():
                raise SettingsError(
                    f"{name} is blank, which would switch the MAC off: give it a value, or leave it out"
                )


def _check(given: Mapping[str, Any]) -> None:
    """Raises SettingsError where groups do not go together, or need what is not installed."""
    if (given["tls_cert"] is None) != (given["tls_key"] is None):
        raise SettingsError("tls_cert and tls_key go together: set both or neither")
    if given["tls_client_ca"] is not None and given["tls_cert"] is None:
        raise SettingsError("tls_client_ca needs tls_cert and tls_key")
    if given["http_tls"] and given["tls_cert"] is None:
        raise SettingsError("http_tls needs tls_cert and tls_key")
    for name in ("auth_health", "auth_http"):
        if given[name] and not given["auth_tokens"] and given["auth_tokens_file"] is None:
            raise SettingsError(f"{name} needs tokens: set auth_tokens or auth_tokens_file")
    if problem := endpoint_problem(given["otlp_endpoint"]):
        raise SettingsError(f"otlp_endpoint {problem}")
    if given["default_deadline_s"] > given["max_deadline_s"]:
        raise SettingsError("default_deadline_s must not be longer than max_deadline_s")
    if given["backend"] == "triton" and given["device"].startswith("cuda"):
        raise SettingsError("device is for encoders of this process; with backend triton its models say what they use")
    _check_installed(given)


def _check_installed(given: Mapping[str, Any]) -> None:
    """Raises SettingsError where a setting needs what is not installed."""
    if given["otlp_endpoint"].strip() and find_spec("opentelemetry") is None:
        raise SettingsError("otlp_endpoint needs OpenTelemetry's libraries: pip install 'gradewire[otel]'")
    if "triton" in {given["backend"], given["judge_backend"]} and find_spec("tritonclient") is None:
        raise SettingsError("backend triton needs its client library: pip install 'gradewire[triton]'")
    judges = given["judge_backend"]
    if judges in {"openai", "decisions"} and find_spec("httpx2") is None:
        raise SettingsError(f"judge_backend {judges} needs its client library: pip install 'gradewire[judge]'")
