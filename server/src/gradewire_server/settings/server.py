"""All server settings, in groups, read from flags, variables and a file."""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from importlib.util import find_spec
from typing import Annotated, Any, Final, Literal, Self

from pydantic.dataclasses import dataclass

from gradewire_models.judges.repository import default_judge_repository
from gradewire_models.repository.built import default_repository
from gradewire_proto.tracing.settings import endpoint_problem
from gradewire_server.settings.engine import EngineConfig, TritonConfig, is_triton_address
from gradewire_server.settings.gpus import GpuShare, gpu_shares, visible_gpus
from gradewire_server.settings.judge import EmbeddedJudgeConfig, RemoteJudgeConfig
from gradewire_server.settings.limits import (
    Capacity,
    Deadlines,
    Limits,
    MemoryConfig,
)
from gradewire_server.settings.setting import (
    ENV_PREFIX,
    CountOrAuto,
    OptionalDirectory,
    OptionalPath,
    Setting,
    SettingField,
    SettingsError,
    all_setting_fields,
    group,
    make_group,
    printable,
    read_values,
)
from gradewire_server.settings.shares import capacity_of, gateway_bytes, process_count, share_of, with_shares
from gradewire_server.settings.transport import (
    HttpApiConfig,
    ListenConfig,
    LogConfig,
    ShutdownConfig,
    TracingConfig,
)

_OTHER_VARIABLES: Final = frozenset(
    f"{ENV_PREFIX}{name}" for name in ("DEBUG", "REWARD_SETTINGS", "SERVER", "TOKEN", "TRITON_ENVIRONMENT")
)
"""Variables for the library and the command."""
_JUDGE: Final = "judge"
"""The name that stands for the judge in `preload`."""


@dataclass(frozen=True, slots=True, config=group("Server"))
class ProcessesConfig:
    """Settings for the processes that share the gRPC port."""

    count: Annotated[CountOrAuto, Setting("processes", everyday=True)] = 0
    """Run this many processes. 0 means one for every two cores or every GiB of memory (whichever gives
    fewer), and at most 8.

    With device cuda, 0 means one for every two cores, 2 GiB of memory or 1.5 GiB of free GPU memory. Set 1 for
    debugging, or if an orchestrator starts replicas, to run without a supervisor."""


@dataclass(frozen=True, slots=True, kw_only=True, config=group("Server"))
class Settings:
    """All settings. Make them with `load`."""

    config: Annotated[OptionalPath, Setting("config", everyday=True)] = None
    """Read settings from this TOML file.

    Use it for more than a few settings. Flags and variables override it."""
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
    engine: EngineConfig
    backend: Annotated[Literal["embedded", "triton"], Setting("backend")] = "embedded"
    """Run encoders in this process, or in NVIDIA Triton.

    Use triton if several replicas should share GPUs."""
    judge_prompt_directory: Annotated[OptionalDirectory, Setting("judge_prompt_directory")] = None
    """Read prompt files (*.toml) from this directory at start.

    Set it if requests should be able to name prompts that you wrote."""
    given: Mapping[str, Any] = field(repr=False)
    """The values of all settings by name. Secrets are not masked."""

    @classmethod
    def load(cls, **values: Any) -> Self:
        """Load the settings from flags, variables, the file and defaults.

        `values` contains the flags, as strings or typed values, with None for flags that are not given.

        Raises:
            SettingsError: A setting is invalid. The message is one line that names it.
        """
        return cls._of(_read(values))

    @classmethod
    def load_share(cls, count: int, gpu: GpuShare | None = None, /, **values: Any) -> Self:
        """Load the settings of one of `count` processes, with its share of the limits. For `values`, see `load`."""
        return cls._of(share_of(_read(values), count, gpu), count)

    @classmethod
    def _of(cls, values: Mapping[str, Any], count: int = 1) -> Self:
        given = with_shares(values)
        repository = given["model_repository"]
        repository = repository.expanduser() if repository else default_repository()
        judges = given["judge_repository"] or default_judge_repository(repository)
        here = given["judge_backend"] == "embedded"
        unused = {
            TritonConfig: given["backend"] != "triton",
            EmbeddedJudgeConfig: not here,
            RemoteJudgeConfig: here or given["judge_backend"] == "none",
        }
        made = make_group(
            cls,
            {**given, "model_repository": repository, "judge_repository": judges},
            without=[group for group, is_unused in unused.items() if is_unused],
            given=given,
        )
        engine, names = made.engine, made.engine.preload
        engine = replace(
            engine,
            preload=tuple(name for name in names if name != _JUDGE),
            judge=replace(engine.judge, preload=_JUDGE in names),
        )
        limit = made.memory.limit_bytes
        own = limit if made.http_api.port is None else limit - gateway_bytes(limit)
        capacity = capacity_of(made.capacity, own, count)
        return replace(made, engine=engine, memory=replace(made.memory, limit_bytes=own), capacity=capacity)

    @property
    def process_count(self) -> int:
        """Number of processes: the setting, or the default number if the setting is 0.

        Raises:
            SettingsError: The other settings do not allow this number of processes.
        """
        return process_count(self.given)

    def gpu_shares(self, count: int) -> list[GpuShare]:
        """Return the shares of `count` processes in the GPUs that the setting `device` requires."""
        return gpu_shares(self.given, visible_gpus() if self.engine.gpu.required else (), count)

    def printable(self) -> dict[str, Any]:
        """Return every setting except `config` as a TOML value, with stars for secrets and "" for unset settings."""
        return {
            each.name: printable(self.given[each.name], secret=each.secret)
            for each in every_setting()
            if each.name != "config"
        }

    def to_toml(self) -> str:
        """Return the output of `--print-settings`. If you replace the stars, it is a valid TOML file for `--config`."""
        return "".join(
            f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in self.printable().items()
        )


