"""Calls of a few samples each, gathered into batches of many, which travel on streams of one event loop."""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from typing import ClassVar, Final, Never, Self, TypeAlias

from gradewire._calls.client_calls import ClientCalls
from gradewire._calls.requests import OpenRow
from gradewire._calls.score import ItemMessages, decode_score
from gradewire._calls.stream import RowStream
from gradewire.errors import DeadlineExceeded, GradewireError, InvalidRequest, ServerFault, TransportError
from gradewire.items import Item, ItemProblem, encode_item
from gradewire.metrics.choice import MetricChoice
from gradewire.options import check_most
from gradewire.results import Limits, MetricScore, Status
from gradewire.transport import Transport
from gradewire_proto.tracing.spans import CLIENT_REWARD_STREAM
from gradewire_proto.v1 import scoring_pb2, types_pb2

_ENCODED_PER_TURN: Final = 64
"""Items that are encoded between two turns of the event loop."""
_OPEN_S: Final = 1.0
"""Seconds for which a stream takes batches. Opening one costs as much as scoring some dozen samples; one that stayed
open would hold up a server that wants to stop, and would not find a server that was added."""
_SHARE_OF_DEADLINE: Final = 0.95
_LEAST_DEADLINE_S: Final = 0.01

ScoredItem: TypeAlias = tuple[int, MetricScore]
"""The running number of an item, and its score without diagnostics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathering:
    """The bounds by which single calls become batches.

    A server that has nothing to do is sent what there is; while it is at work, calls are gathered.

    Attributes:
        window_s: How long calls are gathered while the server is at work, seconds.
        max_batch: Most samples of one batch; a full batch leaves at once, and a larger group is cut.
        max_streams: Most batches under way at a time, each on a stream of its own. A sample that the server does not
            answer holds its stream until its deadline, so the bound is above what the server needs to be busy.
        max_waiting: Samples that wait to be sent; above it calls wait until there is room.

    Raises:
        InvalidRequest: An argument is wrong; the message names it.
    """

    window_s: float = 0.002
    max_batch: int = 256
    max_streams: int = 64
    max_waiting: int = 8192

    def __post_init__(self) -> None:
        for name in ("max_batch", "max_streams", "max_waiting"):
            check_most(name, getattr(self, name))
        if not 0 <= self.window_s <= 1:
            raise InvalidRequest(f"window_s={self.window_s!r}: give seconds, from 0 to 1")


@dataclass(slots=True, eq=False)
class Group:
    """The items of one call, with their scores, of which `left` have not come.

    Attributes:
        until: Time of the event loop at which the caller goes on, whatever is there.
        done: Set when the caller may go on.
        context: The caller's variables, its span among them.
    """

    items: Sequence[Item]
    until: float
    done: asyncio.Future[None]
    scores: list[MetricScore | None]
    left: int
    context: Context = field(default_factory=copy_context)

    def set(self, position: int, score: MetricScore) -> None:
        """Set the score of an item; the last one ends the wait of the caller."""
        self.scores[position] = score
        self.left -= 1
        if self.left == 0:
            self.end()

    def end(self) -> None:
        """End the wait of the caller: all is there, or its deadline has come."""
        if not self.done.done():
            self.done.set_result(None)

    def fail(self, error: GradewireError) -> None:
        """Fail the call, which itself is wrong."""
        if not self.done.done():
            self.done.set_exception(error)


Piece: TypeAlias = tuple[Group, range]
"""Some of the items of a group, by their positions."""


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
    """A stream of one metric that takes one batch after the other, for about a second.

    `changed` is called when the stream is free for the next batch, and when it has ended.
    """

    def __init__(
        self,
        transport: Transport,
        choice: MetricChoice,
        limits: Callable[[], Awaitable[Limits]],
        changed: "Callable[[BatchStream], None]",
    ) -> None:
        super().__init__(transport, SampleRows(choice), _NoSource(), limits, stall_s=0)
        self._changed = changed
        self._positions: dict[int, tuple[Group, int]] = {}
        self._handed: deque[tuple[int, Item]] = deque()
        self._count = 0
        self._first = 0
        self._no_more = False
        self._has_more = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def is_free(self) -> bool:
        """True if it takes a batch now."""
        return not (self._positions or self._no_more or self._finished or self._error)

    @property
    def is_busy(self) -> bool:
        """True if items of its batch are in work."""
        return bool(self._positions)

    @property
    def is_finished(self) -> bool:
        """True if it takes no more, and all is answered."""
        return self._task is not None and self._task.done()

    def start(self, results: AsyncGenerator[list[ScoredItem]]) -> None:
        """Pass the results of the running stream to their groups, on a task of its own."""
        self._task = asyncio.create_task(self._deliver(results))
        asyncio.get_running_loop().call_later(_OPEN_S, self._end)

    def take(self, batch: Sequence[Piece]) -> None:
        """Send a batch and pass each score to its group; call it only while the stream is free."""
        first = self._first = self._count
        waiting = len(batch)

        def one_less(_done: "asyncio.Future[None]") -> None:
            nonlocal waiting
            waiting -= 1
            # Nobody waits any more: the server need not go on. The next batch may be under way when this is called.
            if waiting == 0 and self._positions and self._first == first:
                self.cancel()

        for group, _ in batch:
            group.done.add_done_callback(one_less)
        positions = [(group, position) for group, positions in batch for position in positions]
        deadline_s = max(group.until for group, _ in batch) - asyncio.get_running_loop().time()
        # Shorter than its callers wait, so that they get the reason: no server, or no time.
        self._stall_s = max(_SHARE_OF_DEADLINE * deadline_s, _LEAST_DEADLINE_S)
        self._positions = dict(enumerate(positions, first))
        self._handed.extend((index, group.items[position]) for index, (group, position) in self._positions.items())
        self._count += len(positions)
        self._has_more.set()

    def cancel(self) -> None:
        """End it at once."""
        if self._task is not None:
            self._task.cancel()

    def _end(self) -> None:
        """Take no more; the stream ends when all is answered."""
        self._no_more = True
        self._has_more.set()

    async def _deliver(self, results: AsyncGenerator[list[ScoredItem]]) -> None:
        try:
            async with aclosing(results):
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
            self._end()
            self._positions = {}
            asyncio.get_running_loop().call_soon(self._changed, self)

    async def _read_rows(self) -> None:
        while True:
            while self._handed:
                index, item = self._handed.popleft()
                await self._add(index, item)
                if index % _ENCODED_PER_TURN == _ENCODED_PER_TURN - 1:
                    await asyncio.sleep(0)
            if self._no_more:
                return
            self._has_more.clear()
            await self._has_more.wait()

    def _is_answered(self) -> bool:
        # Where a stream breaks between two batches, another one is begun with the next.
        return not self._open and not self._handed and bool(self._rows.provenance)


class _NoSource:
    """Items are handed over, and never asked for."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Never:
        raise StopAsyncIteration


