"""Gathers calls of one sample each into streams of many, on one event loop.

A stream answers each item when it is done. In a unary call one item that is late would hold up all that travel with it.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from gradewire._calls.arguments import check_most
from gradewire._calls.client_calls import ClientCalls
from gradewire._calls.options import CallOptions
from gradewire.errors import DeadlineExceeded, GradewireError, InvalidRequest, ServerFault, TransportError
from gradewire.items import Item
from gradewire.results import MetricScore, Status

_SHARE_OF_DEADLINE = 0.95
_LEAST_DEADLINE_S = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathering:
    """How single calls become batches.

    A server that has nothing to do is sent what there is; while it is at work, calls are gathered.

    Attributes:
        window_s: How long calls are gathered while the server is at work, seconds.
        max_batch: Most samples of one stream; a full batch leaves at once, and a larger group is cut.
        max_streams: Most streams at a time. A sample that the server does not answer holds its stream until its
            deadline, so the bound is above what the server needs to be busy.
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
class _Group:
    """Items of one caller, with what came of each."""

    items: Sequence[Item]
    until: float
    done: "asyncio.Future[None]"
    scores: list[MetricScore | None]
    left: int

    def set(self, position: int, score: MetricScore) -> None:
        """An item has its score; the last one ends the wait of the caller."""
        self.scores[position] = score
        self.left -= 1
        if self.left == 0 and not self.done.done():
            self.done.set_result(None)

    def fail(self, error: GradewireError) -> None:
        """The call itself is wrong."""
        if not self.done.done():
            self.done.set_exception(error)


# A group and which of its items.
_Piece = tuple[_Group, range]


class Gatherer:
    """Scores items of many callers, on the event loop that it is made on.

    Args:
        calls: Carries the streams.
        options: The one metric.
        how: When batches leave.
    """

    def __init__(self, calls: ClientCalls, options: Callable[[float], CallOptions], how: Gathering) -> None:
        self._calls = calls
        self._options = options
        self._how = how
        self._queue: deque[_Piece] = deque()
        self._queued = 0
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._is_full = asyncio.Event()
        self._streams: set[asyncio.Task[None]] = set()
        self._dispatcher: asyncio.Task[None] | None = None

    async def score(self, items: Sequence[Item], deadline_s: float) -> list[MetricScore]:
        """The scores of a group of items, which travel together.

        An item that has none when the deadline is over is TIMEOUT; one that the server could not be asked about is
        UNAVAILABLE, or INTERNAL for a defect. Its neighbours keep their scores.

        Raises:
            GradewireError: The call itself is wrong (metric, token, address), or the client was closed.
        """
        loop = asyncio.get_running_loop()
        group = _Group(items, loop.time() + deadline_s, loop.create_future(), [None] * len(items), len(items))
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(group.until):
                    await self._enqueue(group)
                    await group.done
        finally:
            group.done.cancel()
        return [_late(deadline_s) if score is None else score for score in group.scores]

    async def close(self) -> None:
        """Ends what is under way and closes the connection."""
        for task in (*self._streams, *filter(None, [self._dispatcher])):
            task.cancel()
        await self._calls.close()

    async def _enqueue(self, group: _Group) -> None:
        while not self._has_room.is_set():
            await self._has_room.wait()
        size = len(group.items)
        for start in range(0, size, self._how.max_batch):
            self._queue.append((group, range(start, min(start + self._how.max_batch, size))))
        self._count(size)
        self._wake()

    def _count(self, change: int) -> None:
        self._queued += change
        if (self._queued < self._how.max_waiting) != self._has_room.is_set():
            _flip(self._has_room)
        if (self._queued >= self._how.max_batch) != self._is_full.is_set():
            _flip(self._is_full)

    def _wake(self) -> None:
        if self._dispatcher is None and self._queue and len(self._streams) < self._how.max_streams:
            self._dispatcher = asyncio.get_running_loop().create_task(self._dispatch())

    async def _dispatch(self) -> None:
        try:
            # Calls of the same turn of the loop come together even where nothing is at work.
            await asyncio.sleep(0)
            if self._streams:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._how.window_s):
                        await self._is_full.wait()
            while self._queue and len(self._streams) < self._how.max_streams:
                if batch := self._take():
                    stream = asyncio.create_task(self._run(batch))
                    self._streams.add(stream)
                    stream.add_done_callback(self._ended)
        finally:
            self._dispatcher = None

    def _ended(self, stream: "asyncio.Task[None]") -> None:
        self._streams.discard(stream)
        self._wake()

    def _take(self) -> list[_Piece]:
        """The next pieces that fit into one stream, without those whose callers have gone."""
        batch: list[_Piece] = []
        size = 0
        while self._queue and (not batch or size + len(self._queue[0][1]) <= self._how.max_batch):
            group, positions = self._queue.popleft()
            self._count(-len(positions))
            if not group.done.done():
                batch.append((group, positions))
                size += len(positions)
        return batch

    async def _run(self, batch: list[_Piece]) -> None:
        task = asyncio.current_task()
        waiting = len(batch)

        def one_less(done: "asyncio.Future[None]") -> None:
            nonlocal waiting
            waiting -= 1
            # Nobody waits any more: the server need not go on. (A stream that is answered ends by itself.)
            if waiting == 0 and done.cancelled() and task is not None:
                task.cancel()

        for group, _ in batch:
            group.done.add_done_callback(one_less)
        places = [(group, position) for group, positions in batch for position in positions]
        deadline_s = max(group.until for group, _ in batch) - asyncio.get_running_loop().time()
        # Less than its callers wait, so that they are told what kept it: no server, no time.
        options = self._options(max(_SHARE_OF_DEADLINE * deadline_s, _LEAST_DEADLINE_S))
        try:
            async with aclosing(self._calls.stream(_each(places), options)) as results:
                async for some in results:
                    for item in some:
                        group, position = places[item.index]
                        group.set(position, next(iter(item.scores.values())))
        except TransportError as error:
            _fail(places, error)
        except GradewireError as error:
            for group, _ in batch:
                group.fail(error)


def _flip(event: asyncio.Event) -> None:
    if event.is_set():
        event.clear()
    else:
        event.set()


async def _each(places: Iterable[tuple[_Group, int]]) -> AsyncIterator[Item]:
    for group, position in places:
        yield group.items[position]


def _fail(places: Iterable[tuple[_Group, int]], error: TransportError) -> None:
    for group, position in places:
        if not error.may_pass and not isinstance(error, ServerFault):
            group.fail(error)  # the address is wrong, which no later call finds better
        elif group.scores[position] is None:
            group.set(position, MetricScore(None, _status_of(error), str(error)))


def _status_of(error: TransportError) -> Status:
    if isinstance(error, DeadlineExceeded):
        return Status.TIMEOUT
    return Status.INTERNAL if isinstance(error, ServerFault) else Status.UNAVAILABLE


def _late(deadline_s: float) -> MetricScore:
    return MetricScore(
        None, Status.TIMEOUT, f"not scored within deadline_s={deadline_s:g}: look at the server, or give it more time"
    )
