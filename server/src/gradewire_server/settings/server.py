"""Every setting of the server, once: the flag, the GRADEWIRE_ variable and the TOML key share one name.

A flag wins over a variable, a variable over the file, the file over the default.
"""

import json
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, Self

import platformdirs
from pydantic import ByteSize, Field, ValidationError, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from gradewire_server.settings.engine import engine_config
from gradewire_server.settings.groups import EngineConfig
from gradewire_server.settings.limits import MEBIBYTE, Capacity, Deadlines, Limits
from gradewire_server.settings.text import ENV_PREFIX, SettingInfo, plain, setting_info
from gradewire_server.settings.types import (
    Bytes,
    Count,
    Names,
    OptionalPath,
    OptionalSecret,
    Port,
    PositiveSeconds,
    Price,
    Seconds,
    Secrets,
    blank_is_none,
)


class SettingsError(ValueError):
    """A setting is unknown or has a value that cannot be used; the message names it, and shows no secret."""


class Settings(BaseSettings):
    """All settings; build it with `Settings.load` for one-line errors."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX, extra="forbid", frozen=True, hide_input_in_errors=True, env_ignore_empty=False
    )

    config: OptionalPath = Field(None, description="TOML file with settings.")

    host: str = Field("127.0.0.1", min_length=1, description="Address that gRPC and HTTP listen on.")
    port: Port = Field(50051, description="Port of gRPC; 0 takes a free one.")
    http: bool = Field(default=True, description="Serve /metrics, /healthz and /readyz over HTTP.")
    http_port: Port = Field(9464, description="Port of HTTP; 0 takes a free one.")
    tls_cert: OptionalPath = Field(None, description="PEM certificate chain; together with tls_key it turns TLS on.")
    tls_key: OptionalPath = Field(None, description="PEM private key.")
    tls_client_ca: OptionalPath = Field(None, description="PEM authority that clients' certificates must come from.")
    auth_tokens: Secrets = Field((), description="Bearer tokens, one of which every call must carry; none: no check.")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="Least level that is logged.")
    log_request_share: float = Field(
        1.0, ge=0, le=1, description="Share of successful requests that are logged; failed ones always are."
    )

    default_deadline_s: PositiveSeconds = Field(60.0, description="Deadline of a call that names none.")
    max_deadline_s: PositiveSeconds = Field(600.0, description="Longest deadline that a call may wish for.")
    stall_s: PositiveSeconds = Field(
        60.0, description="Time that a reply of a stream or of Prepare may wait for its reader; then the call is ended."
    )
    drain_s: Seconds = Field(5.0, description="Time between the stop signal and no longer taking calls.")
    grace_s: Seconds = Field(30.0, description="Time that calls in flight then have to finish.")

    max_items_per_request: Count = Field(4096, description="Items of one message.")
    max_metrics_per_request: Count = Field(32, description="Metrics of one request.")
    max_references_per_item: Count = Field(1024, description="References of one item.")
    max_item_bytes: Bytes = Field(ByteSize(3 * MEBIBYTE // 2), description="Text of one item.")
    max_message_bytes: Bytes = Field(ByteSize(32 * MEBIBYTE), description="One message, either way.")
    stream_window_items: Count = Field(512, description="Items of one stream in work.")
    max_items_in_flight: Count = Field(16384, description="Items in work in the whole server.")
    max_bytes_in_flight: Bytes = Field(ByteSize(256 * MEBIBYTE), description="Request bytes held in the whole server.")

    model_repository: OptionalPath = Field(None, description="Directory of built models; empty: where they are built.")
    default_model: str = Field("", description="Encoder meant where none is named; empty: the catalog's.")
    preload: Names = Field((), description="Further models to load at start, not at first use.")
    backend: Literal["embedded", "triton"] = Field(
        "embedded", description="Where encoders run: in this process, or in NVIDIA Triton."
    )
    triton_url: str = Field("127.0.0.1:8001", description="HOST:PORT of Triton's gRPC.")
    triton_tls: bool = Field(default=False, description="Speak TLS with Triton.")
    triton_tls_ca: OptionalPath = Field(
        None, description="PEM authority that Triton's certificate must come from; unset: the usual ones."
    )
    triton_tls_cert: OptionalPath = Field(None, description="PEM certificate chain shown to Triton.")
    triton_tls_key: OptionalPath = Field(None, description="PEM private key of triton_tls_cert.")
    triton_token: OptionalSecret = Field(None, description="Bearer token sent to Triton, for a proxy before it.")
    triton_timeout_s: PositiveSeconds = Field(30.0, description="Longest wait for one inference in Triton.")
    triton_max_in_flight: int = Field(
        0, ge=0, description="Inferences of a model on their way to Triton; 0: one more than its instances."
    )
    triton_max_run_tokens: Count = Field(256, description="Tokens of one inference in Triton.")
    triton_poll_s: PositiveSeconds = Field(1.0, description="Time between two looks at what Triton serves.")
    triton_repair: bool = Field(
        default=True, description="Have Triton load a model that it lacks, and load anew one that fails."
    )
    workers: int = Field(0, ge=0, description="Encoder runs at a time; 0: one per core.")
    intra_op_threads: Count = Field(1, description="Threads of one encoder run.")
    lone_run_threads: int = Field(
        0, ge=0, description="Threads of a run that has all workers to itself; 0: one per core; 1: saves memory."
    )
    allow_spinning: bool = Field(default=False, description="Let idle encoder threads burn their core.")
    max_batch_tokens: Count = Field(256, description="Padded tokens of one encoder run.")
    max_batch_texts: Count = Field(128, description="Texts of one encoder run.")
    max_queue_tokens: Count = Field(1_000_000, description="Tokens that may wait for an encoder.")
    wordnet_directory: OptionalPath = Field(None, description="WordNet's files, for meteor; unset: the usual places.")

    judge_backend: Literal["none", "embedded", "triton", "openai"] = Field(
        "embedded",
        description="Where judges run: nowhere, in a process of this machine, in Triton's vLLM backend, or behind an "
        "OpenAI-compatible server.",
    )
    judge_model: str = Field("", description="Judge meant where none is named; empty: the catalog's or remote one.")
    judge_preload: bool = Field(default=False, description="Load the judge at start, not at its first use.")
    judge_max_queue_items: Count = Field(
        4096, description="Needs that may wait for a judge; further ones fail with a hint when to try again."
    )
    judge_deadline_s: PositiveSeconds = Field(
        3600.0, description="Longest wait for a judge's answers in a stream that has no deadline of its own."
    )
    judge_prompt_directory: OptionalPath = Field(
        None, description="Directory of further prompt files (*.toml), which requests may name; read at start."
    )
    judge_repository: OptionalPath = Field(None, description="Directory of built judges; unset: where they are built.")
    judge_form: Literal["auto", "int8", "gguf"] = Field(
        "auto", description="Form of a judge that is run; auto: int8 where it is built and exact on this processor."
    )
    judge_threads: Count = Field(1, description="Threads of the judge's process.")
    judge_nice: int = Field(5, ge=0, le=19, description="Nice level of the judge's process, so that encoders go first.")
    judge_max_item_tokens: Count = Field(
        2048, description="Tokens of an item that the judge reads; longer ones are cut at the prediction."
    )
    judge_url: str = Field("", description="Base URL (http://host/v1) of the judge's server, or HOST:PORT of Triton's.")
    judge_tls: bool = Field(default=False, description="Speak TLS with the judge's Triton.")
    judge_token: OptionalSecret = Field(None, description="API key or bearer token for the judge's server.")
    judge_remote_model: str = Field("", description="Name of the model on the judge's server.")
    judge_assistant_prefill: Literal["auto", "yes", "no"] = Field(
        "auto", description="Whether the judge's server goes on from a begun answer; auto: find out."
    )
    judge_timeout_s: PositiveSeconds = Field(60.0, description="Longest wait for one answer of the judge's server.")
    judge_max_in_flight: Count = Field(16, description="Requests on their way to the judge's server.")
    judge_input_price: Price = Field(0.0, description="Price of a million tokens sent, for the cost that is counted.")
    judge_output_price: Price = Field(0.0, description="Price of a million tokens that the judge writes, likewise.")

    namespace: str = Field("default", description="Tenants with different namespaces share no cache entry.")
    memory_max_bytes: Bytes = Field(ByteSize(256 * MEBIBYTE), description="In-process cache of vectors.")
    prediction_ttl_s: Count = Field(7 * 24 * 3600, description="How long vectors of predictions are kept.")
    disk_directory: OptionalPath = Field(
        default_factory=lambda: platformdirs.user_cache_path("gradewire"),
        description="Directory of the store on this machine; unset: the user's cache directory; empty: none.",
    )
    disk_max_bytes: Bytes = Field(ByteSize(2048 * MEBIBYTE), description="Store of predictions' vectors.")
    reference_max_bytes: Bytes = Field(ByteSize(2048 * MEBIBYTE), description="Store of references' vectors.")
    prepared_max_bytes: Bytes = Field(ByteSize(1024 * MEBIBYTE), description="Store of prepared synthetic answers.")
    redis_url: OptionalSecret = Field(None, description="redis://, rediss:// or unix:// store shared by machines.")
    redis_cluster: bool = Field(default=False, description="The Redis server is a cluster.")
    redis_timeout_s: PositiveSeconds = Field(0.2, description="Longest wait for one Redis answer.")

    @classmethod
    def load(cls, **values: Any) -> Self:
        """Reads all sources; `values` are the flags (None: not given), as text or typed.

        Raises:
            SettingsError: One line that names the setting.
        """
        try:
            return cls(**{name: value for name, value in values.items() if value is not None})
        except ValidationError as error:
            raise SettingsError("; ".join(map(_explain, error.errors()))) from None

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Flags, then variables, then the file that `config` names."""
        del dotenv_settings, file_secret_settings
        return init_settings, env_settings, _TomlSource(settings_cls)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("tls_cert and tls_key go together: set both or neither")
        if self.tls_client_ca is not None and self.tls_cert is None:
            raise ValueError("tls_client_ca needs tls_cert and tls_key")
        if self.default_deadline_s > self.max_deadline_s:
            raise ValueError("default_deadline_s must not be longer than max_deadline_s")
        if "triton" in {self.backend, self.judge_backend} and find_spec("tritonclient") is None:
            raise ValueError("backend triton needs its client library: pip install 'gradewire[triton]'")
        if self.judge_backend == "openai" and find_spec("httpx2") is None:
            raise ValueError("judge_backend openai needs its client library: pip install 'gradewire[judge]'")
        self.engine_config()
        return self

    def engine_config(self) -> EngineConfig:
        """The engine's part; raises ValueError where its groups refuse a value."""
        return engine_config(self)

    def limits(self) -> Limits:
        """Limits of one request."""
        return Limits(
            max_items_per_request=self.max_items_per_request,
            max_metrics_per_request=self.max_metrics_per_request,
            max_references_per_item=self.max_references_per_item,
            max_item_bytes=self.max_item_bytes,
            max_message_bytes=self.max_message_bytes,
            stream_window_items=self.stream_window_items,
        )

    def deadlines(self) -> Deadlines:
        """Seconds a call may take."""
        return Deadlines(
            default_s=self.default_deadline_s,
            max_s=self.max_deadline_s,
            stall_s=self.stall_s,
            judge_s=self.judge_deadline_s,
        )

    def capacity(self) -> Capacity:
        """What may be in flight in the whole server."""
        return Capacity(max_items=self.max_items_in_flight, max_bytes=self.max_bytes_in_flight)

    def printable(self) -> dict[str, Any]:
        """Every setting as a plain value of TOML, secrets as stars; unset ones are empty texts."""
        return {info.name: plain(getattr(self, info.name)) for info in setting_infos()}

    def to_toml(self) -> str:
        """What `--print-settings` prints: a file that `--config` reads, but for the stars."""
        return "".join(
            f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in self.printable().items()
        )


class _TomlSource(PydanticBaseSettingsSource):
    """The file that the flag or variable `config` names; an unknown key in it is an error that lists the file."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        del field
        return self().get(field_name), field_name, False

    def __call__(self) -> dict[str, Any]:
        path = blank_is_none(self.current_state.get("config"))
        if path is None:
            return {}
        try:
            values = tomllib.loads(Path(path).expanduser().read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise SettingsError(f"config: cannot read {path}: {error}") from error
        unknown = values.keys() - (self.settings_cls.model_fields.keys() - {"config"})
        if unknown:
            raise SettingsError(f"config: {path} has unknown keys: {', '.join(sorted(unknown))}")
        return values


def setting_infos() -> tuple[SettingInfo, ...]:
    """All settings, in the order in which they are documented."""
    return tuple(setting_info(name, field) for name, field in Settings.model_fields.items())


def _explain(error: ErrorDetails) -> str:
    name = ".".join(map(str, error["loc"][:1]))
    message = error["msg"].removeprefix("Value error, ")
    if not name:
        return message
    if error["type"] == "extra_forbidden":
        return f"{name}: there is no such setting"
    return f"{name}: {message} (flag --{name.replace('_', '-')}, variable {ENV_PREFIX}{name.upper()})"
