"""Gathers calls of one sample each into streams of many, on one event loop."""

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
from gradewire.results import ItemScores, MetricScore, Status

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


@dataclass(slots=True)
class _Waiting:
    item: Item
    until: float
    score: "asyncio.Future[MetricScore]"


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
        self._queue: deque[list[_Waiting]] = deque()
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
        until = loop.time() + deadline_s
        group = [_Waiting(item, until, loop.create_future()) for item in items]
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(until):
                    await self._enqueue(group)
                    await asyncio.wait([waiting.score for waiting in group])
            errors = [waiting.score.exception() for waiting in group if waiting.score.done()]
            for error in errors:
                if error is not None:
                    raise error
            return [waiting.score.result() if waiting.score.done() else _late(deadline_s) for waiting in group]
        finally:
            for waiting in group:
                waiting.score.cancel()

    async def close(self) -> None:
        """Ends what is under way and closes the connection."""
        for task in (*self._streams, *filter(None, [self._dispatcher])):
            task.cancel()
        await self._calls.close()

    async def _enqueue(self, group: list[_Waiting]) -> None:
        while not self._has_room.is_set():
            await self._has_room.wait()
        for start in range(0, len(group), self._how.max_batch):
            self._queue.append(group[start : start + self._how.max_batch])
        self._count(len(group))
        self._wake()

    def _count(self, change: int) -> None:
        self._queued += change
        for event, is_so in (
            (self._has_room, self._queued < self._how.max_waiting),
            (self._is_full, self._queued >= self._how.max_batch),
        ):
            if is_so:
                event.set()
            else:
                event.clear()

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

    def _take(self) -> list[_Waiting]:
        """The next groups that fit into one stream, without items whose callers have gone."""
        batch: list[_Waiting] = []
        while self._queue and (not batch or len(batch) + len(self._queue[0]) <= self._how.max_batch):
            group = self._queue.popleft()
            self._count(-len(group))
            batch += [waiting for waiting in group if not waiting.score.done()]
        return batch

    async def _run(self, batch: list[_Waiting]) -> None:
        task = asyncio.current_task()
        left = len(batch)

        def one_less(score: "asyncio.Future[MetricScore]") -> None:
            nonlocal left
            left -= 1
            # Nobody waits any more: the server need not go on. (A stream that is answered ends by itself.)
            if left == 0 and score.cancelled() and task is not None:
                task.cancel()

        for waiting in batch:
            waiting.score.add_done_callback(one_less)
        deadline_s = max(waiting.until for waiting in batch) - asyncio.get_running_loop().time()
        try:
            # Less than its callers wait, so that they are told what kept it: no server, no time.
            options = self._options(max(_SHARE_OF_DEADLINE * deadline_s, _LEAST_DEADLINE_S))
            async with aclosing(self._calls.stream(_each(batch), options)) as results:
                async for some in results:
                    for item in some:
                        _resolve(batch[item.index].score, item)
        except TransportError as error:
            _fail(batch, error)
        except GradewireError as error:
            for waiting in batch:
                if not waiting.score.done():
                    waiting.score.set_exception(error)


async def _each(batch: Iterable[_Waiting]) -> AsyncIterator[Item]:
    for waiting in batch:
        yield waiting.item


def _resolve(future: "asyncio.Future[MetricScore]", item: ItemScores) -> None:
    if not future.done():
        future.set_result(next(iter(item.scores.values())))


def _fail(batch: Iterable[_Waiting], error: TransportError) -> None:
    for waiting in batch:
        if waiting.score.done():
            continue
        if not error.may_pass and not isinstance(error, ServerFault):
            waiting.score.set_exception(error)  # the address is wrong, which no later call finds better
        else:
            waiting.score.set_result(MetricScore(None, _status_of(error), str(error)))


def _status_of(error: TransportError) -> Status:
    if isinstance(error, DeadlineExceeded):
        return Status.TIMEOUT
    return Status.INTERNAL if isinstance(error, ServerFault) else Status.UNAVAILABLE


def _late(deadline_s: float) -> MetricScore:
    return MetricScore(
        None, Status.TIMEOUT, f"not scored within deadline_s={deadline_s:g}: look at the server, or give it more time"
    )
