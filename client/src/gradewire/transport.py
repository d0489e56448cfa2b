"""The protocol of all transports (gRPC, an engine in this process, a test's stub), and server endpoints."""

import os
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
    """Settings for an encrypted connection. All files are in PEM format.

    Attributes:
        root_certificates: Certificate authorities to trust; None means gRPC's default list.
        certificate_chain: The client's certificate chain, if the server requires one.
        private_key: The private key of the client's certificate.
        server_name: Name in the server's certificate; None means the address's host.

    Raises:
        InvalidRequest: A file is not a path.
    """

    root_certificates: Path | None = None
    certificate_chain: Path | None = None
    private_key: Path | None = None
    server_name: str | None = None

    def __post_init__(self) -> None:
        for name in ("root_certificates", "certificate_chain", "private_key"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str | os.PathLike):
                raise InvalidRequest(f"{name} is a {type(value).__name__}: give the path of a PEM file")
            # The message does not repeat the value, which may be a key.
            if value is not None and (not str(value).strip() or "\n" in str(value) or "-----BEGIN" in str(value)):
                raise InvalidRequest(f"{name} is empty or a file's content: give the path of a PEM file")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server's address, with the client's credentials and connection settings.

    Attributes:
        address: HOST:PORT, or any name that gRPC resolves. With `dns:///name:50051` or `ipv4:IP:PORT,IP:PORT`, calls
            are spread over all addresses.
        token: Bearer token for every call, without the word "Bearer".
        tls: Encryption settings; None means no encryption.
        connections: Maximum number of connections; 0 means enough to reach every server process.

    Raises:
        InvalidRequest: An argument has a wrong type, the address has a scheme of HTTP, or the token begins with
            "Bearer " or has characters that a header cannot contain. gRPC would report such errors only at the first
            call, or never.
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
            ("connections", self.connections, int, "a whole number (0 lets the client choose)"),
        )
        for name, value, kind, hint in wanted:
            if not isinstance(value, kind):
                raise InvalidRequest(f"{name} is a {type(value).__name__}: give {hint}")
        if not self.address.strip():
            raise InvalidRequest("address is empty: give HOST:PORT")
        scheme, separator, rest = self.address.partition("://")
        if separator and scheme.casefold() in {"http", "https", "grpc", "grpcs"}:
            hint = ", and tls=gradewire.Tls() for TLS" if scheme.casefold() in {"https", "grpcs"} else ""
            raise InvalidRequest(
                f"address={self.address!r} has a scheme: give HOST:PORT of the server's gRPC port, such as "
                f"{rest.partition('/')[0]!r}{hint}"
            )
        if "," in self.address and ":" not in self.address.partition(",")[0].partition(":")[2]:
            raise InvalidRequest(
                f"address={self.address!r} names several servers: give ipv4:IP:PORT,IP:PORT (or ipv6:…), or one name "
                "that resolves to all of them"
            )
        if self.connections < 0:
            raise InvalidRequest(f"connections is {self.connections}: give 0 or more")
        token = self.token or ""
        if token != token.strip() or not (token.isascii() and token.isprintable()):
            raise InvalidRequest(
                "token (command: --token, GRADEWIRE_TOKEN) contains a line break, a blank at either end, or a "
                "character that is not allowed in tokens: copy the token again, without a line break"
            )
        if token.casefold().startswith("bearer "):
            raise InvalidRequest(
                "token (command: --token, GRADEWIRE_TOKEN) begins with 'Bearer ', which the client adds by itself: "
                "give only what follows"
            )


@dataclass(frozen=True, slots=True)
class RpcMethod(Generic[Q, R]):
    """A method of a gRPC service.

    Attributes:
        service: Full name of the service, such as ``gradewire.v1.Scoring``.
        name: Name of the method, such as ``Score``.
        request_type: Message class of the requests.
        reply_type: Message class of the replies.
        client_streaming: True if a call can have many requests.
        server_streaming: True if a call can have many replies.
    """

    service: str
    name: str
    request_type: type[Q]
    reply_type: type[R]
    client_streaming: bool = False
    server_streaming: bool = False

    @property
    def path(self) -> str:
        """Path in gRPC and HTTP, such as ``/gradewire.v1.Scoring/Score``."""
        return f"/{self.service}/{self.name}"

    @property
    def streams(self) -> bool:
        """True if a call can have many requests or many replies."""
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
    """A way to send messages to a server. A transport neither checks, splits nor retries messages.

    `unary` and `stream` run on the client's event loop, and raise errors from `gradewire.errors`. After a fork, the
    child uses the transport on a different loop, so the transport must connect again.
    """

    async def unary(self, method: RpcMethod[Q, R], request: Q, *, timeout_s: float) -> R:
        """Return the reply to one request."""

    def stream(
        self, method: RpcMethod[Q, R], sent: Q | AsyncIterator[Q], *, timeout_s: float | None = None
    ) -> AsyncGenerator[R]:
        """Send a request, or an iterator of requests if the method is client-streaming, and yield the replies."""

    async def close(self) -> None:
        """Free all resources. The client does not use a closed transport again."""
