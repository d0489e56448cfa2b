"""Scoring.Score and Judging.Compare: grades all items or pairs of a request and answers in their order."""

import asyncio
import logging
import time
import traceback
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final, TypeVar

from gradewire_proto.v1 import judging_pb2, scoring_pb2
from gradewire_server.domain.caller import Caller
from gradewire_server.domain.result import Failure, Status
from gradewire_server.requests.admission.work import work_of
from gradewire_server.requests.context import RequestContext
from gradewire_server.requests.errors import DeadlineExceededError, InvalidRequestError
from gradewire_server.requests.forms.form import CallForm
from gradewire_server.requests.planning.metric_plan import MetricPlan
from gradewire_server.requests.sets.named import find_set
from gradewire_server.requests.unary.item_scoring import ItemScoring
from gradewire_server.requests.unary.replies import ItemReplies
from gradewire_server.requests.unary.reply_size import ReplySize
from gradewire_server.requests.yield_budget import YieldBudget, read_beside

RequestT = TypeVar("RequestT", scoring_pb2.ScoreRequest, judging_pb2.CompareRequest)

_log = logging.getLogger(__name__)
_PRIORITIES: Final = frozenset(scoring_pb2.Priority.values())

_LATE: Final = Failure(Status.TIMEOUT, "the deadline passed before the score was done; allow more time or send less")
_LEAST_MARGIN_S: Final = 0.05
_MARGIN_SHARE: Final = 0.05
_MARGIN_PER_PAIR_S: Final = 0.0005
_MAX_MARGIN_S: Final = 1.0
_MAX_MARGIN_SHARE: Final = 0.2


class ScoreHandler:
    """Answers unary requests of one form; keeps scoring tasks that have outlived their deadline until they end."""

    def __init__(self, context: RequestContext, form: CallForm) -> None:
        self._context = context
        self._form = form
        self._cancelled: set[asyncio.Task[None]] = set()

    @property
    def idle(self) -> bool:
        """Whether no cancelled work is still to end."""
        return not self._cancelled

    async def close(self) -> None:
        """Waits for cancelled work to end."""
        if self._cancelled:
            await asyncio.wait(self._cancelled)

    async def run(self, request: RequestT, *, deadline_s: float | None, size_bytes: int | None, caller: Caller) -> Any:
        """Answers one request; arguments and errors as `Handlers.score`."""
        context, form = self._context, self._form
        started = time.monotonic()
        rows = form.rows_of(request)
        context.check_count(len(rows), form.rows)
        plans = await form.plan(context, request)
        named = await find_set(context, getattr(request, "reference_set", ""), plans)
        reply = form.reply([plan.provenance_in(named.name, named.corpus_digest) for plan in plans])
        if rows:
            ends_s = started + self._total_s(deadline_s)
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
        return reply

    def _total_s(self, deadline_s: float | None) -> float:
        deadlines = self._context.deadlines
        return min(deadlines.default_s if deadline_s is None else max(0.0, deadline_s), deadlines.max_s)

    async def _read_items(
        self,
        request: RequestT,
        reply: Any,
        plans: list[MetricPlan],
        size: ReplySize,
        size_bytes: int,
    ) -> ItemReplies:
        """Reads the items and makes room for their results."""
        context = self._context
        check_bytes = size_bytes > context.limits.max_item_bytes
        replies = ItemReplies(
            reply,
            [plan.provenance.name for plan in plans],
            size,
            diagnostics=not request.omit_diagnostics,
            count_result=context.count_result,
        )
        budget = YieldBudget(size_bytes)
        for message in self._form.rows_of(request):
            if budget.is_exceeded_by(message):
                await asyncio.sleep(0)
            read = partial(self._form.read, message, context.limits, check_bytes=check_bytes)
            replies.add(message, await read_beside(budget.last_bytes, read))
        return replies

    async def _until(
        self, ends_s: float, replies: ItemReplies, metrics: int, work: Callable[[float], Coroutine[Any, Any, None]]
    ) -> None:
        """Has the items scored; what is not there shortly before `ends_s` is told as late, and cancelled."""
        left_s = ends_s - time.monotonic()
        if left_s <= 0:
            raise DeadlineExceededError("the deadline passed before scoring began")
        margin_s = reply_margin_s(left_s, len(replies.items) * metrics)
        # Earlier than ours by another margin: what has been computed by then is still scored.
        scoring = asyncio.create_task(work(ends_s - 2 * margin_s))
        replies.on_overflow = scoring.cancel  # its results would go nowhere
        try:
            await asyncio.wait((scoring,), timeout=max(0.0, ends_s - margin_s - time.monotonic()))
        finally:
            replies.on_overflow = None  # the task has the replies: both were a cycle
            if not scoring.done():
                self._cancel(scoring)
        if scoring in self._cancelled:
            replies.close(_LATE)
        elif scoring.cancelled():
            _clear_frames(scoring)
        else:
            scoring.result()

    def _cancel(self, scoring: asyncio.Task[None]) -> None:
        """Cancels work that nobody waits for any more; how long it takes to end is not the caller's affair."""
        scoring.cancel()
        self._cancelled.add(scoring)
        scoring.add_done_callback(self._ended)

    def _ended(self, scoring: asyncio.Task[None]) -> None:
        self._cancelled.discard(scoring)
        if scoring.cancelled():
            _clear_frames(scoring)
        elif (error := scoring.exception()) is not None:
            _log.error("scoring failed after its deadline", exc_info=error)


def _clear_frames(cancelled: asyncio.Task[None]) -> None:
    """Frees what a cancelled task worked on: its error leads to its frames, and that of a task group to the error."""
    try:
        cancelled.exception()
    except asyncio.CancelledError as error:
        traceback.clear_frames(error.__traceback__)


def _is_urgent(request: RequestT) -> bool:
    """Whether a request may go before bulk work; raises InvalidRequestError for a priority that nobody knows."""
    if request.priority not in _PRIORITIES:
        raise InvalidRequestError("priority", f"{request.priority} is no number of gradewire.v1.Priority")
    return request.priority != scoring_pb2.PRIORITY_BULK


def reply_margin_s(left_s: float, pairs: int) -> float:
    """Time to keep back at the end of a call, so that its reply reaches the caller before the deadline.

    It covers telling of every (item, metric) pair and an event loop busy with their texts; at most 1 s and a
    fifth of the time.

    Args:
        left_s: Seconds until the deadline; may be negative.
        pairs: Results of the reply.
    """
    wanted_s = _LEAST_MARGIN_S + _MARGIN_SHARE * left_s + _MARGIN_PER_PAIR_S * pairs
    return max(0.0, min(wanted_s, _MAX_MARGIN_S, _MAX_MARGIN_SHARE * left_s))
