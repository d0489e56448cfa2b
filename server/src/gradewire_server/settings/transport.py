"""Settings of transport: addresses, tokens, log, tracing, and the end."""

from dataclasses import field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from gradewire_proto.tracing.settings import DEFAULT_RATIO, TracingSettings
from gradewire_server.settings.setting import (
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
    group,
)

Level = Literal["debug", "info", "warning", "error"]


@dataclass(frozen=True, slots=True, config=group("Network"))
class Tls:
    """Paths of PEM files; with `client_ca` clients must show a certificate of that authority."""

    cert: Annotated[Path, Setting("tls_cert", everyday=True)]
    """PEM certificate chain; together with tls_key it turns TLS on."""
    key: Annotated[Path, Setting("tls_key", everyday=True)]
    """PEM private key."""
    client_ca: Annotated[OptionalPath, Setting("tls_client_ca")] = None
    """PEM authority that clients' certificates must come from."""


@dataclass(frozen=True, slots=True, config=group("Network"))
class ListenConfig:
    """Addresses, and who may call."""

    host: Annotated[str, Field(min_length=1), Setting("host", everyday=True)] = "127.0.0.1"
    """Address that gRPC and HTTP listen on."""
    port: Annotated[Port, Setting("port", everyday=True)] = 50051
    """Port of gRPC; 0 takes a free one."""
    http: Annotated[bool, Setting("http")] = True
    """Serve /metrics, /healthz and /readyz over HTTP."""
    http_port: Annotated[Port, Setting("http_port", everyday=True)] = 9464
    """Port of HTTP; 0 takes a free one."""
    http_tls: Annotated[bool, Setting("http_tls")] = False
    """Serve HTTP over TLS too, with tls_cert and tls_key; probes must know."""
    tls: Tls | None = None
    auth_tokens: Annotated[Tokens, Setting("auth_tokens")] = field(default=(), repr=False)
    """Bearer tokens, one of which every call must carry; none here and in a file: no check."""
    auth_tokens_file: Annotated[OptionalPath, Setting("auth_tokens_file", everyday=True)] = None
    """TOML file with a table for each tenant: tokens, namespace, scopes, weight, quota.

    Read again when it changes."""
    auth_health: Annotated[bool, Setting("auth_health")] = False
    """Health and reflection over gRPC need a token too, any that the server knows."""
    auth_http: Annotated[bool, Setting("auth_http")] = False
    """/metrics over HTTP needs a token with the scope admin."""

    @property
    def is_open(self) -> bool:
        """True if every call is let in, as far as tokens go."""
        return not self.auth_tokens and self.auth_tokens_file is None


@dataclass(frozen=True, slots=True, config=group("Rewards"))
class RewardsConfig:
    """Answers of the HTTP API to posts of frameworks for reinforcement learning."""

    metric: Annotated[str, Field(min_length=1), Setting("rewards_metric")] = "smile"
    """Line of the one metric whose score is the reward of a post."""
    reads: Annotated[Literal["score", "correct"], Setting("rewards_reads")] = "score"
    """What of it: the score, or the verdict as 1 or 0."""
    extraction: Annotated[Literal["auto", "boxed", "tagged", "phrase", "whole"], Setting("rewards_extraction")] = "auto"
    """Where the final answer stands in a completion."""
    policy: Annotated[Literal["exclude", "raise", "hold", "value"], Setting("rewards_policy")] = "exclude"
    """What becomes of samples that could not be scored; never a 0 by itself."""
    value: Annotated[OptionalFinite, Setting("rewards_value")] = None
    """Their reward with the policy value, and with no other."""
    empty_value: Annotated[OptionalFinite, Setting("rewards_empty_value")] = None
    """Reward of a completion without an answer; unset: it has none."""
    deadline_s: Annotated[PositiveSeconds, Setting("rewards_deadline_s")] = 60.0
    """Deadline of a post; a caller may ask for a shorter one."""
    hold_s: Annotated[PositiveSeconds, Setting("rewards_hold_s")] = 40.0
    """How long the policy hold tries again what may pass."""
    max_failure_rate: Annotated[Share, Setting("rewards_max_failure_rate")] = 1.0
    """Share of failures among the last 512 rewards of a caller above which its posts fail; 1: never."""
    slime_key: Annotated[str, Setting("rewards_slime_key")] = ""
    """Name under which slime reads a reward (its --reward-key); unset: none."""


@dataclass(frozen=True, slots=True, config=group("HTTP API"))
class HttpApiConfig:
    """The HTTP API, a gateway in a process of its own: where it listens, how much it takes; without `port`: none."""

    port: Annotated[OptionalPort, Setting("http_api_port", everyday=True)] = None
    """Port of the HTTP API (JSON for every method); 0 takes a free one, unset: none."""
    host: Annotated[str, Field(min_length=1), Setting("http_api_host")] = "127.0.0.1"
    """Address that the HTTP API listens on."""
    names: Annotated[Names, Setting("http_api_names")] = ()
    """Host names that callers of the HTTP API may use; none: those of the loopback address where it listens there,
    else any."""
    max_requests: Annotated[Count, Setting("http_api_max_requests")] = 128
    """Requests of the HTTP API in flight; one more is told to come back."""
    page: Annotated[bool, Setting("http_api_page")] = True
    """Show the page at / of the HTTP API."""
    rewards: RewardsConfig = field(default_factory=RewardsConfig)


@dataclass(frozen=True, slots=True, config=group("Log and tracing"))
class LogConfig:
    """The log."""

    level: Annotated[Level, Setting("log_level")] = "info"
    """Minimum log level."""
    request_share: Annotated[float, Field(ge=0, le=1), Setting("log_request_share")] = 1.0
    """Share of successful requests that are logged; failed ones always are, up to 50 a second of one kind."""


@dataclass(frozen=True, slots=True, config=group("Log and tracing"))
class TracingConfig:
    """Tracing of server and HTTP gateway; headers, certificates, service name: OpenTelemetry's own variables."""

    endpoint: Annotated[str, Setting("otlp_endpoint")] = ""
    """Collector of OpenTelemetry (http://HOST:4317) for traces and evaluation events; empty: that of
    OTEL_EXPORTER_OTLP_ENDPOINT, and where neither is set nothing is traced."""
    protocol: Annotated[Literal["auto", "grpc", "http/protobuf"], Setting("otlp_protocol")] = "auto"
    """Of the collector; auto: what OTEL_EXPORTER_OTLP_PROTOCOL says, else grpc."""
    sample_ratio: Annotated[float, Field(ge=0, le=1), Setting("trace_sample_ratio")] = DEFAULT_RATIO
    """Share of calls that are traced where the caller's trace does not say; OTEL_TRACES_SAMPLER wins over it."""
    events: Annotated[bool, Setting("evaluation_events")] = True
    """Emit gen_ai.evaluation.result for the results of traced calls whose caller does not emit them itself."""

    def settings(self) -> TracingSettings:
        """Return them as the processes of the server and of the gateway read them."""
        return TracingSettings(self.endpoint.strip(), self.protocol, self.sample_ratio, self.events)


@dataclass(frozen=True, slots=True, config=group("Deadlines"))
class ShutdownConfig:
    """The end of the server."""

    drain_s: Annotated[Seconds, Setting("drain_s")] = 5.0
    """Time between the stop signal and no longer taking calls."""
    grace_s: Annotated[Seconds, Setting("grace_s")] = 30.0
    """Time that calls in flight then have to finish."""
