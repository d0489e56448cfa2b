"""Settings of a gateway: its server, its own address, and its bounds."""

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
        target: As gRPC takes it: HOST:PORT, ``unix:PATH``, …; several, of its processes, with commas between.
        ca: PEM file of authorities to trust; empty: gRPC's own.
        cert: PEM file of the gateway's certificate, where the server wants one.
        key: PEM file of its key.
        server_name: Name in the server's certificate; empty: the host of `target`.
        private: True if the target is a socket for this user alone: the server then gets the name of the calling host.
        asks_tokens: Whether the server is known to ask for tokens; else the first refusal tells.
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
    """The address of the gateway.

    Attributes:
        port: 0 takes a free one.
        cert: PEM file of the certificate chain; empty: in the clear.
        key: PEM file of its key.
        client_ca: PEM file of the authority that callers' certificates must come from; empty: none is required.
        names: Host names that callers may address it by; empty: see `allowed_names`.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    cert: str = ""
    key: str = ""
    client_ca: str = ""
    names: tuple[str, ...] = ()

    @property
    def allowed_names(self) -> frozenset[str]:
        """Host names that callers may address it by, in lower case; empty: any.

        On the loopback address a name of another host that was made to lead there must not reach it: a browser would
        take the API for a part of that host's pages.
        """
        if not self.names and self.host in LOOPBACK:
            return LOOPBACK
        return frozenset(name.lower() for name in self.names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Bounds on what callers may ask for at once; `gradewire_gateway.gateway` has the law that they belong to.

    Attributes:
        max_requests: Requests in flight; one more is answered 429.
        max_body_bytes: A body, or a line of a stream; a larger one is answered 413.
        max_bytes_in_flight: Bodies, lines and large replies of all requests together; beyond, 429.
        body_s: Seconds in which a body, or a line of a stream that was begun, must have come; else 408.
        head_s: Seconds in which the head of a request must have come, from the connection's begin or from the first
            byte after the last reply; else the connection is closed.
        write_s: Seconds in which the caller's machine must have taken a piece of a reply; else the connection is
            closed.
        max_connections: Connections that are open at a time; one more is closed.
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
    """Settings for posts of frameworks for reinforcement learning, as `gradewire.rewards` takes them.

    Attributes:
        metric: Line of the one metric whose score is the reward.
        reads: "score", or "correct": the metric's verdict as 1 or 0.
        extraction: Where the final answer stands: auto, boxed, tagged, phrase, whole.
        policy: What becomes of samples that could not be scored: exclude, raise, hold, value.
        value: The reward of such samples with the policy "value"; with it alone.
        empty_value: The reward of a completion without an answer; None: it is excluded.
        deadline_s: Deadline of one post in seconds, which a caller's Connect-Timeout-Ms may shorten. Policy "hold"
            retries for two thirds of it more.
        max_failure_rate: Share of failures among the last 512 rewards of a caller above which all posts fail; 1: never.
        slime_key: Name under which slime reads the reward (its --reward-key); empty: the reply is the number.
    """

    metric: str = "smile"
    reads: str = "score"
    extraction: str = "auto"
    policy: str = "exclude"
    value: float | None = None
    empty_value: float | None = None
    deadline_s: float = 60.0
    max_failure_rate: float = 1.0
    slime_key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    """Settings of a gateway; `to_message` and `from_message` carry them to a child process.

    Attributes:
        metrics: True if ``GET /metrics`` shows the gateway's metrics.
        log_share: Share of successful requests that are logged, 0 to 1.
        page: Whether ``GET /`` shows the page.
    """

    upstream: UpstreamSettings
    listen: ListenSettings
    bounds: Bounds
    rewards: RewardPostSettings = RewardPostSettings()
    metrics: bool = True
    log_share: float = 1.0
    tracing: TracingSettings = field(default_factory=TracingSettings)
    page: bool = True

    def to_message(self) -> dict[str, Any]:
        """Return them as plain values."""
        return asdict(self)

    @classmethod
    def from_message(cls, message: Mapping[str, Any]) -> Self:
        """Read the values of `to_message`, also after JSON."""
        listen = {**message["listen"], "names": tuple(message["listen"]["names"])}
        parts = {
            "upstream": UpstreamSettings(**message["upstream"]),
            "listen": ListenSettings(**listen),
            "bounds": Bounds(**message["bounds"]),
            "rewards": RewardPostSettings(**message["rewards"]),
            "tracing": TracingSettings(**message["tracing"]),
        }
        return cls(**{**message, **parts})
