"""A transport whose server is late with some items, as a judge or an overloaded machine is."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any

from gradewire.transport import Transport
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

    async def score_stream(
        self, requests: AsyncIterator[scoring_pb2.ScoreStreamRequest], *, timeout_s: float | None = None
    ) -> AsyncGenerator[scoring_pb2.ScoreStreamResponse]:
        """As the other transport's, but for the order of the results."""
        self.streams += 1
        sent: list[types_pb2.Item] = []

        async def noted() -> AsyncIterator[scoring_pb2.ScoreStreamRequest]:
            async for request in requests:
                sent.extend(request.items.items)
                self.items.extend(request.items.items)
                yield request

        held = scoring_pb2.ScoreStreamResponse()
        async for reply in self._transport.score_stream(noted(), timeout_s=timeout_s):
            on_time = [item for item in reply.items if not self._is_late(sent[item.index])]
            held.items.extend(item for item in reply.items if self._is_late(sent[item.index]))
            del reply.items[:]
            reply.items.extend(on_time)
            yield reply
        if held.items:
            await asyncio.sleep(self._late_s)
            yield held
