"""A transport to what a server runs, over the hash engine and a scripted judge, in the process."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing

from tests.support.engines.hash_engine import HashEngine
from tests.support.servers.handlers import handlers_over

from gradewire_proto.v1 import models_pb2, references_pb2, scoring_pb2
from gradewire_server.domain.items import Failure
from gradewire_server.domain.judge import Generate, Generated
from gradewire_server.settings.limits import Limits


class JudgedTransport:
    """Implements Transport.

    Attributes:
        engine: Its judge says what the test wrote.
        requests: Of Prepare.
        trouble: Told of every message of Prepare before it is handed over; may raise.
    """

    def __init__(self, says: Callable[[Generate], Generated | Failure], *, limits: Limits | None = None) -> None:
        self.engine = HashEngine()
        self.engine.script.on_generate = says
        self.requests: list[references_pb2.PrepareRequest] = []
        self.trouble: Callable[[references_pb2.PrepareProgress], None] = lambda _step: None
        self._handlers = handlers_over(self.engine, limits=limits or Limits())

    async def score(self, request: scoring_pb2.ScoreRequest, *, timeout_s: float) -> scoring_pb2.ScoreResponse:
        return await self._handlers.score(request, deadline_s=timeout_s)

    async def score_stream(
        self, requests: AsyncIterator[scoring_pb2.ScoreStreamRequest], *, timeout_s: float | None = None
    ) -> AsyncGenerator[scoring_pb2.ScoreStreamResponse]:
        async for response in self._handlers.score_stream(requests, deadline_s=timeout_s):
            yield response

    async def prepare(
        self, request: references_pb2.PrepareRequest, *, timeout_s: float
    ) -> AsyncGenerator[references_pb2.PrepareProgress]:
        self.requests.append(request)
        async with aclosing(self._handlers.prepare(request, deadline_s=timeout_s)) as steps:
            async for step in steps:
                self.trouble(step)
                yield references_pb2.PrepareProgress.FromString(step.SerializeToString())  # as from a wire

    async def list_models(self, *, timeout_s: float) -> models_pb2.ListModelsResponse:
        del timeout_s
        return await self._handlers.list_models()

    async def close(self) -> None:
        await self._handlers.close()
