"""Transport settings: addresses, tokens, log, tracing and shutdown."""

from dataclasses import field
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from gradewire_proto.tracing.settings import TracingSettings
from gradewire_server.settings.setting import (
    AccessPoints,
    Count,
    Finite,
    Names,
    OptionalCount,
    OptionalFinite,
    OptionalPath,
    OptionalPort,
    OptionalSeconds,
    Port,
    PositiveSeconds,
    Seconds,
    Setting,
    Share,
    Tokens,
    group,
)

_MAX_UNSET_DRAIN_S: Final = 5.0
_MARGIN_S: Final = 15.0
"""Seconds for a process to end, in addition to the time for its calls."""

Level = Literal["debug", "info", "warning", "error"]


@dataclass(frozen=True, slots=True, config=group("Network"))
class Tls:
    """Paths of the PEM files for TLS."""

    cert: Annotated[Path, Setting("tls_cert", everyday=True)]
    """Certificate chain to present (PEM).

    Set it and tls_key, which turn TLS on, if callers connect over a network."""
    key: Annotated[Path, Setting("tls_key", everyday=True)]
    """Private key for --tls-cert (PEM).

    Set it together with tls_cert."""
    client_ca: Annotated[OptionalPath, Setting("tls_client_ca")] = None
    """Require a client certificate signed by this CA (PEM).

    Set it to accept only clients with a certificate that you issued."""

    def check_readable(self) -> None:
        """Raise OSError with a setting's name if its file cannot be read."""
        for name, path in (("tls_cert", self.cert), ("tls_key", self.key), ("tls_client_ca", self.client_ca)):
            try:
                if path is not None:
                    path.read_bytes()
            except OSError as error:
                reason = error.strerror or error
                raise OSError(f"{name}: {path} cannot be read ({reason}). Name a readable PEM file") from error


@dataclass(frozen=True, slots=True, config=group("Network"))
class ListenConfig:
    """Listen addresses, TLS, and the tokens that callers need."""

    host: Annotated[str, Field(min_length=1), Setting("host", everyday=True)] = "127.0.0.1"
    """Listen on this address.

    Set 0.0.0.0 to accept calls from other machines. Then also set TLS and tokens."""
    port: Annotated[Port, Setting("port", everyday=True)] = 50051
    """Listen on this port. 0 means any free port.

    The port is for gRPC. Change it if another program uses the port."""
    http_port: Annotated[OptionalPort, Setting("http_port", everyday=True)] = 9464
    """Serve /metrics, /healthz and /readyz on this port. 0 means any free port; an empty value means none.

    Change it if another program uses the port."""
    http_tls: Annotated[bool, Setting("http_tls")] = False
    """Also use TLS for /metrics, /healthz and /readyz.

    Set it if these pages are read over an untrusted network. Probes must then use HTTPS."""
    tls: Tls | None = None
    auth_tokens: Annotated[Tokens, Setting("auth_tokens")] = field(default=(), repr=False)
    """Accept only calls with one of these bearer tokens.

    Set it if others can access the port. To change a token without downtime, list both the old and the new one."""
    auth_tokens_file: Annotated[OptionalPath, Setting("auth_tokens_file", everyday=True)] = None
    """Read tenants from this TOML file: tokens, namespace, scopes, weight, quota.

    Use it for several teams. The server rereads the file when it changes."""
    auth_also: Annotated[AccessPoints, Setting("auth_also")] = ()
    """Also require a token for these: health (with reflection, over gRPC) and metrics (/metrics).

    Set metrics if they are confidential, and health to hide the API's shape. Scrapers and probes then need a token."""

    @property
    def is_open(self) -> bool:
        """True if calls need no token."""
        return not self.auth_tokens and self.auth_tokens_file is None