def every_setting() -> tuple[SettingField, ...]:
    """Return all settings, in documentation order."""
    return tuple(all_setting_fields(Settings).values())


def unknown_variables(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Return the environment variables with gradewire's prefix that no part of gradewire reads, in order."""
    known = {each.variable for each in every_setting()} | _OTHER_VARIABLES
    return sorted(name for name in environment if name.startswith(ENV_PREFIX) and name not in known)


def _read(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of all settings by name; raise SettingsError if they are invalid."""
    for value in (values.get("redis_mac_key"), os.environ.get(f"{ENV_PREFIX}REDIS_MAC_KEY")):
        if isinstance(value, str) and not value.strip():
            raise SettingsError("redis_mac_key is blank, which would switch the MAC off: set a value, or leave it out")
    given = read_values(Settings, values)
    if problem := next(_problems(given), ""):
        raise SettingsError(problem)
    return given


def _problems(given: Mapping[str, Any]) -> Iterator[str]:
    """Yield contradictions between settings, then missing libraries that the settings need."""
    has_cert = given["tls_cert"] is not None
    if has_cert != (given["tls_key"] is not None):
        yield "set both tls_cert and tls_key, or neither"
    for name in ("tls_client_ca", "http_tls"):
        if given[name] and not has_cert:
            yield f"{name} needs tls_cert and tls_key"
    if given["auth_also"] and not given["auth_tokens"] and given["auth_tokens_file"] is None:
        yield "auth_also needs tokens: set auth_tokens or auth_tokens_file"
    if problem := endpoint_problem(given["otlp_endpoint"]):
        yield f"otlp_endpoint {problem}"
    if given["backend"] == "triton" and given["device"].startswith("cuda"):
        yield "device needs backend embedded; with backend triton, Triton's models choose their device"
    yield from _judge_problems(given)
    yield from _missing_libraries(given)


def _judge_problems(given: Mapping[str, Any]) -> Iterator[str]:
    judges, url = given["judge_backend"], given["judge_url"]
    if judges == "none" and _JUDGE in given["preload"]:
        yield f'preload: "{_JUDGE}" needs a judge. Set judge_backend, or remove "{_JUDGE}"'
    if url and judges == "triton" and not is_triton_address(url):
        yield "judge_url must be HOST:PORT of Triton's gRPC port (8001 by default), or grpcs://HOST:PORT"


def _missing_libraries(given: Mapping[str, Any]) -> Iterator[str]:
    judges = given["judge_backend"]
    if given["otlp_endpoint"].strip() and find_spec("opentelemetry") is None:
        yield "otlp_endpoint needs OpenTelemetry's libraries. Run: pip install 'gradewire[otel]'"
    if "triton" in {given["backend"], judges} and find_spec("tritonclient") is None:
        yield "backend triton needs its client library. Run: pip install 'gradewire[triton]'"
    if judges in {"openai", "decisions"} and find_spec("httpx2") is None:
        yield f"judge_backend {judges} needs its client library. Run: pip install 'gradewire[judge]'"
