"""How requests reach a scorer: the seam between the client and gRPC, an engine in the process, or a test."""

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Protocol

from gradewire_proto.v1 import models_pb2, references_pb2, scoring_pb2


class Transport(Protocol):
    """Carries messages; checks, chunks and repeats nothing that its medium does not repeat by itself.

    All methods run on the event loop of the client that owns the transport. Failures are raised as errors of
    `gradewire.errors`. After a fork the transport is used again in the child, on another loop, and opens itself anew.
    """

    async def score(self, request: scoring_pb2.ScoreRequest, *, timeout_s: float) -> scoring_pb2.ScoreResponse:
        """One batch."""
        ...

    def score_stream(
        self, requests: AsyncIterator[scoring_pb2.ScoreStreamRequest], *, timeout_s: float | None = None
    ) -> AsyncGenerator[scoring_pb2.ScoreStreamResponse]:
        """A stream of items against a stream of results."""
        ...

    def prepare(
        self, request: references_pb2.PrepareRequest, *, timeout_s: float
    ) -> AsyncGenerator[references_pb2.PrepareProgress]:
        """References in, progress out."""
        ...

    async def list_models(self, *, timeout_s: float) -> models_pb2.ListModelsResponse:
        """What there is."""
        ...

    async def close(self) -> None:
        """Lets go of everything; a closed transport is not used again."""
        ...
