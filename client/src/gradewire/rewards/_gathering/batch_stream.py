"""The messages of a stream that takes one batch of items after the other; of each item one score is wanted."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from typing import Never, Self, TypeAlias

from gradewire._calls.decode import decode_call_provenance, decode_score
from gradewire._calls.row_stream import Connection, RowStream
from gradewire.errors import ServerFault
from gradewire.items import Item, ItemProblem, encode_item
from gradewire.metric_types.choice import MetricChoice
from gradewire.model_list import Limits
from gradewire.results import MetricScore, Provenance, Status
from gradewire.transport import Transport
from gradewire_proto.conventions.telemetry_names import CLIENT_REWARD_STREAM
from gradewire_proto.v1 import scoring_pb2, types_pb2

ScoredItem: TypeAlias = tuple[int, MetricScore]
"""Running number of an item, and its score without what it cost and is made of."""

# Items that are encoded between two turns of the event loop.
_ENCODED_PER_TURN = 64


class BatchStream(RowStream[types_pb2.Item, ScoredItem, MetricScore]):
    """A running stream of one metric; a `Stream` without what a slow source and several metrics cost for each item.

    Args:
        transport: Carries it.
        choice: One metric.
        limits: As `RowStream`.
    """

    def __init__(self, transport: Transport, choice: MetricChoice, limits: Callable[[], Awaitable[Limits]]) -> None:
        super().__init__(_NoSource(), limits, stall_s=0, noun="item")
        self._transport = transport
        self._choice = choice
        self._provenance: dict[str, Provenance] = {}
        self._handed: deque[tuple[int, Item]] = deque()
        self._count = 0
        self._no_more = False
        self._changed = asyncio.Event()

    @property
    def takes_items(self) -> bool:
        """Whether it has not ended, and was not told to."""
        return not (self._no_more or self._finished or self._error)

    def hand(self, items: Sequence[Item], stall_s: float) -> int:
        """Takes the next batch, once the one before is answered; returns the running number of its first item.

        Args:
            items: All of it.
            stall_s: Longest wait for a result while items of it are in work, seconds.
        """
        first = self._count
        self._handed.extend(enumerate(items, first))
        self._count += len(items)
        self._stall_s = stall_s
        self._changed.set()
        return first

    def end(self) -> None:
        """Takes no more; the stream ends when all is answered."""
        self._no_more = True
        self._changed.set()

    @property
    def _span_name(self) -> str:
        return CLIENT_REWARD_STREAM

    def _told(self, done: Sequence[ScoredItem]) -> tuple[()]:
        del done  # items of many callers: each emits its own, and those of items that were late or never sent
        return ()

    @property
    def _accepted(self) -> bool:
        return bool(self._provenance)

    async def _read_rows(self) -> None:
        while True:
            while self._handed:
                index, item = self._handed.popleft()
                await self._add(index, item)
                if index % _ENCODED_PER_TURN == _ENCODED_PER_TURN - 1:
                    await asyncio.sleep(0)
            if self._no_more:
                return
            self._changed.clear()
            await self._changed.wait()

    def _is_answered(self) -> bool:
        # Where a stream breaks between two batches, another one is begun with the next.
        return not self._open and not self._handed and self._accepted

    def _encode(self, index: int, row: Item, max_bytes: int) -> types_pb2.Item | ItemProblem:
        if _are_texts(row):
            try:
                message = types_pb2.Item(
                    id=row.id, question=row.question, references=row.references, prediction=row.prediction
                )
            except ValueError:
                message = None  # half of a pair, which the other way names
            if message is not None and message.ByteSize() <= max_bytes:
                return message
        return encode_item(index, row, max_bytes=max_bytes)

    def _failed(self, index: int, identifier: str, failure: tuple[Status, str]) -> ScoredItem:
        del identifier
        status, message = failure
        return index, MetricScore(None, status, message)

    def _config(self) -> scoring_pb2.ScoreStreamRequest:
        choice = self._choice
        config = scoring_pb2.ScoreStreamConfig(
            metrics=choice.specs, reference_set=choice.reference_set, omit_diagnostics=True
        )
        return scoring_pb2.ScoreStreamRequest(config=config)

    def _rows(self, messages: Sequence[types_pb2.Item]) -> scoring_pb2.ScoreStreamRequest:
        return scoring_pb2.ScoreStreamRequest(items=scoring_pb2.ScoreStreamItems(items=messages))

    def _start(
        self, requests: AsyncIterator[scoring_pb2.ScoreStreamRequest]
    ) -> AsyncGenerator[scoring_pb2.ScoreStreamResponse]:
        return self._transport.score_stream(requests)

    def _read(self, reply: scoring_pb2.ScoreStreamResponse, connection: Connection) -> bool:
        if reply.provenance:
            self._provenance = decode_call_provenance(self._choice, reply.provenance, self._provenance)
        (label,) = self._choice.labels
        for item in reply.items:
            index, _ = self.waiting_for(connection, item.index)
            if len(item.results) != 1 or item.results[0].metric_index:
                raise ServerFault(f"the server answered items[{index}] for metrics that were not asked for: report it")
            self.answered(index, (index, decode_score(index, item.results[0], self._provenance.get(label))))
        return bool(reply.items)


def _are_texts(item: Item) -> bool:
    texts = (item.id, item.question, item.prediction, *item.references)
    return type(item.references) in {list, tuple} and all(type(text) is str for text in texts)


class _NoSource:
    """Items are handed over, and never asked for."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Never:
        raise StopAsyncIteration
