"""Settings of transport: addresses, tokens, log, tracing, and the end."""

from dataclasses import field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from gradewire_proto.tracing.settings import DEFAULT_RATIO, TracingSettings
from gradewire_server.settings.surface import (
    GROUP,
    Count,
    Names,
    OptionalFinite,
    OptionalPath,
    OptionalPort,
    Port,
    PositiveSeconds,
    Seconds,
    Setting,
    Share,
    Tokens,
)

Level = Literal["debug", "info", "warning", "error"]


@dataclass(frozen=True, slots=True, config=GROUP)
class Tls:
    """Paths of PEM files; with `client_ca` clients must show a certificate of that authority."""

    cert: Annotated[Path, Setting("tls_cert", "PEM certificate chain; together with tls_key it turns TLS on.")]
    key: Annotated[Path, Setting("tls_key", "PEM private key.")]
    client_ca: Annotated[
        OptionalPath, Setting("tls_client_ca", "PEM authority that clients' certificates must come from.")
    ] = None


@dataclass(frozen=True, slots=True, config=GROUP)
class ListenConfig:
    """Addresses, and who may call."""

    host: Annotated[str, Field(min_length=1), Setting("host", "Address that gRPC and HTTP listen on.")] = "127.0.0.1"
    port: Annotated[Port, Setting("port", "Port of gRPC; 0 takes a free one.")] = 50051
    http: Annotated[bool, Setting("http", "Serve /metrics, /healthz and /readyz over HTTP.")] = True
    http_port: Annotated[Port, Setting("http_port", "Port of HTTP; 0 takes a free one.")] = 9464
    http_tls: Annotated[
        bool, Setting("http_tls", "Serve HTTP over TLS too, with tls_cert and tls_key; probes must know.")
    ] = False
    tls: Tls | None = None
    auth_tokens: Annotated[
        Tokens,
        Setting("auth_tokens", "Bearer tokens, one of which every call must carry; none here and in a file: no check."),
    ] = field(default=(), repr=False)
    auth_tokens_file: Annotated[
        OptionalPath,
        Setting(
            "auth_tokens_file", "TOML file with a table for each tenant: tokens, namespace, scopes, weight, quota."
        ),
    ] = None
    """Read again when it changes."""
    auth_health: Annotated[
        bool, Setting("auth_health", "Health and reflection over gRPC need a token too, any that the server knows.")
    ] = False
    auth_http: Annotated[bool, Setting("auth_http", "/metrics over HTTP needs a token with the scope admin.")] = False

    @property
    def is_open(self) -> bool:
        """Whether every call is let in, as far as tokens go."""
        return not self.auth_tokens and self.auth_tokens_file is None


@dataclass(frozen=True, slots=True, config=GROUP)
class RewardsConfig:
    """How the HTTP API answers the posts of frameworks for reinforcement learning."""

    metric: Annotated[
        str,
        Field(min_length=1),
        Setting("rewards_metric", "Line of the one metric whose score is the reward of a post."),
    ] = "smile"
    reads: Annotated[
        Literal["score", "correct"], Setting("rewards_reads", "What of it: the score, or the verdict as 1 or 0.")
    ] = "score"
    extraction: Annotated[
        Literal["auto", "boxed", "tagged", "phrase", "whole"],
        Setting("rewards_extraction", "Where the final answer stands in a completion."),
    ] = "auto"
    policy: Annotated[
        Literal["exclude", "raise", "hold", "value"],
        Setting("rewards_policy", "What becomes of samples that could not be scored; never a 0 by itself."),
    ] = "exclude"
    value: Annotated[
        OptionalFinite, Setting("rewards_value", "Their reward with the policy value, and with no other.")
    ] = None
    empty_value: Annotated[
        OptionalFinite,
        Setting("rewards_empty_value", "Reward of a completion without an answer; unset: it has none."),
    ] = None
    deadline_s: Annotated[
        PositiveSeconds, Setting("rewards_deadline_s", "Deadline of a post; a caller may ask for a shorter one.")
    ] = 60.0
    hold_s: Annotated[
        PositiveSeconds, Setting("rewards_hold_s", "How long the policy hold tries again what may pass.")
    ] = 40.0
    max_failure_rate: Annotated[
        Share,
        Setting(
            "rewards_max_failure_rate",
            "Share of failures among the last 512 rewards of a caller above which its posts fail; 1: never.",
        ),
    ] = 1.0
    slime_key: Annotated[
        str, Setting("rewards_slime_key", "Name under which slime reads a reward (its --reward-key); unset: none.")
    ] = ""


