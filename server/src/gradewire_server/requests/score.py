"""Handle Scoring.Score and Judging.Compare."""

import asyncio
import logging
import time
import traceback
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, Generic, TypeVar, cast

from google.protobuf.message import Message

from gradewire_proto.v1 import judging_pb2, scoring_pb2, types_pb2
from gradewire_server.domain.caller import LOCAL, Caller
from gradewire_server.domain.items import Failure, Item, MetricResult, ScoredResult, Status
from gradewire_server.requests.admission import Admission, Work, work_of
from gradewire_server.requests.context import NamedSet, RequestContext
from gradewire_server.requests.convert import CallForm, Row, read_in_turns, read_row, reply_id
from gradewire_server.requests.errors import DeadlineExceededError, InvalidRequestError
from gradewire_server.requests.plan import MetricPlan
from gradewire_server.scoring import MetricRequest, Scorer
from gradewire_server.scoring.scorer import RECALLED_AT_ONCE, Emitted

_log = logging.getLogger(__name__)

_FRAME_BYTES: Final = 2
"""The size of a nested message's tag and length if the message has fewer than 128 bytes."""
_LARGE_FRAME_BYTES: Final = 5
"""The maximum size of a nested message's tag and length."""
_SMALL: Final = 128
_LEAST_ITEM_BYTES: Final = 4

ITEMS_PER_SLICE: Final = 64

_PRIORITIES: Final = frozenset(scoring_pb2.Priority.values())

_LATE: Final = Failure(Status.TIMEOUT, "the deadline passed before scoring ended; allow more time or send fewer items")
_LEAST_MARGIN_S: Final = 0.05
_MARGIN_SHARE: Final = 0.05
_MARGIN_PER_PAIR_S: Final = 0.0005
_MAX_MARGIN_S: Final = 1.0
_MAX_MARGIN_SHARE: Final = 0.2

RequestT = TypeVar("RequestT", scoring_pb2.ScoreRequest, judging_pb2.CompareRequest)
ReplyT = TypeVar("ReplyT", bound=Message)


class ReplySize:
    """A counter for a reply's size in bytes. `overflowed` is True if the reply has become too large."""

    def __init__(self, max_bytes: int, items: int, provenance_bytes: int, form: CallForm) -> None:
        self._max_bytes = max_bytes
        self.form = form
        self._items = items
        self._fixed_bytes = provenance_bytes
        self._bytes = provenance_bytes
        self._results = 0
        self._metrics = 1
        self.overflowed = False

    def check_room_for(self, requests: Sequence["MetricRequest | Failure"]) -> None:
        """Raise InvalidRequestError if the reply would be too large even with the shortest possible results."""
        self._metrics = len(requests)
        per_item = _LEAST_ITEM_BYTES + sum(self._least_bytes(index, request) for index, request in enumerate(requests))
        if self._fixed_bytes + self._items * per_item > self._max_bytes:
            raise self._too_large(per_item)

    def add_item(self, row: Message) -> None:
        """Count an item without results."""
        self._add(_LARGE_FRAME_BYTES + row.ByteSize())

    def add_result(self, result: Message) -> bool:
        """Count a result. Return True if the reply is still small enough."""
        size_bytes = result.ByteSize()
        self._results += 1
        self._add(size_bytes + (_FRAME_BYTES if size_bytes < _SMALL else _LARGE_FRAME_BYTES))
        return not self.overflowed

    def check(self) -> None:
        """Raise InvalidRequestError if the reply has become too large."""
        if self.overflowed:
            done = max(1.0, self._results / max(1, self._metrics))
            raise self._too_large((self._bytes - self._fixed_bytes) / done)

    def _add(self, size_bytes: int) -> None:
        self._bytes += size_bytes
        self.overflowed = self.overflowed or self._bytes > self._max_bytes

    def _too_large(self, bytes_per_item: float) -> InvalidRequestError:
        fit = max(0, int((self._max_bytes - self._fixed_bytes) / bytes_per_item))
        return InvalidRequestError(
            self.form.rows,
            f"the reply for {self._items} {self.form.rows} would exceed the limit of {self._max_bytes} bytes; "
            + (f"send about {fit} at a time" if fit else "request fewer metrics at a time"),
        )

    def _least_bytes(self, index: int, request: "MetricRequest | Failure") -> int:
        if not isinstance(request, Failure):
            return self.form.least_result_bytes
        result: Message = self.form.result_type()
        self.form.fill(result, index, ScoredResult(MetricResult.failed(request)), diagnostics=False)
        return _FRAME_BYTES + result.ByteSize()