@dataclass(frozen=True, slots=True, config=group("Rewards"))
class RewardsConfig:
    """Settings for the HTTP API's reward endpoints for reinforcement learning frameworks."""

    metric: Annotated[str, Field(min_length=1), Setting("rewards_metric")] = "correctness,value_match"
    """Compute rewards with these metrics. The lowest score is the reward.

    Set the metrics that you train for. docs/guides/rl-rewards.md compares them by the exploits that they reward."""
    reads: Annotated[Literal["score", "correct"], Setting("rewards_reads")] = "score"
    """Use the score as the reward, or the verdict as 1 or 0 (correct).

    Use correct for a binary reward."""
    extraction: Annotated[Literal["auto", "boxed", "tagged", "phrase", "whole"], Setting("rewards_extraction")] = "auto"
    """Find the final answer in a completion by this rule.

    Set it if your prompts ask for one answer format, such as boxed."""
    policy: Annotated[Literal["exclude", "raise", "hold", "value"], Setting("rewards_policy")] = "exclude"
    """Policy for samples that could not be scored.

    Use hold if the server may restart during training. Only the policy value gives failed samples a reward."""
    value: Annotated[OptionalFinite, Setting("rewards_value")] = None
    """Give this reward to samples that cannot be scored (policy value).

    Set it if the framework requires a reward for every sample."""
    empty_value: Annotated[OptionalFinite, Setting("rewards_empty_value")] = None
    """Give this reward to a completion without an answer. If unset, such a completion gets no reward.

    Set it to punish completions that do not answer."""
    uncertain: Annotated[Literal["exclude", "value", "judge"], Setting("rewards_uncertain")] = "value"
    """Policy for samples whose score is UNCERTAIN: give no reward, limit the reward, or ask the judge.

    Use judge if the server has one, and exclude if the framework can leave samples out."""
    uncertain_value: Annotated[Finite, Setting("rewards_uncertain_value")] = 0.5
    """Maximum reward of an UNCERTAIN sample (policy value).

    Lower it if the policy model learns to give answers that are UNCERTAIN."""
    judge_metric: Annotated[str, Field(min_length=1), Setting("rewards_judge_metric")] = "judge_verdict"
    """Ask the judge about UNCERTAIN samples with this metric (policy judge).

    Set it to use a different metric or prompt."""
    max_answer_characters: Annotated[OptionalCount, Setting("rewards_max_answer_characters")] = 1500
    """Give 0 to an answer with more characters, unless a reference is long.

    Lower it if right answers are short. Empty means no limit. Four times the longest reference is always allowed."""
    reference_column: Annotated[str, Setting("rewards_reference_column")] = ""
    """Field of the right answers in posts from NeMo Gym. If empty, a field with a usual name.

    Set it if posts have several such fields, for example answer and solution."""
    deadline_s: Annotated[PositiveSeconds, Setting("rewards_deadline_s")] = 60.0
    """Give up a reward request after this time. With policy hold, retry for another two thirds of this time.

    Keep the total below the framework's timeout. A caller may request a shorter deadline."""
    max_failure_rate: Annotated[Share, Setting("rewards_max_failure_rate")] = 1.0
    """Fail a caller's requests above this share of failed rewards. 1 means never.

    The caller's last 512 rewards count. Lower it to stop a training run that would learn from too few samples."""
    slime_key: Annotated[str, Setting("rewards_slime_key")] = ""
    """Name of the reward in replies to slime, equal to slime's --reward-key.

    Set it only for slime."""


@dataclass(frozen=True, slots=True, config=group("HTTP API"))
class HttpApiConfig:
    """Settings for the HTTP API, which a gateway in its own process serves."""

    port: Annotated[OptionalPort, Setting("http_api_port", everyday=True)] = None
    """Serve the HTTP API (JSON for every method) on this port. 0 means any free port; an empty value means no HTTP API.

    Set it for browsers, frameworks and other callers that do not use gRPC."""
    host: Annotated[str, Field(min_length=1), Setting("http_api_host")] = "127.0.0.1"
    """Serve the HTTP API on this address.

    Set 0.0.0.0 to accept requests from other machines."""
    names: Annotated[Names, Setting("http_api_names")] = ()
    """Accept only HTTP API requests that are addressed to these host names.

    Set it for a public name. If empty, the API accepts loopback names on a loopback address, and any name otherwise."""
    max_requests: Annotated[Count, Setting("http_api_max_requests")] = 128
    """Maximum number of HTTP API requests in progress. Further requests get status 429.

    Raise it to twice the number of parallel rollouts."""
    page: Annotated[bool, Setting("http_api_page")] = True
    """Serve a web page at / of the HTTP API.

    Turn it off if you only need the API."""
    rewards: RewardsConfig = field(default_factory=RewardsConfig)


@dataclass(frozen=True, slots=True, config=group("Log and tracing"))
class LogConfig:
    """Settings for the log."""

    level: Annotated[Level, Setting("log_level")] = "info"
    """Log messages of this level and above.

    Use debug to find a fault. With warning, successful requests are not logged."""


@dataclass(frozen=True, slots=True, config=group("Log and tracing"))
class TracingConfig:
    """Settings for tracing. OpenTelemetry's variables set headers, certificates and the service name."""

    endpoint: Annotated[str, Setting("otlp_endpoint")] = field(default="", repr=False)
    """Send traces to this OpenTelemetry collector. If empty, use OTEL_EXPORTER_OTLP_ENDPOINT.

    Set it to see the duration of each step."""

    def settings(self) -> TracingSettings:
        """Return these settings in the format that both the server and the gateway use."""
        return TracingSettings(self.endpoint.strip())


@dataclass(frozen=True, slots=True, config=group("Deadlines"))
class ShutdownConfig:
    """Settings for the server's shutdown."""

    drain_s: Annotated[OptionalSeconds, Setting("drain_s")] = None
    """Accept new calls for this time after the stop signal. If unset, for up to 5 s, and only while calls arrive.

    Set it to the time that your load balancer needs to redirect calls. A set time is never shortened."""
    grace_s: Annotated[Seconds, Setting("grace_s")] = 30.0
    """After drain_s, give calls in flight up to this time to finish.

    Raise it for slow judges. Kubernetes' terminationGracePeriodSeconds must exceed drain_s plus grace_s."""

    @property
    def max_drain_s(self) -> float:
        """Seconds after which draining ends even if calls still arrive."""
        return _MAX_UNSET_DRAIN_S if self.drain_s is None else self.drain_s

    @property
    def limit_s(self) -> float:
        """Seconds after which a server with these settings has stopped."""
        return self.max_drain_s + self.grace_s + _MARGIN_S
