"""The protocol of what carries requests: gRPC, an engine in this process, or a stub in a test."""

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Protocol

from gradewire_proto.v1 import judging_pb2, models_pb2, references_pb2, scoring_pb2


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
