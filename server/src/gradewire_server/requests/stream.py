"""Handle ScoreStream and CompareStream."""

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from gradewire_server.domain.caller import LOCAL, Caller
from gradewire_server.domain.items import Failure, Item, MetricResult, ScoredResult
from gradewire_server.requests.admission import work_of
from gradewire_server.requests.context import NamedSet, RequestContext
from gradewire_server.requests.convert import CallForm, Row, read_in_turns, read_row, reply_id
from gradewire_server.requests.errors import DeadlineExceededError, InvalidRequestError
from gradewire_server.requests.score import ITEMS_PER_SLICE
from gradewire_server.requests.turns import Permits

if TYPE_CHECKING:
    from gradewire_server.requests.plan import MetricPlan
    from gradewire_server.scoring import MetricRequest


_MAX_REPLY_RESULTS: Final = 1024
_MAX_REPLY_CHARS: Final = 1 << 20


_BYTES_PER_PLACE: Final = 512
"""An item takes one more place in the stream window for every 512 bytes."""
_MAX_PLACES: Final = 10


@dataclass(slots=True)
class OpenItem:
    """An unfinished item.

    Attributes:
        missing: The number of missing results.
        places: The number of places in the stream window.
    """

    index: int
    id: str
    missing: int
    places: int = 1


class Outbox:
    """A queue that groups results into reply messages."""

    def __init__(self, form: CallForm) -> None:
        self._form = form
        self._replies: deque[_Reply] = deque()
        self._ready = asyncio.Event()
        self._error: BaseException | None = None
        self._finished = False

    def put(self, item: OpenItem, metric_index: int, scored: ScoredResult, *, diagnostics: bool) -> None:
        """Add a result, with cache hits and timing if `diagnostics` is True."""
        if not self._replies or self._replies[-1].full:
            self._replies.append(_Reply(self._form))
        self._replies[-1].put(item, metric_index, scored, diagnostics=diagnostics)
        self._ready.set()

    def finish(self, reading: asyncio.Task[None]) -> None:
        """Mark the queue as complete. If the task `reading` failed, pass on the error."""
        if not reading.cancelled() and (error := reading.exception()) is not None:
            self.fail(error)
        self._finished = True
        self._ready.set()

    def fail(self, error: BaseException) -> None:
        """Make `get` raise `error`, unless there is an earlier error."""
        self._error = self._error or error
        self._ready.set()

    async def get(self) -> tuple[Any, int] | None:
        """Return the next message and the number of places it frees, or None at the end. Raise a pending error."""
        await self._ready.wait()
        if self._error is not None:
            raise self._error
        if not self._replies:
            return None
        reply = self._replies.popleft()
        if not self._replies and not self._finished:
            self._ready.clear()
        return reply.message, reply.completed


class _Reply:
    def __init__(self, form: CallForm) -> None:
        self._form = form
        self.message = form.streamed()
        self.completed = 0
        self._results = 0
        self._chars = 0
        self._by_index: dict[int, Any] = {}

    @property
    def full(self) -> bool:
        return self._results >= _MAX_REPLY_RESULTS or self._chars >= _MAX_REPLY_CHARS

    def put(self, item: OpenItem, metric_index: int, scored: ScoredResult, *, diagnostics: bool) -> None:
        target = self._by_index.get(item.index)
        if target is None:
            target = self._by_index[item.index] = self._form.add_row(self.message, item.index, item.id)
            self._chars += len(item.id)
        self._form.fill(self._form.add_result(target), metric_index, scored, diagnostics=diagnostics)
        self._results += 1
        self._chars += len(scored.result.message) + self._form.text_characters(scored)
        item.missing -= 1
        if item.missing == 0:
            self._form.complete(target)
            self.completed += item.places


_Slice: TypeAlias = Sequence[tuple[Row, int]]
"""The items or pairs to score together, each with its number of places in the stream window."""