@dataclass(frozen=True, slots=True, config=GROUP)
class HttpApiConfig:
    """The HTTP API, a gateway in a process of its own: where it listens, how much it takes; without `port`: none."""

    port: Annotated[
        OptionalPort,
        Setting("http_api_port", "Port of the HTTP API (JSON for every method); 0 takes a free one, unset: none."),
    ] = None
    host: Annotated[str, Field(min_length=1), Setting("http_api_host", "Address that the HTTP API listens on.")] = (
        "127.0.0.1"
    )
    names: Annotated[
        Names,
        Setting(
            "http_api_names",
            "Host names that callers of the HTTP API may use; none: those of the loopback address where it listens "
            "there, else any.",
        ),
    ] = ()
    max_requests: Annotated[
        Count, Setting("http_api_max_requests", "Requests of the HTTP API in flight; one more is told to come back.")
    ] = 128
    page: Annotated[bool, Setting("http_api_page", "Show the page at / of the HTTP API.")] = True
    rewards: RewardsConfig = field(default_factory=RewardsConfig)


@dataclass(frozen=True, slots=True, config=GROUP)
class LogConfig:
    """What is logged."""

    level: Annotated[Level, Setting("log_level", "Minimum log level.")] = "info"
    request_share: Annotated[
        float,
        Field(ge=0, le=1),
        Setting(
            "log_request_share",
            "Share of successful requests that are logged; failed ones always are, up to 50 a second of one kind.",
        ),
    ] = 1.0


@dataclass(frozen=True, slots=True, config=GROUP)
class TracingConfig:
    """Of the server and of its HTTP gateway; headers, certificates, service name: OpenTelemetry's own variables."""

    endpoint: Annotated[
        str,
        Setting(
            "otlp_endpoint",
            "Collector of OpenTelemetry (http://HOST:4317) for traces and evaluation events; empty: that of "
            "OTEL_EXPORTER_OTLP_ENDPOINT, and where neither is set nothing is traced.",
        ),
    ] = ""
    protocol: Annotated[
        Literal["auto", "grpc", "http/protobuf"],
        Setting("otlp_protocol", "Of the collector; auto: what OTEL_EXPORTER_OTLP_PROTOCOL says, else grpc."),
    ] = "auto"
    sample_ratio: Annotated[
        float,
        Field(ge=0, le=1),
        Setting(
            "trace_sample_ratio",
            "Share of calls that are traced where the caller's trace does not say; OTEL_TRACES_SAMPLER wins over it.",
        ),
    ] = DEFAULT_RATIO
    events: Annotated[
        bool,
        Setting(
            "evaluation_events",
            "Emit gen_ai.evaluation.result for the results of traced calls whose caller does not emit them itself.",
        ),
    ] = True

    def settings(self) -> TracingSettings:
        """Return them as the processes of the server and of the gateway read them."""
        return TracingSettings(self.endpoint.strip(), self.protocol, self.sample_ratio, self.events)


@dataclass(frozen=True, slots=True, config=GROUP)
class ShutdownConfig:
    """How the server stops."""

    drain_s: Annotated[Seconds, Setting("drain_s", "Time between the stop signal and no longer taking calls.")] = 5.0
    grace_s: Annotated[Seconds, Setting("grace_s", "Time that calls in flight then have to finish.")] = 30.0