class ItemReplies:
    """A reply's items, with a slot for each (item, metric) pair. `items` are only the valid items.

    If the reply becomes too large, `on_overflow` is called, and all further results are dropped.
    """

    def __init__(
        self,
        reply: Any,
        metric_names: Sequence[str],
        size: ReplySize,
        *,
        diagnostics: bool,
        report_result: Callable[[str, int, MetricResult], None],
    ) -> None:
        self.items: list[Item] = []
        self.on_overflow: Callable[[], object] | None = None
        self._form = size.form
        self._reply = reply
        self._count = 0
        self._size = size
        self._metric_names = metric_names
        self._report_result = report_result
        self._diagnostics = diagnostics
        self._scored: list[list[Any]] = []
        self._indices: list[int] = []
        self._closed = False

    def add(self, message: Row, item: Item | Failure) -> None:
        """Add the request's next row. If `item` is a failure, fill the row's slots with this failure."""
        row = self._form.add_row(self._reply, self._count, reply_id(message))
        self._form.complete(row)
        self._count += 1
        self._size.add_item(row)
        results = [self._form.add_result(row) for _ in self._metric_names]
        if isinstance(item, Item):
            self.items.append(item)
            self._scored.append(results)
            self._indices.append(self._count - 1)
            return
        refused = ScoredResult(MetricResult.failed(item))
        for index, name in enumerate(self._metric_names):
            self._report_result(name, self._count - 1, refused.result)
            self._fill(results[index], index, refused, diagnostics=False)

    def emit(self, item_index: int, metric_index: int, scored: ScoredResult) -> None:
        """Fill the slot for `items[item_index]` and a metric. After `close`, do nothing."""
        if self._closed:
            return
        self._report_result(self._metric_names[metric_index], self._indices[item_index], scored.result)
        result = self._scored[item_index][metric_index]
        self._fill(result, metric_index, scored, diagnostics=self._diagnostics)

    def close(self, failure: Failure) -> None:
        """Fill all empty slots with `failure`."""
        self._closed = True
        late = ScoredResult(MetricResult.failed(failure))
        for item_index, results in zip(self._indices, self._scored, strict=True):
            for index, result in enumerate(results):
                if result.status == types_pb2.STATUS_UNSPECIFIED:
                    self._report_result(self._metric_names[index], item_index, late.result)
                    self._fill(result, index, late, diagnostics=False)

    def _fill(self, result: Any, index: int, scored: ScoredResult, *, diagnostics: bool) -> None:
        if self._size.overflowed:
            return
        self._form.fill(result, index, scored, diagnostics=diagnostics)
        if not self._size.add_result(result):
            self._closed = True
            if self.on_overflow is not None:
                self.on_overflow()


