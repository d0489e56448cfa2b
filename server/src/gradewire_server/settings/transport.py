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
    """Show this certificate to the other side (PEM chain).

    With tls_key it turns TLS on: set both if callers come over a network."""
    key: Annotated[Path, Setting("tls_key", everyday=True)]
    """Private key of --tls-cert (PEM).

    Set it with tls_cert."""
    client_ca: Annotated[OptionalPath, Setting("tls_client_ca")] = None
    """Require clients' certificates from this authority (PEM).

    Set it to let in only clients with a certificate of yours."""


@dataclass(frozen=True, slots=True, config=group("Network"))
class ListenConfig:
    """Addresses, and who may call."""

    host: Annotated[str, Field(min_length=1), Setting("host", everyday=True)] = "127.0.0.1"
    """Listen on this address.

    Set 0.0.0.0 to take calls of other machines; then set TLS and tokens too."""
    port: Annotated[Port, Setting("port", everyday=True)] = 50051
    """Listen on this port. 0 takes a free one.

    The port of gRPC; change it if another program has it."""
    http_port: Annotated[OptionalPort, Setting("http_port", everyday=True)] = 9464
    """Serve /metrics, /healthz and /readyz on this port. 0: a free one; empty: none.

    Change it if another program has it; empty it if nothing reads metrics."""
    http_tls: Annotated[bool, Setting("http_tls")] = False
    """Serve /metrics, /healthz and /readyz over TLS too.

    Set it if they are read over an untrusted network; probes must use HTTPS then."""
    tls: Tls | None = None
    auth_tokens: Annotated[Tokens, Setting("auth_tokens")] = field(default=(), repr=False)
    """Let in only calls with one of these bearer tokens.

    Set it if others can reach the port. Several tokens allow a change without a gap."""
    auth_tokens_file: Annotated[OptionalPath, Setting("auth_tokens_file", everyday=True)] = None
    """Read tenants from this TOML file: tokens, namespace, scopes, weight, quota.

    Use it for several teams. The server reads the file again when it changes."""
    auth_health: Annotated[bool, Setting("auth_health")] = False
    """Require a token for health and reflection over gRPC.

    Set it if the API's shape must stay hidden; probes then need a token."""
    auth_http: Annotated[bool, Setting("auth_http")] = False
    """Require a token with scope admin for /metrics.

    Set it if metrics are confidential."""

    @property
    def is_open(self) -> bool:
        """True if every call is let in, as far as tokens go."""
        return not self.auth_tokens and self.auth_tokens_file is None


@dataclass(frozen=True, slots=True, config=group("Rewards"))
class RewardsConfig:
    """Answers of the HTTP API to posts of frameworks for reinforcement learning."""

    metric: Annotated[str, Field(min_length=1), Setting("rewards_metric")] = "smile"
    """Reward with this metric.

    Its score is the reward of a post; set the metric that you train for."""
    reads: Annotated[Literal["score", "correct"], Setting("rewards_reads")] = "score"
    """Reward with the score, or with the verdict as 1 or 0.

    Use correct for a binary reward."""
    extraction: Annotated[Literal["auto", "boxed", "tagged", "phrase", "whole"], Setting("rewards_extraction")] = "auto"
    """Find the final answer in a completion by this rule.

    Set it if your prompts ask for one form, such as boxed."""
    policy: Annotated[Literal["exclude", "raise", "hold", "value"], Setting("rewards_policy")] = "exclude"
    """Treat samples that could not be scored by this policy.

    They never get 0 by themselves. Use hold if a server restarts during a run."""
    value: Annotated[OptionalFinite, Setting("rewards_value")] = None
    """Reward samples that could not be scored with X (policy value).

    Set it if the framework takes no sample without a reward."""
    empty_value: Annotated[OptionalFinite, Setting("rewards_empty_value")] = None
    """Reward a completion without an answer with X, not with none.

    Set it to punish completions that do not answer."""
    deadline_s: Annotated[PositiveSeconds, Setting("rewards_deadline_s")] = 60.0
    """Give up a post after this time.

    Keep it below the framework's own limit. A caller may ask for a shorter one."""
    hold_s: Annotated[PositiveSeconds, Setting("rewards_hold_s")] = 40.0
    """Retry this long with policy hold.

    Raise it if a restart of the server takes longer."""
    max_failure_rate: Annotated[Share, Setting("rewards_max_failure_rate")] = 1.0
    """Fail a caller's posts above this share of failed rewards.

    It counts the last 512 rewards. Lower it to stop a run that learns from few samples."""
    slime_key: Annotated[str, Setting("rewards_slime_key")] = ""
    """Name the reward so for slime, as its --reward-key does.

    Set it for slime alone."""


