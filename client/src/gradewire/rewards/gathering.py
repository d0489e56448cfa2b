"""Gather many small calls into large batches, and send the batches to the server on streams."""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from contextvars import Context, copy_context
from dataclasses import dataclass, field, replace
from math import nan
from typing import ClassVar, Final, Never, Self, TypeAlias

from gradewire._calls.client_calls import ClientCalls
from gradewire._calls.requests import OpenRow
from gradewire._calls.score import ItemMessages, decode_score, decode_warnings
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
_OPEN_S: Final = 1.0
"""Seconds for which a stream accepts batches. Opening a stream costs as much as scoring a few dozen samples, but an
open stream keeps a server from stopping, and never reaches a new server.
"""
_SHARE_OF_DEADLINE: Final = 0.95
_LEAST_DEADLINE_S: Final = 0.01

ScoredItem: TypeAlias = tuple[int, MetricScore]
"""An item's index in its stream, and the item's score without diagnostics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathering:
    """Limits for gathering calls into batches.

    If no batch is in progress, waiting samples are sent at once.

    Attributes:
        window_s: Maximum number of seconds to gather samples while batches are in progress.
        max_batch: Maximum number of samples in a batch. A full batch is sent at once, and a larger call is split.
        max_streams: Maximum number of batches in flight, each on a separate stream.
        max_waiting: Maximum number of waiting samples. At this number, new calls wait until samples are sent.

    Raises:
        InvalidRequest: An argument is wrong.
    """

    window_s: float = 0.002
    max_batch: int = 256
    max_streams: int = 64
    max_waiting: int = 8192

    def __post_init__(self) -> None:
        for name in ("max_batch", "max_streams", "max_waiting"):
            check_most(name, getattr(self, name))
        if not 0 <= self.window_s <= 1:
            raise InvalidRequest(f"window_s={self.window_s!r}: give a number of seconds from 0 to 1")


@dataclass(slots=True, eq=False)
class Group:
    """The items of one call, and their scores.

    Attributes:
        until: Event loop time at which the caller stops waiting.
        done: A future that is set when the caller no longer needs to wait.
        left: Number of items without a score.
        context: The caller's context variables, with the current span.
    """

    items: Sequence[Item]
    until: float
    done: asyncio.Future[None]
    scores: list[MetricScore | None]
    left: int
    context: Context = field(default_factory=copy_context)

    def set(self, position: int, score: MetricScore) -> None:
        """Set an item's score. The last score ends the caller's wait."""
        self.scores[position] = score
        self.left -= 1
        if self.left == 0:
            self.end()

    def end(self) -> None:
        """End the caller's wait, because all items have scores or the deadline has passed."""
        if not self.done.done():
            self.done.set_result(None)

    def fail(self, error: GradewireError) -> None:
        """End the caller's wait with an error."""
        if not self.done.done():
            self.done.set_exception(error)


Piece: TypeAlias = tuple[Group, range]
"""A group, and the positions of some of its items."""


class SampleRows(ItemMessages[ScoredItem]):
    """The items of a call. An item's score is the lowest of its metrics' scores; see `lowest_score`.

    Results are cheap to decode, because they have no diagnostics.
    """

    span_name: ClassVar[str] = CLIENT_REWARD_STREAM
    omit_diagnostics: ClassVar[bool] = True
    emits_events = False  # callers emit events for all their items, even for late and unsent items

    def encode(self, index: int, row: Item, max_bytes: int) -> types_pb2.Item | ItemProblem:
        """Return an item's message, or the reason why the item cannot be sent. Items of strings take a fast path."""
        if _are_texts(row):
            try:
                message = types_pb2.Item(
                    id=row.id, question=row.question, references=row.references, prediction=row.prediction
                )
            except ValueError:
                message = None  # a lone surrogate, which `encode_item` reports
            if message is not None and message.ByteSize() <= max_bytes:
                return message
        return encode_item(index, row, max_bytes=max_bytes)

    def failed(self, index: int, identifier: str, failure: tuple[Status, str]) -> ScoredItem:
        """Return the result for a failed item."""
        del identifier
        return index, MetricScore(None, *failure)

    def completed(self, index: int, row: OpenRow[types_pb2.Item], result: scoring_pb2.ItemResult) -> ScoredItem | None:
        """Return an item's score once the results of all metrics have arrived."""
        labels = self.choice.labels
        for each in result.results:
            if each.metric_index >= len(labels):
                raise ServerFault(f"the server answered items[{index}] for the wrong metrics: report this defect")
            label = labels[each.metric_index]
            score = decode_score(index, each, self.provenance.get(label))
            row.parts[label] = replace(score, warnings=decode_warnings(each.warnings)) if each.warnings else score
        if not result.complete:
            return None
        if missing := [label for label in labels if label not in row.parts]:
            raise ServerFault(f"the server left out {', '.join(missing)} of items[{index}]: report this defect")
        return index, lowest_score([row.parts[label] for label in labels])


