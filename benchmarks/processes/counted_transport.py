"""gRPC as the client has it, with a count of the attempts that failed: those that the client repeats are seen too."""

from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator

from typing_extensions import override

from gradewire._transports.grpc_transport import GrpcTransport
from gradewire.errors import GradewireError

# Private: what is public repeats what failed, and says of it only what became of the last attempt.
from gradewire.transport import SCORE, SCORE_STREAM, Endpoint, Q, R, RpcMethod


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
    async def unary(self, method: RpcMethod[Q, R], request: Q, *, timeout_s: float) -> R:
        if method != SCORE:
            return await super().unary(method, request, timeout_s=timeout_s)
        self.attempts += 1
        try:
            return await super().unary(method, request, timeout_s=timeout_s)
        except GradewireError as error:
            self._count(error)
            raise

    @override
    async def stream(
        self, method: RpcMethod[Q, R], sent: Q | AsyncIterator[Q], *, timeout_s: float | None = None
    ) -> AsyncGenerator[R]:
        is_counted = method == SCORE_STREAM
        self.attempts += is_counted
        try:
            async for reply in super().stream(method, sent, timeout_s=timeout_s):
                yield reply
        except GradewireError as error:
            if is_counted:
                self._count(error)
            raise

    def _count(self, error: GradewireError) -> None:
        status = getattr(error.__cause__, "code", None)
        code = type(error).__name__ if status is None else status().name
        self.failed[code] += 1
        self.said.setdefault(code, str(error))
