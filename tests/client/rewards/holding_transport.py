"""A transport whose server is late with some items, as a judge or an overloaded machine is."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any

from gradewire.transport import SCORE_STREAM, Q, R, RpcMethod, Transport
from gradewire_proto.v1 import scoring_pb2, types_pb2


class HoldingTransport:
    """Carries everything to another transport and back; the results of some items come `late_s` after the others.

    Args:
        transport: Reaches the server.
        is_late: Which items.
        late_s: How late.
    """

    def __init__(self, transport: Transport, is_late: Callable[[types_pb2.Item], bool], late_s: float) -> None:
        self._transport = transport
        self._is_late = is_late
        self._late_s = late_s
        self.streams = 0
        self.items: list[types_pb2.Item] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    async def stream(
        self, method: RpcMethod[Q, R], sent: Q | AsyncIterator[Q], *, timeout_s: float | None = None
    ) -> AsyncGenerator[R]:
        """Yield the other transport's replies, but for the order of the results."""
        if method != SCORE_STREAM:
            async for reply in self._transport.stream(method, sent, timeout_s=timeout_s):
                yield reply
            return
        requests: Any = sent
        self.streams += 1
        items: list[types_pb2.Item] = []

        async def noted() -> AsyncIterator[Any]:
            async for request in requests:
                items.extend(request.items.items)
                self.items.extend(request.items.items)
                yield request

        held: Any = scoring_pb2.ScoreStreamResponse()
        async for reply in self._transport.stream(method, noted(), timeout_s=timeout_s):
            assert isinstance(reply, scoring_pb2.ScoreStreamResponse)
            on_time = [item for item in reply.items if not self._is_late(items[item.index])]
            held.items.extend(item for item in reply.items if self._is_late(items[item.index]))
            del reply.items[:]
            reply.items.extend(on_time)
            yield reply
        if held.items:
            await asyncio.sleep(self._late_s)
            yield held