def lowest_score(scores: Sequence[MetricScore]) -> MetricScore:
    """Return the score of the metric that gives the least. Its provenance names all metrics.

    The first metric's status comes first. A further metric that cannot compare the item (INVALID_INPUT, such as
    `value_match` with references without values) does not count; any other failure is returned.
    """
    first, *others = scores
    if first.status is not Status.OK or not others:
        return first
    counted = [score for score in others if score.status is not Status.INVALID_INPUT]
    if failed := [score for score in counted if score.status is not Status.OK]:
        return failed[0]
    lowest = min((first, *counted), key=lambda score: nan if score.score is None else score.score)
    lines = [score.provenance.line for score in scores if score.provenance is not None]
    provenance = first.provenance and replace(first.provenance, line=",".join(lines))
    return replace(lowest, provenance=provenance)


class BatchStream(RowStream[types_pb2.Item, ScoredItem]):
    """A stream that lasts about a second, and scores one batch after the other.

    The stream calls `changed` when it can take a batch, and when it ends.
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
        """True if the stream can take a batch now."""
        return not (self._positions or self._no_more or self._finished or self._error)

    @property
    def is_busy(self) -> bool:
        """True if the batch has items without a score."""
        return bool(self._positions)

    @property
    def is_finished(self) -> bool:
        """True if the stream has ended."""
        return self._task is not None and self._task.done()

    def start(self, results: AsyncGenerator[list[ScoredItem]]) -> None:
        """Start a task that passes the stream's results to the items' groups."""
        self._task = asyncio.create_task(self._deliver(results))
        asyncio.get_running_loop().call_later(_OPEN_S, self._end)

    def take(self, batch: Sequence[Piece]) -> None:
        """Send a batch. Call this method only while the stream is free."""
        first = self._first = self._count
        waiting = len(batch)

        def on_done(_done: "asyncio.Future[None]") -> None:
            nonlocal waiting
            waiting -= 1
            # If no caller waits for this batch any more, stop the server's work, unless a later batch has started.
            if waiting == 0 and self._positions and self._first == first:
                self.cancel()

        for group, _ in batch:
            group.done.add_done_callback(on_done)
        positions = [(group, position) for group, positions in batch for position in positions]
        deadline_s = max(group.until for group, _ in batch) - asyncio.get_running_loop().time()
        # End shortly before the callers' deadlines, so that callers learn the reason (no server, or too little time).
        self._stall_s = max(_SHARE_OF_DEADLINE * deadline_s, _LEAST_DEADLINE_S)
        self._positions = dict(enumerate(positions, first))
        self._handed.extend((index, group.items[position]) for index, (group, position) in self._positions.items())
        self._count += len(positions)
        self._has_more.set()

    def cancel(self) -> None:
        """End the stream at once."""
        if self._task is not None:
            self._task.cancel()

    def _end(self) -> None:
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
        # A stream that breaks between two batches need not resume, because the next batch opens a new stream.
        return not self._open and not self._handed and bool(self._rows.provenance)


class _NoSource:
    """An empty iterable, because `BatchStream.take` supplies the items."""

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
            group.fail(error)  # the address is wrong, so a retry cannot help
        else:
            group.set(position, MetricScore(None, failure_status(error), str(error)))


def failure_status(error: TransportError) -> Status:
    """Return the status of samples for which the server gave no answer."""
    if isinstance(error, DeadlineExceeded):
        return Status.TIMEOUT
    return Status.INTERNAL if isinstance(error, ServerFault) else Status.UNAVAILABLE


class Gatherer:
    """A scorer that gathers the items of many callers, for one choice of metrics and one event loop."""

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
        """Labels of the metrics, with commas between them."""
        return ",".join(self._choice.labels)

    async def score(self, items: Sequence[Item], deadline_s: float) -> list[MetricScore]:
        """Return the items' scores. The items are sent together.

        An item without a score at the deadline gets the status TIMEOUT. If no server can be reached, the status is
        UNAVAILABLE; if the server has a defect, the status is INTERNAL.

        Raises:
            GradewireError: The call itself is wrong (metric, token, address), or the client was closed.
        """
        loop = asyncio.get_running_loop()
        group = Group(items, loop.time() + deadline_s, loop.create_future(), [None] * len(items), len(items))
        # A timer costs less than asyncio.timeout, and every call needs one.
        timer = loop.call_at(group.until, group.end)
        try:
            await self._enqueue(group)
            await group.done
        finally:
            timer.cancel()
            group.done.cancel()
        return [_late(deadline_s) if score is None else score for score in group.scores]

    async def close(self) -> None:
        """Cancel the running streams and close the connection."""
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
            # Gather calls made in the same turn of the event loop, even if the server is idle.
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
        free = next((stream for stream in self._streams if stream.is_free), None)
        if free is None:
            # Trace the stream within the first caller's span. The current span may belong to an unrelated call.
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
        """Return the next pieces that fit into one batch. Skip the pieces of callers that stopped waiting."""
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
        None, Status.TIMEOUT, f"no score within deadline_s={deadline_s:g}: check the server, or use a larger deadline"
    )
