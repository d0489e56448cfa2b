"""A gateway's settings, with its server, its address and its limits."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Self

from gradewire_proto.tracing.settings import TracingSettings

MIB: Final = 1 << 20
LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamSettings:
    """The server behind the gateway.

    Attributes:
        target: The server's gRPC address, such as HOST:PORT or ``unix:PATH``. Separate the addresses of several
            processes with commas.
        ca: PEM file with the authorities to trust. If empty, gRPC's default authorities are trusted.
        cert: PEM file with the gateway's certificate, if the server requires one.
        key: PEM file with the certificate's key.
        server_name: The name in the server's certificate. If empty, the certificate must name the host in `target`.
        private: True if only this user can access the socket in `target`. The gateway then sends the caller's host and
            port to the server.
        asks_tokens: True if the server is known to require tokens. Otherwise the gateway learns this from a refusal.
    """

    target: str
    tls: bool = False
    ca: str = ""
    cert: str = ""
    key: str = ""
    server_name: str = ""
    private: bool = False
    asks_tokens: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenSettings:
    """The gateway's address.

    Attributes:
        port: The port. 0 means any free port.
        cert: PEM file with the certificate chain. If empty, connections are not encrypted.
        key: PEM file with the certificate's key.
        client_ca: PEM file with the authority that must sign callers' certificates. If empty, callers need no
            certificate.
        names: The host names under which callers may address the gateway. If empty, see `allowed_names`.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    cert: str = ""
    key: str = ""
    client_ca: str = ""
    names: tuple[str, ...] = ()

    @property
    def allowed_names(self) -> frozenset[str]:
        """The host names under which callers may address the gateway, in lower case. Empty means any name.

        By default, a gateway on a loopback address allows only loopback names. Otherwise a web site could point its
        host name to the loopback address, and a browser would let the site's pages call the gateway.
        """
        if not self.names and self.host in LOOPBACK:
            return LOOPBACK
        return frozenset(name.lower() for name in self.names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Limits on requests and connections. `gradewire_gateway.gateway` explains how callers share them.

    Attributes:
        max_requests: Maximum number of requests in flight. Above it, the gateway answers 429.
        max_body_bytes: Maximum size of a body, or of a line in a stream. Above it, the gateway answers 413.
        max_bytes_in_flight: Maximum total size of bodies, lines and large replies. Above it, the gateway answers 429.
        body_s: Maximum time to receive a body, or a line from its first byte. After it, the gateway answers 408.
        head_s: Maximum time to receive a request's head, from the start of the connection or from the first byte after
            the last reply. After it, the gateway closes the connection.
        write_s: Maximum time until the caller's machine has received a piece of a reply. After it, the gateway closes
            the connection.
        max_connections: Maximum number of open connections. Above it, the gateway closes new connections.
    """

    max_requests: int = 128
    max_body_bytes: int = 32 * MIB
    max_bytes_in_flight: int = 256 * MIB
    body_s: float = 60.0
    head_s: float = 15.0
    write_s: float = 60.0
    max_connections: int = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardPostSettings:
    """Settings for reward posts from reinforcement learning frameworks (see `gradewire.rewards`).

    Attributes:
        metric: Identifiers of the metrics; the lowest score is the reward.
        reads: The source of the reward: "score", or "correct" for the metric's verdict (1 or 0).
        extraction: The rule to find the final answer in a completion: auto, boxed, tagged, phrase or whole.
        policy: The policy for samples that could not be scored: exclude, raise, hold or value.
        value: The reward of samples that could not be scored. It is only for the policy "value", which requires it.
        empty_value: The reward of a completion without an answer. None excludes the completion.
        uncertain: The policy for samples whose score is UNCERTAIN: value, exclude or judge.
        uncertain_value: Maximum reward of an UNCERTAIN sample with the policy "value".
        judge_metric: The judge's metric for UNCERTAIN samples with the policy "judge".
        max_answer_characters: Maximum length of an answer; a longer one gets 0. None means no maximum.
        reference_column: Field of the right answers in posts from NeMo Gym; if empty, a field with a usual name.
        deadline_s: Deadline of a post, in seconds. A caller's Connect-Timeout-Ms may shorten it. The policy "hold" adds
            two thirds of this time for retries.
        max_failure_rate: Maximum share of failures among a caller's last 512 rewards. Above it, all posts fail. 1 means
            no limit.
        slime_key: The key under which slime reads the reward (slime's --reward-key). If empty, the reply is a plain
            number.
    """

    metric: str = "correctness,value_match"
    reads: str = "score"
    extraction: str = "auto"
    policy: str = "exclude"
    value: float | None = None
    empty_value: float | None = None
    uncertain: str = "value"
    uncertain_value: float = 0.5
    judge_metric: str = "judge_verdict"
    max_answer_characters: int | None = 1500
    reference_column: str = ""
    deadline_s: float = 60.0
    max_failure_rate: float = 1.0
    slime_key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    """All settings of a gateway. `to_message` and `from_message` pass them to a child process.

    Attributes:
        metrics: True if ``GET /metrics`` returns the gateway's metrics.
        log_level: Log messages of this level and above: debug, info, warning or error.
        page: True if ``GET /`` returns the page.
    """

    upstream: UpstreamSettings
    listen: ListenSettings
    bounds: Bounds
    rewards: RewardPostSettings = RewardPostSettings()
    metrics: bool = True
    log_level: str = "info"
    tracing: TracingSettings = field(default_factory=TracingSettings)
    page: bool = True

    def to_message(self) -> dict[str, Any]:
        """Return the settings as a dictionary that can be written as JSON."""
        return asdict(self)

    @classmethod
    def from_message(cls, message: Mapping[str, Any]) -> Self:
        """Return the settings from a dictionary that `to_message` returned, even after conversion to JSON and back."""
        listen = {**message["listen"], "names": tuple(message["listen"]["names"])}
        parts = {
            "upstream": UpstreamSettings(**message["upstream"]),
            "listen": ListenSettings(**listen),
            "bounds": Bounds(**message["bounds"]),
            "rewards": RewardPostSettings(**message["rewards"]),
            "tracing": TracingSettings(**message["tracing"]),
        }
        return cls(**{**message, **parts})
