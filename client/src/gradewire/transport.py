"""The protocol of a transport (gRPC, an engine in this process, or a stub in a test), and the address of a server."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextvars import Context
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from gradewire.errors import InvalidRequest
from gradewire_proto.v1 import judging_pb2, models_pb2, references_pb2, scoring_pb2


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """How to encrypt, and which certificates to trust; all files are PEM.

    Attributes:
        root_certificates: Certificate authorities to trust; None: gRPC's own list.
        certificate_chain: The client's own certificate, where the server asks for one.
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
        token: Sent as bearer token with every call.
        tls: How to encrypt; None: no encryption.
        connections: How many to spread calls over; 0: one, and as many as the processes of the server need.

    Raises:
        InvalidRequest: An argument is of a wrong type, or the token has characters that no header holds; gRPC itself
            would say so at the first call only, or never.
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
            ("connections", self.connections, int, "a number, 0 to leave it to the client"),
        )
        for name, value, kind, hint in wanted:
            if not isinstance(value, kind):
                raise InvalidRequest(f"{name} is a {type(value).__name__}: give {hint}")
        if self.connections < 0:
            raise InvalidRequest(f"connections is {self.connections}: give 0 or more")
        token = self.token or ""
        if token != token.strip() or not (token.isascii() and token.isprintable()):
            raise InvalidRequest(
                "token (of the command: --token, GRADEWIRE_TOKEN) has a line end, a blank at an end, or a character "
                "that no token has: give it as the server has it; of a file, without the line end"
            )


Metadata = tuple[tuple[str, str], ...]


class CallTrace(Protocol):
    """The trace of one call of a client's method."""

    @property
    def context(self) -> Context | None:
        """For tasks of the call, whose current span is then the call's; None: as they come."""

    def evaluated(self, rows: Sequence[Any], results: Sequence[Any]) -> None:
        """Emits an event for each result (`ItemScores`, `Comparison`); `rows` are the caller's, at their indices."""

    def noted(self, index: int, row: Any) -> None:
        """Keeps what a row says of the span that it stands for, until its result comes."""

    def answered(self, results: Sequence[Any]) -> None:
        """As `evaluated`, for rows that were noted."""


class RequestTrace(Protocol):
    """The span of one request to a server."""

    def metadata(self, own: Metadata | None) -> Metadata | None:
        """The request's metadata with the trace's."""

    def answered_by(self, code: str) -> None:
        """Notes the gRPC code by which the request ended; OK where it is not called and no error passes."""


class Transport(Protocol):
    """Carries messages; checks, chunks and repeats nothing that its medium does not repeat by itself.

    All methods run on the event loop of the client that owns the transport. Failures are raised as errors of
    `gradewire.errors`. After a fork the transport is used again in the child, on another loop, and opens itself anew.
    """

    async def score(self, request: scoring_pb2.ScoreRequest, *, timeout_s: float) -> scoring_pb2.ScoreResponse:
        """Scores the items of one request."""

    def score_stream(
        self, requests: AsyncIterator[scoring_pb2.ScoreStreamRequest], *, timeout_s: float | None = None
    ) -> AsyncGenerator[scoring_pb2.ScoreStreamResponse]:
        """Sends a stream of items, yields a stream of results."""

    async def compare(self, request: judging_pb2.CompareRequest, *, timeout_s: float) -> judging_pb2.CompareResponse:
        """Compares the pairs of one request."""

    def compare_stream(
        self, requests: AsyncIterator[judging_pb2.CompareStreamRequest], *, timeout_s: float | None = None
    ) -> AsyncGenerator[judging_pb2.CompareStreamResponse]:
        """Sends a stream of pairs, yields a stream of results."""

    def prepare(
        self, request: references_pb2.PrepareRequest, *, timeout_s: float
    ) -> AsyncGenerator[references_pb2.PrepareProgress]:
        """Prepares the references of one request; yields its progress."""

    async def list_models(self, *, timeout_s: float) -> models_pb2.ListModelsResponse:
        """Lists the models, metrics and limits of the server."""

    async def close(self) -> None:
        """Frees all resources; a closed transport is not used again."""
