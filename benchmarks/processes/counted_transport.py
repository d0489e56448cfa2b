"""gRPC as the client has it, with a count of the attempts that failed: those that the client repeats are seen too."""

from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator

from typing_extensions import override

from gradewire._transport.grpc_transport import GrpcTransport
from gradewire.errors import GradewireError

# Private: what is public repeats what failed, and says of it only what became of the last attempt.
from gradewire.transport import Endpoint
from gradewire_proto.v1 import scoring_pb2


class CountedTransport(GrpcTransport):
    """Counts attempts of `score` and `score_stream`.

    Args:
        address: HOST:PORT of the server.

    Attributes:
        attempts: How many were made.
        failed: Those that failed, by gRPC's code.
        said: The first message of each code.
    """

    def __init__(self, address: str) -> None:
        super().__init__(Endpoint(address))
        self.attempts = 0
        self.failed: Counter[str] = Counter()
        self.said: dict[str, str] = {}

    @override
    async def score(self, request: scoring_pb2.ScoreRequest, *, timeout_s: float) -> scoring_pb2.ScoreResponse:
        self.attempts += 1
        try:
            return await super().score(request, timeout_s=timeout_s)
        except GradewireError as error:
            self._count(error)
            raise

    @override
    async def score_stream(
        self, requests: AsyncIterator[scoring_pb2.ScoreStreamRequest], *, timeout_s: float | None = None
    ) -> AsyncGenerator[scoring_pb2.ScoreStreamResponse]:
        self.attempts += 1
        try:
            async for reply in super().score_stream(requests, timeout_s=timeout_s):
                yield reply
        except GradewireError as error:
            self._count(error)
            raise

    def _count(self, error: GradewireError) -> None:
        status = getattr(error.__cause__, "code", None)
        code = type(error).__name__ if status is None else status().name
        self.failed[code] += 1
        self.said.setdefault(code, str(error))
