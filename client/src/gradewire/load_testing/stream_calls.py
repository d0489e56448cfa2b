"""The same calls as messages of a few long streams."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import grpc
import grpc.aio

from gradewire.load_testing.calls import Connections, refused_or_failed, statuses_of
from gradewire.load_testing.counts import OK, Ended
from gradewire_proto.v1 import scoring_pb2

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradewire_proto.v1 import types_pb2

SCORE_STREAM: Final = "/gradewire.v1.Scoring/ScoreStream"


@dataclass(slots=True)
class _Message:
    """A message whose results are not all there."""

    answer: asyncio.Future[Ended]
    incomplete: int
    statuses: Counter[str] = field(default_factory=Counter)


class StreamCaller:
    """Sends items over one stream of each connection; a stream that ends is opened again by the next message.

    Args:
        connections: That are ready.
        metrics: Of every stream.
        deadline_s: Of every message, from when it leaves; the stream has none, and goes on.
    """

    def __init__(self, connections: Connections, metrics: Sequence[types_pb2.MetricSpec], deadline_s: float) -> None:
        self._connections = connections
        config = scoring_pb2.ScoreStreamConfig(metrics=metrics, omit_diagnostics=True)
        self._config = scoring_pb2.ScoreStreamRequest(config=config).SerializeToString()
        self._deadline_s = deadline_s
        self._streams: list[_Stream | None] = [None] * len(connections.channels)
        self._made = 0

    async def call(self, items: Sequence[types_pb2.Item]) -> Ended:
        """Sends one message with these items, and returns how it ended when its last result is there."""
        place = self._made % len(self._streams)
        self._made += 1
        stream = self._streams[place]
        if stream is None or stream.has_ended:
            stream = _Stream(self._connections.channels[place], self._config, self._connections.metadata)
            self._streams[place] = stream
        try:
            async with asyncio.timeout(self._deadline_s):
                return await stream.answer(items)
        except TimeoutError:
            return Ended(grpc.StatusCode.DEADLINE_EXCEEDED.name)

    async def close(self) -> None:
        """Ends streams and connections."""
        for stream in self._streams:
            if stream is not None:
                await stream.close()
        await self._connections.close()


class _Stream:
    def __init__(self, channel: grpc.aio.Channel, config: bytes, metadata: tuple[tuple[str, str], ...] | None) -> None:
        call: grpc.aio.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream(SCORE_STREAM)
        self._call = call(metadata=metadata)
        # A caller may give up at any time, and a cancelled write would end the stream, so a task of its own writes.
        self._unwritten: asyncio.Queue[bytes] = asyncio.Queue()
        self._unwritten.put_nowait(config)
        self._messages: dict[int, _Message] = {}
        self._items = 0
        self._tasks = [asyncio.create_task(self._write()), asyncio.create_task(self._read())]
        self.has_ended = False

    async def answer(self, items: Sequence[types_pb2.Item]) -> Ended:
        """How a message with these items ended."""
        message = _Message(asyncio.get_running_loop().create_future(), len(items))
        for _ in items:
            self._messages[self._items] = message
            self._items += 1
        request = scoring_pb2.ScoreStreamRequest(items=scoring_pb2.ScoreStreamItems(items=items))
        self._unwritten.put_nowait(request.SerializeToString())
        return await message.answer

    async def close(self) -> None:
        self._call.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _write(self) -> None:
        while True:
            message = await self._unwritten.get()
            try:
                await self._call.write(message)
            except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
                return  # the reader learns why

    async def _read(self) -> None:
        ended = Ended(grpc.StatusCode.UNAVAILABLE.name)
        try:
            async for reply in self._call:
                for item in scoring_pb2.ScoreStreamResponse.FromString(reply).items:
                    self._take(item)
        except grpc.aio.AioRpcError as error:
            ended = refused_or_failed(error)
        self.has_ended = True
        writing, _ = self._tasks
        writing.cancel()  # nobody closes a stream that another has taken the place of
        for message in self._messages.values():
            if not message.answer.done():
                message.answer.set_result(ended)

    def _take(self, item: scoring_pb2.ItemResult) -> None:
        message = self._messages[item.index]
        message.statuses += statuses_of([item])
        if item.complete:
            del self._messages[item.index]
            message.incomplete -= 1
            if not message.incomplete and not message.answer.done():
                message.answer.set_result(Ended(OK, statuses=message.statuses))