def _are_texts(item: Item) -> bool:
    texts = (item.id, item.question, item.prediction, *item.references)
    return type(item.references) in {list, tuple} and all(type(text) is str for text in texts)


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


class Gatherer:
    """A scorer of items of many callers by one metric, on the event loop that it is made on."""

    def __init__(self, calls: ClientCalls, choice: MetricChoice, how: Gathering) -> None:
        self._calls = calls
        self._choice = choice
        self._how = how
        self._queue: deque[Piece] = deque()
        self._queued = 0
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._is_full = asyncio.Event()
        self._streams: set[BatchStream] = set()
        self._dispatcher: asyncio.Task[None] | None = None

    @property
    def label(self) -> str:
        """The label of the metric."""
        (label,) = self._choice.labels
        return label

    async def score(self, items: Sequence[Item], deadline_s: float) -> list[MetricScore]:
        """Return the scores of a group of items, which travel together.

        An item that has none when the deadline is over is TIMEOUT; one that the server could not be asked about is
        UNAVAILABLE, or INTERNAL for a defect. Its neighbours keep their scores.

        Raises:
            GradewireError: The call itself is wrong (metric, token, address), or the client was closed.
        """
        loop = asyncio.get_running_loop()
        group = Group(items, loop.time() + deadline_s, loop.create_future(), [None] * len(items), len(items))
        # Lighter than asyncio.timeout, and every single sample needs one.
        timer = loop.call_at(group.until, group.end)
        try:
            await self._enqueue(group)
            await group.done
        finally:
            timer.cancel()
            group.done.cancel()
        return [_late(deadline_s) if score is None else score for score in group.scores]

    async def close(self) -> None:
        """End what is under way and close the connection."""
        for stream in self._streams:
            stream.cancel()
        if self._dispatcher is not None:
            self._dispatcher.cancel()
        await self._calls.close()

    async def _enqueue(self, group: Group) -> None:
        if not self._has_room.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(group.until):
                    while not self._has_room.is_set():
                        await self._has_room.wait()
        if group.done.done():
            return
        size = len(group.items)
        for start in range(0, size, self._how.max_batch):
            self._queue.append((group, range(start, min(start + self._how.max_batch, size))))
        self._count(size)
        self._wake()

    def _count(self, change: int) -> None:
        self._queued += change
        _set(self._has_room, self._queued < self._how.max_waiting)
        _set(self._is_full, self._queued >= self._how.max_batch)

    def _wake(self) -> None:
        if self._dispatcher is None and self._queue and self._may_send():
            self._dispatcher = asyncio.get_running_loop().create_task(self._dispatch())

    async def _dispatch(self) -> None:
        try:
            # Calls of the same turn of the loop come together even where nothing is at work.
            await asyncio.sleep(0)
            if any(stream.is_busy for stream in self._streams):
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._how.window_s):
                        await self._is_full.wait()
            while self._queue and self._may_send():
                if batch := self._take():
                    self._free_stream(batch).take(batch)
        finally:
            self._dispatcher = None

    def _may_send(self) -> bool:
        return sum(stream.is_busy for stream in self._streams) < self._how.max_streams

    def _free_stream(self, batch: Sequence[Piece]) -> BatchStream:
        """One that is open and has nothing to do, or another one."""
        free = next((stream for stream in self._streams if stream.is_free), None)
        if free is None:
            # Its trace is a part of the first caller's. By itself it would be that of whichever stream ended before.
            group, _ = batch[0]
            free = group.context.run(self._open_stream)
            self._streams.add(free)
        return free

    def _open_stream(self) -> BatchStream:
        stream, results = self._calls.open_stream(
            lambda transport, limits: BatchStream(transport, self._choice, limits, self._stream_changed)
        )
        stream.start(results)
        return stream

    def _stream_changed(self, stream: BatchStream) -> None:
        if stream.is_finished:
            self._streams.discard(stream)
        self._wake()

    def _take(self) -> list[Piece]:
        """Return the next pieces that fit into one batch, without those whose callers have gone."""
        batch: list[Piece] = []
        size = 0
        while self._queue and (not batch or size + len(self._queue[0][1]) <= self._how.max_batch):
            group, positions = self._queue.popleft()
            self._count(-len(positions))
            if not group.done.done():
                batch.append((group, positions))
                size += len(positions)
        return batch


def _set(event: asyncio.Event, wanted: object) -> None:
    if wanted:
        event.set()
    else:
        event.clear()


def _late(deadline_s: float) -> MetricScore:
    return MetricScore(
        None, Status.TIMEOUT, f"not scored within deadline_s={deadline_s:g}: look at the server, or give it more time"
    )