def _slices(messages: Sequence[Row]) -> Iterator[_Slice]:
    part: list[tuple[Row, int]] = []
    taken = 0
    for message in messages:
        places = min(1 + _text_bytes(message) // _BYTES_PER_PLACE, _MAX_PLACES)
        if part and taken + places > ITEMS_PER_SLICE:
            yield part
            part, taken = [], 0
        part.append((message, places))
        taken += places
    if part:
        yield part


def _text_bytes(message: Row) -> int:
    return message.ByteSize() - sum(image.ByteSize() for image in message.images)


class ScoreStream:
    """A handler for a single stream. Call `run` once."""

    def __init__(self, context: RequestContext, form: CallForm, *, deadline_s: float | None, caller: Caller) -> None:
        self._form = form
        self._context = context
        self._caller = caller
        self._ends_s = None if deadline_s is None else time.monotonic() + deadline_s
        self._window = Permits(context.limits.stream_window_items, "items in a stream")
        self._out = Outbox(form)
        self._plans: list[MetricPlan] = []
        self._requests: list[MetricRequest | Failure] = []
        self._metric_names: list[str] = []
        self._set = NamedSet("")
        self._diagnostics = True
        self._index = 0
        self._message_index = 0
        self._slices: set[asyncio.Task[None]] = set()

    async def run(self, requests: AsyncIterator[Any]) -> AsyncGenerator[Any]:
        """Yield replies. If reading or scoring fails, raise the first error."""
        config = await anext(requests, None)
        if config is None:
            return
        head = await self._configure(config)
        del config  # free the message's memory
        yield head
        reading = asyncio.create_task(self._read(requests))
        reading.add_done_callback(self._out.finish)
        try:
            while (ready := await self._next()) is not None:
                reply, completed = ready
                yield reply
                self._window.release(completed)
        finally:
            for task in (reading, *self._slices):
                task.cancel()
            await asyncio.gather(reading, *self._slices, return_exceptions=True)

    async def _next(self) -> tuple[Any, int] | None:
        try:
            async with asyncio.timeout_at(self._ends_s):  # the event loop also uses time.monotonic()
                return await self._out.get()
        except TimeoutError as error:
            raise DeadlineExceededError("the stream did not finish before its deadline") from error

    async def _configure(self, first: Any) -> Any:
        if first.WhichOneof("kind") != "config":
            raise InvalidRequestError("config", "must be set in the first message of a stream")
        plans = self._plans = await self._context.plan_call(first.config, "config.")
        written = getattr(first.config, "reference_set", "")
        named = self._set = await self._context.find_set(written, plans, "config.reference_set")
        self._requests = [plan.streamed() for plan in plans]
        self._metric_names = [plan.provenance.name for plan in plans]
        self._diagnostics = not first.config.omit_diagnostics
        provenance = [plan.provenance_in(named.name, named.corpus_digest) for plan in plans]
        return self._form.streamed(provenance)

    async def _read(self, requests: AsyncIterator[Any]) -> None:
        async for message in requests:
            await self._take(message)
            del message  # free the message's memory
        while self._slices:
            await asyncio.wait(self._slices, return_when=asyncio.FIRST_COMPLETED)

    async def _take(self, message: Any) -> None:
        self._message_index += 1
        path = f"requests[{self._message_index}]"
        rows = self._form.rows
        if message.WhichOneof("kind") != rows:
            raise InvalidRequestError(path, f"{rows} must be set in every message except the first")
        items = self._form.rows_of(getattr(message, rows))
        self._context.planner.check_models(self._plans)
        self._context.check_count(len(items), f"{path}.{rows}")
        total_s = self._total_s(message, path)
        for part in _slices(items):
            await self._begin(part, total_s)

    def _total_s(self, message: Any, path: str) -> float:
        rows = self._form.rows
        given_s = getattr(getattr(message, rows), "deadline_s", 0.0)  # pairs have none
        if not 0 <= given_s < math.inf:
            raise InvalidRequestError(f"{path}.{rows}.deadline_s", f"is {given_s:g}, but must be at least 0 and finite")
        return max(self._context.total_s(None), self._context.total_s(given_s))

    async def _begin(self, part: _Slice, total_s: float) -> None:
        await self._window.acquire(sum(places for _, places in part))
        task = asyncio.create_task(self._score(part, self._index, total_s))
        self._index += len(part)
        self._slices.add(task)
        task.add_done_callback(self._slice_done)

    def _slice_done(self, task: asyncio.Task[None]) -> None:
        self._slices.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._out.fail(error)

    async def _score(self, part: _Slice, first_index: int, total_s: float) -> None:
        items: list[Item] = []
        open_items: list[OpenItem] = []
        read = partial(read_row, limits=self._context.limits, check_bytes=True)
        messages = [message for message, _ in part]
        targets = (
            OpenItem(index, reply_id(message), len(self._requests), places)
            for index, (message, places) in enumerate(part, first_index)
        )
        async for _, item in read_in_turns(messages, read):
            target = next(targets)
            if isinstance(item, Item):
                items.append(item)
                open_items.append(target)
                continue
            refused = ScoredResult(MetricResult.failed(item))
            for metric_index in range(len(self._requests)):
                self._put(target, metric_index, refused)

        def emit(item_index: int, metric_index: int, scored: ScoredResult) -> None:
            self._put(open_items[item_index], metric_index, scored)

        if items:
            work = work_of(self._caller, self._plans, sum(message.ByteSize() for message in messages), len(items))
            async with self._context.admission.bulk(work, source=self):
                await self._context.scorer.score(
                    items,
                    self._requests,
                    corpora=self._context.scorer.corpora_of(
                        items, reference_set=self._set.name, corpus_digest=self._set.corpus_digest
                    ),
                    deadline_s=self._until_s(total_s),
                    judge_deadline_s=self._until_s(self._context.deadlines.judge_s),
                    emit=emit,
                )

    def _put(self, item: OpenItem, metric_index: int, scored: ScoredResult) -> None:
        self._context.report_result(self._metric_names[metric_index], item.index, scored.result)
        self._out.put(item, metric_index, scored, diagnostics=self._diagnostics)

    def _until_s(self, seconds: float) -> float:
        soonest = time.monotonic() + seconds
        return soonest if self._ends_s is None else min(soonest, self._ends_s)


def stream(
    context: RequestContext,
    form: CallForm,
    requests: AsyncIterator[Any],
    *,
    deadline_s: float | None = None,
    caller: Caller = LOCAL,
) -> AsyncGenerator[Any]:
    """Score a stream and yield results when they are ready. For the errors, see `ScoreHandler.run`.

    If `deadline_s` is None, the stream has no time limit. Each message's items have the message's deadline or
    the default one, whichever is longer.
    """
    return ScoreStream(context, form, deadline_s=deadline_s, caller=caller).run(requests)