class ItemScoring:
    """The scoring of a request's items, all at once or in slices."""

    def __init__(
        self, scorer: Scorer, replies: ItemReplies, requests: Sequence[MetricRequest | Failure], named: NamedSet
    ) -> None:
        self._scorer = scorer
        self._replies = replies
        self._requests = requests
        self._remembered: Emitted | None = None
        self._corpora = scorer.corpora_of(replies.items, reference_set=named.name, corpus_digest=named.corpus_digest)

    def recall(self) -> bool:
        """Fill in remembered results if the request is small. Return True if no result is missing."""
        items, metrics = len(self._replies.items), len(self._requests)
        if not 0 < items * metrics <= RECALLED_AT_ONCE:
            return False
        self._remembered = self._scorer.recall(self._replies.items, self._requests, emit=self._replies.emit)
        return len(self._remembered) == items * metrics

    async def at_once(self, deadline_s: float) -> None:
        """Score all items together. At `deadline_s` (`time.monotonic()` seconds), missing results become TIMEOUT."""
        await self._score(0, len(self._replies.items), deadline_s)

    async def in_slices(self, admission: Admission, work: Work, deadline_s: float) -> None:
        """Score the items in slices, which wait for their turns. For `deadline_s`, see `at_once`."""
        count = len(self._replies.items)
        async with asyncio.TaskGroup() as slices:
            for start in range(0, count, ITEMS_PER_SLICE):
                end = min(start + ITEMS_PER_SLICE, count)
                part = replace(work, size_bytes=work.size_bytes * (end - start) // work.items, items=end - start)
                slices.create_task(self._slice(admission, part, start, end, deadline_s))

    async def _slice(self, admission: Admission, work: Work, start: int, end: int, deadline_s: float) -> None:
        async with admission.bulk(work, source=self):
            await self._score(start, end, deadline_s)

    async def _score(self, start: int, end: int, deadline_s: float) -> None:
        def emit(item_index: int, metric_index: int, scored: ScoredResult) -> None:
            self._replies.emit(start + item_index, metric_index, scored)

        await self._scorer.score(
            self._replies.items[start:end],
            self._requests,
            deadline_s=deadline_s,
            corpora=self._corpora,
            emitted=self._remembered,
            emit=emit,
        )


class ScoreHandler(Generic[RequestT, ReplyT]):
    """A handler for unary requests."""

    def __init__(self, context: RequestContext, form: CallForm) -> None:
        self._context = context
        self._form = form
        self._cancelled: set[asyncio.Task[None]] = set()

    @property
    def idle(self) -> bool:
        """True if no cancelled work is still running."""
        return not self._cancelled

    async def close(self) -> None:
        """Wait until all cancelled work has ended."""
        if self._cancelled:
            await asyncio.wait(self._cancelled)

    async def run(
        self,
        request: RequestT,
        *,
        deadline_s: float | None = None,
        size_bytes: int | None = None,
        caller: Caller = LOCAL,
    ) -> ReplyT:
        """Grade a request's items or pairs. The reply's rows are in the request's order.

        If `deadline_s` (in seconds from now) is None, the default applies. If `size_bytes` is None, the request is
        measured.

        Raises:
            InvalidRequestError: The request is invalid.
            NothingLoadedError: This server can compute none of the metrics.
            OverloadedError: Too much work is in progress.
            DeadlineExceededError: The deadline passed before scoring started.
        """
        context, form = self._context, self._form
        started = time.monotonic()
        rows = form.rows_of(request)
        context.check_count(len(rows), form.rows)
        plans = await context.plan_call(request)
        named = await context.find_set(getattr(request, "reference_set", ""), plans)
        reply = form.reply([plan.provenance_in(named.name, named.corpus_digest) for plan in plans])
        if rows:
            ends_s = started + context.total_s(deadline_s)
            size_bytes = request.ByteSize() if size_bytes is None else size_bytes
            size = ReplySize(context.limits.max_message_bytes, len(rows), reply.ByteSize(), form)
            requests = [plan.request for plan in plans]
            size.check_room_for(requests)
            work = work_of(caller, plans, size_bytes, len(rows))
            left_s = ends_s - time.monotonic()
            interactive = _is_urgent(request) and context.admission.is_interactive(work)
            with context.admission.interactive(work, left_s) if interactive else context.admission.large(work, left_s):
                replies = await self._read_items(request, reply, plans, size, size_bytes)
                size.check()
                scoring = ItemScoring(context.scorer, replies, requests, named)
                if not (interactive and left_s > 0 and scoring.recall()):
                    run = scoring.at_once if interactive else partial(scoring.in_slices, context.admission, work)
                    await self._until(ends_s, replies, len(plans), run)
                size.check()
        reply.server_s = time.monotonic() - started
        return cast("ReplyT", reply)

    async def _read_items(
        self,
        request: RequestT,
        reply: Any,
        plans: list[MetricPlan],
        size: ReplySize,
        size_bytes: int,
    ) -> ItemReplies:
        context = self._context
        check_bytes = size_bytes > context.limits.max_item_bytes
        replies = ItemReplies(
            reply,
            [plan.provenance.name for plan in plans],
            size,
            diagnostics=not request.omit_diagnostics,
            report_result=context.report_result,
        )
        read = partial(read_row, limits=context.limits, check_bytes=check_bytes)
        async for message, item in read_in_turns(self._form.rows_of(request), read, size_bytes):
            replies.add(message, item)
        return replies

    async def _until(
        self, ends_s: float, replies: ItemReplies, metrics: int, work: Callable[[float], Coroutine[Any, Any, None]]
    ) -> None:
        """Score the items. Shortly before `ends_s`, cancel unfinished work and fill empty slots with TIMEOUT."""
        left_s = ends_s - time.monotonic()
        if left_s <= 0:
            raise DeadlineExceededError("the deadline passed before scoring started")
        margin_s = reply_margin_s(left_s, len(replies.items) * metrics)
        # Leave time for results that are almost finished.
        scoring = asyncio.create_task(work(ends_s - 2 * margin_s))
        replies.on_overflow = scoring.cancel
        try:
            await asyncio.wait((scoring,), timeout=max(0.0, ends_s - margin_s - time.monotonic()))
        finally:
            replies.on_overflow = None
            if not scoring.done():
                self._cancel(scoring)
        if scoring in self._cancelled:
            replies.close(_LATE)
        elif scoring.cancelled():
            _clear_frames(scoring)
        else:
            scoring.result()

    def _cancel(self, scoring: asyncio.Task[None]) -> None:
        """Cancel a task without waiting until the task has ended."""
        scoring.cancel()
        self._cancelled.add(scoring)
        scoring.add_done_callback(self._on_done)

    def _on_done(self, scoring: asyncio.Task[None]) -> None:
        self._cancelled.discard(scoring)
        if scoring.cancelled():
            _clear_frames(scoring)
        elif (error := scoring.exception()) is not None:
            _log.error("scoring failed after its deadline", exc_info=error)


def _clear_frames(cancelled: asyncio.Task[None]) -> None:
    """Free a cancelled task's local variables, which the error's traceback keeps alive."""
    try:
        cancelled.exception()
    except asyncio.CancelledError as error:
        traceback.clear_frames(error.__traceback__)


def _is_urgent(request: RequestT) -> bool:
    """Return True if the request's priority is not bulk. Raise InvalidRequestError if the priority is unknown."""
    if request.priority not in _PRIORITIES:
        raise InvalidRequestError("priority", f"{request.priority} is not a value of gradewire.v1.Priority")
    return request.priority != scoring_pb2.PRIORITY_BULK


def reply_margin_s(left_s: float, pairs: int) -> float:
    """Return how many seconds to reserve for the reply, at most 1 s and at most a fifth of `left_s`.

    `pairs` is the number of (item, metric) pairs in the reply. If `left_s` is negative, return 0.
    """
    wanted_s = _LEAST_MARGIN_S + _MARGIN_SHARE * left_s + _MARGIN_PER_PAIR_S * pairs
    return max(0.0, min(wanted_s, _MAX_MARGIN_S, _MAX_MARGIN_SHARE * left_s))
