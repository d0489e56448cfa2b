"""Calls of one sample each, gathered into batches of many on one event loop."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from gradewire._calls.client_calls import ClientCalls
from gradewire.errors import InvalidRequest
from gradewire.items import Item
from gradewire.metrics.choice import MetricChoice
from gradewire.options import check_most
from gradewire.results import MetricScore, Status
from gradewire.rewards.batch_streams import Group, OpenStream, Piece


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathering:
    """How single calls become batches.

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


class Gatherer:
    """Scores items of many callers, on the event loop that it is made on.

    Args:
        calls: Carries the streams.
        choice: The one metric.
        how: When batches leave.
    """

    def __init__(self, calls: ClientCalls, choice: MetricChoice, how: Gathering) -> None:
        self._calls = calls
        self._choice = choice
        self._how = how
        self._queue: deque[Piece] = deque()
        self._queued = 0
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._is_full = asyncio.Event()
        self._streams: set[OpenStream] = set()
        self._dispatcher: asyncio.Task[None] | None = None

    @property
    def label(self) -> str:
        """Of the metric."""
        (label,) = self._choice.labels
        return label

    async def score(self, items: Sequence[Item], deadline_s: float) -> list[MetricScore]:
        """The scores of a group of items, which travel together.

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
        """Ends what is under way and closes the connection."""
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
        if (self._queued < self._how.max_waiting) != self._has_room.is_set():
            _flip(self._has_room)
        if (self._queued >= self._how.max_batch) != self._is_full.is_set():
            _flip(self._is_full)

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

    def _free_stream(self, batch: Sequence[Piece]) -> OpenStream:
        """One that is open and has nothing to do, or another one."""
        free = next((stream for stream in self._streams if stream.is_free), None)
        if free is None:
            # Its trace is a part of the first caller's. By itself it would be that of whichever stream ended before.
            group, _ = batch[0]
            free = group.context.run(OpenStream, self._calls, self._choice, self._stream_changed)
            self._streams.add(free)
        return free

    def _stream_changed(self, stream: OpenStream) -> None:
        if stream.is_finished:
            self._streams.discard(stream)
        self._wake()

    def _take(self) -> list[Piece]:
        """The next pieces that fit into one batch, without those whose callers have gone."""
        batch: list[Piece] = []
        size = 0
        while self._queue and (not batch or size + len(self._queue[0][1]) <= self._how.max_batch):
            group, positions = self._queue.popleft()
            self._count(-len(positions))
            if not group.done.done():
                batch.append((group, positions))
                size += len(positions)
        return batch


def _flip(event: asyncio.Event) -> None:
    if event.is_set():
        event.clear()
    else:
        event.set()


def _late(deadline_s: float) -> MetricScore:
    return MetricScore(
        None, Status.TIMEOUT, f"not scored within deadline_s={deadline_s:g}: look at the server, or give it more time"
    )
