"""Streams that each take one batch of items after the other."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from typing import ClassVar, Final, Never, Self, TypeAlias

from gradewire._calls.client_calls import ClientCalls
from gradewire._calls.requests import OpenRow
from gradewire._calls.score import ItemMessages, decode_score
from gradewire._calls.stream import RowStream
from gradewire.errors import DeadlineExceeded, GradewireError, ServerFault, TransportError
from gradewire.items import Item, ItemProblem, encode_item
from gradewire.metrics.choice import MetricChoice
from gradewire.results import Limits, MetricScore, Status
from gradewire.transport import Transport
from gradewire_proto.tracing.spans import CLIENT_REWARD_STREAM
from gradewire_proto.v1 import scoring_pb2, types_pb2


@dataclass(slots=True, eq=False)
class Group:
    """Items with what came of each.

    Attributes:
        items: The caller's.
        until: Time of the event loop at which the caller goes on, whatever is there.
        done: Set when the caller may go on.
        scores: By position; None for what has not come.
        left: How many have not.
        context: The caller's variables, its span among them.
    """

    items: Sequence[Item]
    until: float
    done: asyncio.Future[None]
    scores: list[MetricScore | None]
    left: int
    context: Context = field(default_factory=copy_context)

    def set(self, position: int, score: MetricScore) -> None:
        """An item has its score; the last one ends the wait of the caller."""
        self.scores[position] = score
        self.left -= 1
        if self.left == 0:
            self.end()

    def end(self) -> None:
        """The wait of the caller is over: all is there, or its deadline."""
        if not self.done.done():
            self.done.set_result(None)

    def fail(self, error: GradewireError) -> None:
        """The call itself is wrong."""
        if not self.done.done():
            self.done.set_exception(error)


Piece: TypeAlias = tuple[Group, range]
"""A group, and which of its items."""


ScoredItem: TypeAlias = tuple[int, MetricScore]
"""Running number of an item, and its score without what it cost and is made of."""

# Items that are encoded between two turns of the event loop.
_ENCODED_PER_TURN = 64


class SampleRows(ItemMessages[ScoredItem]):
    """Items of one metric, without what several metrics and diagnostics cost for each."""

    span_name: ClassVar[str] = CLIENT_REWARD_STREAM
    omit_diagnostics: ClassVar[bool] = True
    emits_events = False  # items of many callers: each emits its own, and those of items that were late or never sent

    def encode(self, index: int, row: Item, max_bytes: int) -> types_pb2.Item | ItemProblem:
        """Return the message of an item, or why there is none; of texts alone at once."""
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

    def failed(self, index: int, identifier: str, failure: tuple[Status, str]) -> ScoredItem:
        """Return the score of an item that has none."""
        del identifier
        return index, MetricScore(None, *failure)

    def completed(self, index: int, row: OpenRow[types_pb2.Item], result: scoring_pb2.ItemResult) -> ScoredItem:
        """Return the score of an item."""
        del row
        if len(result.results) != 1 or result.results[0].metric_index:
            raise ServerFault(f"the server answered items[{index}] for metrics that were not asked for: report it")
        (label,) = self.choice.labels
        return index, decode_score(index, result.results[0], self.provenance.get(label))


class BatchStream(RowStream[types_pb2.Item, ScoredItem]):
    """A running stream of one metric that is handed its items.

    Args:
        transport: Carries the stream.
        choice: One metric.
        limits: As `RowStream`.
    """

    def __init__(self, transport: Transport, choice: MetricChoice, limits: Callable[[], Awaitable[Limits]]) -> None:
        super().__init__(transport, SampleRows(choice), _NoSource(), limits, stall_s=0)
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
        return not self._open and not self._handed and bool(self._rows.provenance)


def _are_texts(item: Item) -> bool:
    texts = (item.id, item.question, item.prediction, *item.references)
    return type(item.references) in {list, tuple} and all(type(text) is str for text in texts)


class _NoSource:
    """Items are handed over, and never asked for."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Never:
        raise StopAsyncIteration


_OPEN_S: Final = 1.0
"""Time in which it takes batches. Opening one costs as much as scoring some dozen samples; one that stayed open would
hold up a server that wants to stop, and would not find a server that was added."""
_SHARE_OF_DEADLINE: Final = 0.95
_LEAST_DEADLINE_S: Final = 0.01


class OpenStream:
    """Takes one batch after the other, on the event loop that it is made on.

    Args:
        calls: Carries it.
        choice: The one metric.
        changed: Called when it is free for the next batch, and when it has ended.
    """

    def __init__(self, calls: ClientCalls, choice: MetricChoice, changed: "Callable[[OpenStream], None]") -> None:
        self._changed = changed
        self._positions: dict[int, tuple[Group, int]] = {}
        self._first = 0
        self._begun = calls.rows(lambda transport, limits: self._begin(BatchStream(transport, choice, limits)))
        self._task = asyncio.create_task(self._run())
        asyncio.get_running_loop().call_later(_OPEN_S, self._stream.end)

    @property
    def is_free(self) -> bool:
        """Whether it takes a batch now."""
        return not self._positions and self._stream.takes_items

    @property
    def is_busy(self) -> bool:
        """Whether items of its batch are in work."""
        return bool(self._positions)

    @property
    def is_finished(self) -> bool:
        """Whether it takes no more, and all is answered."""
        return self._task.done()

    def take(self, batch: Sequence[Piece]) -> None:
        """Sends a batch and passes each score to its group; call it only while the stream is free."""
        waiting = len(batch)

        def one_less(_done: "asyncio.Future[None]") -> None:
            nonlocal waiting
            waiting -= 1
            # Nobody waits any more: the server need not go on. The next batch may be under way when this is called.
            if waiting == 0 and self._positions and self._first == first:
                self._task.cancel()

        for group, _ in batch:
            group.done.add_done_callback(one_less)
        positions = [(group, position) for group, positions in batch for position in positions]
        deadline_s = max(group.until for group, _ in batch) - asyncio.get_running_loop().time()
        # Less than its callers wait, so that they are told what kept it: no server, no time.
        stall_s = max(_SHARE_OF_DEADLINE * deadline_s, _LEAST_DEADLINE_S)
        self._first = first = self._stream.hand([group.items[position] for group, position in positions], stall_s)
        self._positions = dict(enumerate(positions, first))

    def cancel(self) -> None:
        """Ends it at once."""
        self._task.cancel()

    def _begin(self, stream: BatchStream) -> BatchStream:
        self._stream = stream
        return stream

    async def _run(self) -> None:
        try:
            async with aclosing(self._begun) as results:
                async for some in results:
                    for index, score in some:
                        group, position = self._positions.pop(index)
                        group.set(position, score)
                    if not self._positions:
                        self._changed(self)
        except TransportError as error:
            _fail(self._positions.values(), error)
        except GradewireError as error:
            for group, _ in self._positions.values():
                group.fail(error)
        finally:
            self._stream.end()
            self._positions = {}
            asyncio.get_running_loop().call_soon(self._changed, self)


def _fail(positions: Iterable[tuple[Group, int]], error: TransportError) -> None:
    for group, position in positions:
        if not error.may_pass and not isinstance(error, ServerFault):
            group.fail(error)  # the address is wrong, which no later call finds better
        else:
            group.set(position, MetricScore(None, _status_of(error), str(error)))


def _status_of(error: TransportError) -> Status:
    if isinstance(error, DeadlineExceeded):
        return Status.TIMEOUT
    return Status.INTERNAL if isinstance(error, ServerFault) else Status.UNAVAILABLE
