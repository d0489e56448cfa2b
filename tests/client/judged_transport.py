"""A transport to what a server runs, over the hash engine and a scripted judge, in the process."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

from tests.support.engines.hash_engine import HashEngine
from tests.support.servers.handlers import handlers_over

from gradewire.transport import Q, R, RpcMethod
from gradewire_proto.v1 import references_pb2, scoring_pb2
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

    async def unary(self, method: RpcMethod[Q, R], request: Q, *, timeout_s: float) -> R:
        reply: Any = None
        if isinstance(request, scoring_pb2.ScoreRequest):
            reply = await self._handlers.score(request, deadline_s=timeout_s)
        else:
            reply = await self._handlers.list_models()
        assert isinstance(reply, method.reply_type)
        return reply

    async def stream(
        self, method: RpcMethod[Q, R], sent: Q | AsyncIterator[Q], *, timeout_s: float | None = None
    ) -> AsyncGenerator[R]:
        if not isinstance(sent, references_pb2.PrepareRequest):
            requests: Any = sent
            async for response in self._handlers.score_stream(requests, deadline_s=timeout_s):
                assert isinstance(response, method.reply_type)
                yield response
            return
        self.requests.append(sent)
        async with aclosing(self._handlers.prepare(sent, deadline_s=timeout_s)) as steps:
            async for step in steps:
                self.trouble(step)
                yield method.reply_type.FromString(step.SerializeToString())  # as from a wire

    async def close(self) -> None:
        await self._handlers.close()
