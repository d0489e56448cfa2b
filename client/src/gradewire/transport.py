"""The protocol of transports (gRPC, an engine in this process, a stub in a test), and the address of a server."""

from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Generic, Protocol, TypeVar

from google.protobuf.message import Message

from gradewire.errors import InvalidRequest
from gradewire_proto.v1 import judging_pb2, models_pb2, references_pb2, scoring_pb2
from gradewire_proto.wire_rules import JUDGING, MODELS, REFERENCES, SCORING

Metadata = tuple[tuple[str, str], ...]

Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """Encryption of a connection and the certificates to trust; all files are PEM.

    Attributes:
        root_certificates: Certificate authorities to trust; None: gRPC's own list.
        certificate_chain: The client's own certificate, if the server requires one.
        private_key: The key of that certificate.
        server_name: Name in the server's certificate; None: the host of the address.
    """

    root_certificates: Path | None = None
    certificate_chain: Path | None = None
    private_key: Path | None = None
    server_name: str | None = None


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Address and credentials of a server.

    Attributes:
        address: HOST:PORT, or any name that gRPC resolves (`dns:///name:50051` spreads over all addresses).
        token: Bearer token for every call.
        tls: Encryption; None: none.
        connections: Connections to spread calls over; 0: as many as the server's processes need.

    Raises:
        InvalidRequest: An argument has a wrong type, or the token has characters that a header cannot hold. gRPC would
            report these only at the first call, or never.
    """

    address: str
    token: str | None = field(default=None, repr=False)
    tls: Tls | None = None
    connections: int = 0

    def __post_init__(self) -> None:
        wanted = (
            ("address", self.address, str, "HOST:PORT"),
            ("token", self.token, str | None, "a string"),
            ("tls", self.tls, Tls | None, "gradewire.Tls(…)"),
            ("connections", self.connections, int, "a number, 0 to let the client choose"),
        )
        for name, value, kind, hint in wanted:
            if not isinstance(value, kind):
                raise InvalidRequest(f"{name} is a {type(value).__name__}: give {hint}")
        if self.connections < 0:
            raise InvalidRequest(f"connections is {self.connections}: give 0 or more")
        token = self.token or ""
        if token != token.strip() or not (token.isascii() and token.isprintable()):
            raise InvalidRequest(
                "token (command: --token, GRADEWIRE_TOKEN) has a line end, a surrounding blank, or a character that no "
                "token has: copy it from the server, and from a file without the line end"
            )


@dataclass(frozen=True, slots=True)
class RpcMethod(Generic[Q, R]):
    """A method of a gRPC service.

    Attributes:
        service: Full name of its service, ``gradewire.v1.Scoring``.
        name: ``Score``.
        request_type: Message class of its requests.
        reply_type: Message class of its replies.
        client_streaming: True if a call has many requests.
        server_streaming: True if a call has many replies.
    """

    service: str
    name: str
    request_type: type[Q]
    reply_type: type[R]
    client_streaming: bool = False
    server_streaming: bool = False

    @property
    def path(self) -> str:
        """Path of gRPC and of HTTP, ``/gradewire.v1.Scoring/Score``."""
        return f"/{self.service}/{self.name}"

    @property
    def streams(self) -> bool:
        """True if a call has many requests or many replies."""
        return self.client_streaming or self.server_streaming


SCORE: Final = RpcMethod(SCORING, "Score", scoring_pb2.ScoreRequest, scoring_pb2.ScoreResponse)
SCORE_STREAM: Final = RpcMethod(
    SCORING,
    "ScoreStream",
    scoring_pb2.ScoreStreamRequest,
    scoring_pb2.ScoreStreamResponse,
    client_streaming=True,
    server_streaming=True,
)
COMPARE: Final = RpcMethod(JUDGING, "Compare", judging_pb2.CompareRequest, judging_pb2.CompareResponse)
COMPARE_STREAM: Final = RpcMethod(
    JUDGING,
    "CompareStream",
    judging_pb2.CompareStreamRequest,
    judging_pb2.CompareStreamResponse,
    client_streaming=True,
    server_streaming=True,
)
PREPARE: Final = RpcMethod(
    REFERENCES, "Prepare", references_pb2.PrepareRequest, references_pb2.PrepareProgress, server_streaming=True
)
LIST_MODELS: Final = RpcMethod(MODELS, "List", models_pb2.ListModelsRequest, models_pb2.ListModelsResponse)
"""The methods that a client calls."""


class Transport(Protocol):
    """A carrier of messages. It adds no checks, chunks or retries.

    Both calls run on the event loop of the client that owns the transport, and raise errors of `gradewire.errors`.
    After a fork, the child uses the transport on another loop; it reopens itself.
    """

    async def unary(self, method: RpcMethod[Q, R], request: Q, *, timeout_s: float) -> R:
        """Return the reply to one request."""

    def stream(
        self, method: RpcMethod[Q, R], sent: Q | AsyncIterator[Q], *, timeout_s: float | None = None
    ) -> AsyncGenerator[R]:
        """Send a request, or a stream of requests if the method takes one, and yield the replies."""

    async def close(self) -> None:
        """Free all resources. A closed transport is not used again."""