@dataclass(frozen=True, slots=True, config=group("HTTP API"))
class HttpApiConfig:
    """The HTTP API, a gateway in a process of its own: where it listens, how much it takes; without `port`: none."""

    port: Annotated[OptionalPort, Setting("http_api_port", everyday=True)] = None
    """Serve the HTTP API (JSON for every method) on this port. 0: a free one; empty: none.

    Set it for callers without gRPC, for browsers and for frameworks."""
    host: Annotated[str, Field(min_length=1), Setting("http_api_host")] = "127.0.0.1"
    """Listen on this address with the HTTP API.

    Set 0.0.0.0 to take requests of other machines."""
    names: Annotated[Names, Setting("http_api_names")] = ()
    """Let callers of the HTTP API use these host names.

    Empty: those of the loopback address if it listens there, else any. Set it for a public name."""
    max_requests: Annotated[Count, Setting("http_api_max_requests")] = 128
    """Work on this many requests of the HTTP API at a time.

    Raise it to twice the rollouts that post at once; one more request gets 429."""
    page: Annotated[bool, Setting("http_api_page")] = True
    """Show the page at / of the HTTP API.

    Turn it off for an API without a page."""
    rewards: RewardsConfig = field(default_factory=RewardsConfig)


@dataclass(frozen=True, slots=True, config=group("Log and tracing"))
class LogConfig:
    """The log."""

    level: Annotated[Level, Setting("log_level")] = "info"
    """Log from this level on.

    Use debug to find a fault, warning for a quiet log."""
    request_share: Annotated[float, Field(ge=0, le=1), Setting("log_request_share")] = 1.0
    """Log this share of the successful requests.

    Lower it at thousands of calls a second. Failed calls are always logged, up to 50 a second of one kind."""


@dataclass(frozen=True, slots=True, config=group("Log and tracing"))
class TracingConfig:
    """Tracing of server and HTTP gateway; headers, certificates, service name: OpenTelemetry's own variables."""

    endpoint: Annotated[str, Setting("otlp_endpoint")] = ""
    """Send traces to this OpenTelemetry collector.

    Empty: OTEL_EXPORTER_OTLP_ENDPOINT, and no traces without it. Set it to see the time of each step."""
    sample_ratio: Annotated[float, Field(ge=0, le=1), Setting("trace_sample_ratio")] = DEFAULT_RATIO
    """Trace this share of the calls whose caller's trace does not decide.

    Raise it to see rare faults, lower it under load. OTEL_TRACES_SAMPLER wins over it."""

    def settings(self) -> TracingSettings:
        """Return them as the processes of the server and of the gateway read them."""
        return TracingSettings(self.endpoint.strip(), self.sample_ratio)


@dataclass(frozen=True, slots=True, config=group("Deadlines"))
class ShutdownConfig:
    """The end of the server."""

    drain_s: Annotated[Seconds, Setting("drain_s")] = 5.0
    """Take calls for this time after the stop signal.

    Raise it if a load balancer is slow to turn away; set 0 without one."""
    grace_s: Annotated[Seconds, Setting("grace_s")] = 30.0
    """Give calls in flight this time to finish after that.

    Raise it for slow judges. Kubernetes' terminationGracePeriodSeconds must exceed both together."""
