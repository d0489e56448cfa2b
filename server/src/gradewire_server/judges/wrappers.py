"""Wrappers that add checks, caches, single flight and a queue limit to judges."""

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import replace
from typing import Any, Final, TypeAlias

from typing_extensions import override

from gradewire_server.domain.items import Failure, Status, Timing, quoted
from gradewire_server.domain.judge import JudgeNeed
from gradewire_server.domain.needs import AnswerSource
from gradewire_server.domain.ports import JudgeReply, ModelStatus
from gradewire_server.judges.backend import Judge, failed_reply
from gradewire_server.judges.images import ImageChecks
from gradewire_server.judges.verdict_cache import VerdictCache, VerdictKey, answer_problem

_log = logging.getLogger(__name__)

_SHORTEST_RETRY_S: Final = 1.0
_LONGEST_RETRY_S: Final = 60.0
_PACE_SAMPLES: Final = 64

_DEFECT: Final = Failure(Status.INTERNAL, "the judge failed on this item. See the server's log")
_NONSENSE: Final = Failure(Status.INTERNAL, "the judge's answer is invalid. See the server's log")

TIMED_OUT: Final = Failure(
    Status.TIMEOUT, "the deadline passed before the judge was done. Allow more time or send less"
)


class JudgeWrapper(Judge):
    """A wrapper for a judge. `close` also closes the wrapped judge."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    @property
    @override
    def status(self) -> ModelStatus:
        return self._judge.status

    @override
    def trouble(self) -> str:
        return self._judge.trouble()

    @override
    async def close(self) -> None:
        await self._judge.close()


class SeeingJudge(JudgeWrapper):
    """A judge that checks images, and refuses images if its model does not see images.

    This wrapper is outside the caches, because cache keys need the images' digests.
    """

    def __init__(self, judge: Judge, checks: ImageChecks) -> None:
        super().__init__(judge)
        self._checks = checks

    @override
    async def answer(self, need: JudgeNeed, *, deadline_s: float | None = None) -> JudgeReply[Any]:
        if need.prompt.images:
            if not self.status.sees_images:
                return failed_reply(_cannot_see(self.status.name))
            try:
                async with asyncio.timeout_at(deadline_s):  # the loop uses the same clock
                    images = await self._checks.checked(need.prompt.images)
            except TimeoutError:
                return failed_reply(TIMED_OUT)
            if isinstance(images, Failure):
                return failed_reply(images)
            need = replace(need, prompt=replace(need.prompt, images=images))
        return await self._judge.answer(need, deadline_s=deadline_s)


def _cannot_see(name: str) -> Failure:
    return Failure(
        Status.JUDGE_CANNOT_SEE,
        f"judge {quoted(name)} does not see images. Set model to a judge that sees images, or leave out image=true. If "
        "a remote judge's model sees images, set judge_sees_images (for gradewire score --judge-url: "
        "GRADEWIRE_JUDGE_SEES_IMAGES=yes)",
    )


class QueueLimit:
    """A limit for all judges' computations together."""

    def __init__(self, max_items: int) -> None:
        self._max_items = max_items
        self._finished_s: deque[float] = deque(maxlen=_PACE_SAMPLES)
        self._closed = False
        self.waiting = 0

    def enter(self) -> Failure | None:
        """Count a computation, or return a failure if the limit is reached."""
        refusal = self.refusal(self.waiting)
        if refusal is None:
            self.waiting += 1
        return refusal

    def leave(self) -> None:
        """Stop counting a computation."""
        self.waiting -= 1

    def finished(self) -> None:
        """Record the end of a computation, to measure the queue's pace."""
        self._finished_s.append(time.monotonic())

    def close(self) -> None:
        """Refuse all computations from now on."""
        self._closed = True

    def refusal(self, waiting: int) -> Failure | None:
        """Return the failure for a new need if `waiting` needs reach the limit; otherwise return None."""
        return self.full(waiting) if self._closed or waiting >= self._max_items else None

    def full(self, waiting: int) -> Failure:
        """Return the failure for a refused caller."""
        if self._closed:
            return Failure(Status.UNAVAILABLE, "the server is shutting down. Try another replica", _SHORTEST_RETRY_S)
        return Failure(
            Status.UNAVAILABLE,
            f"{waiting} items already wait for the judge. Send fewer items at a time, or try again later",
            retry_after_s=self._drained_s(waiting),
        )

    def _drained_s(self, waiting: int) -> float:
        """Return the seconds until half of the waiting needs are done."""
        finished_s = self._finished_s
        if len(finished_s) < 2 or finished_s[-1] <= finished_s[0]:
            return _SHORTEST_RETRY_S
        each_s = (finished_s[-1] - finished_s[0]) / (len(finished_s) - 1)
        return min(max(waiting / 2 * each_s, _SHORTEST_RETRY_S), _LONGEST_RETRY_S)


class CheckedJudge(JudgeWrapper):
    """A judge that returns failures instead of errors and invalid answers."""

    @override
    async def answer(self, need: JudgeNeed, *, deadline_s: float | None = None) -> JudgeReply[Any]:
        try:
            reply = await self._judge.answer(need, deadline_s=deadline_s)
        except Exception as error:  # noqa: BLE001 - if a judge raises, only this need fails
            # The error's message may contain a user's text.
            _log.error("judge %s raised %s", self.status.name, type(error).__qualname__)
            return failed_reply(_DEFECT)
        wrong = "" if isinstance(reply.answer, Failure) else answer_problem(need, reply.answer)
        if wrong:
            _log.error("judge %s: %s", self.status.name, wrong)
            return replace(reply, answer=_NONSENSE)
        return reply


Compute: TypeAlias = Callable[[float | None], Awaitable[JudgeReply[Any]]]
"""A function that computes a reply by a deadline in `time.monotonic()` seconds (None means no deadline)."""


class _Pending:
    __slots__ = ("deadline_s", "task", "waiters")

    def __init__(self, deadline_s: float) -> None:
        self.deadline_s = deadline_s
        self.waiters: list[asyncio.Future[None]] = []
        self.task: asyncio.Task[JudgeReply[Any]]

    async def run(self, compute: Compute) -> JudgeReply[Any]:
        """Compute until the callers' latest deadline. Callers that join later may extend this deadline."""
        while True:
            deadline_s = self.deadline_s
            reply = await compute(None if deadline_s == math.inf else deadline_s)
            late = isinstance(reply.answer, Failure) and reply.answer.status is Status.TIMEOUT
            if not late or self.deadline_s <= deadline_s:
                return reply


def _end(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)


class Computations:
    """Pending computations by name. For one event loop only.

    If a caller cancels or reaches its deadline, the computation ends only if no other caller waits for it.
    """

    def __init__(self, limit: QueueLimit) -> None:
        self._limit = limit
        self._pending: dict[Hashable, _Pending] = {}

    async def close(self) -> None:
        """Cancel all computations."""
        tasks = [pending.task for pending in self._pending.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def reply(self, name: Hashable, deadline_s: float | None, compute: Compute) -> JudgeReply[Any]:
        """Return the reply of the pending computation with this name, or of a new one."""
        until_s = math.inf if deadline_s is None else deadline_s
        pending = self._pending.get(name)
        joined = pending is not None
        if pending is None:
            refusal = self._limit.enter()
            if refusal is not None:
                return failed_reply(refusal)
            pending = self._begin(name, until_s, compute)
        pending.deadline_s = max(pending.deadline_s, until_s)
        # A future of its own, because waiting for the task would cancel the computation for all callers.
        loop = asyncio.get_running_loop()
        ended = loop.create_future()
        pending.waiters.append(ended)
        timer = None if deadline_s is None else loop.call_at(deadline_s, _end, ended)  # the loop has the same clock
        try:
            await ended
        finally:
            if timer is not None:
                timer.cancel()
            pending.waiters.remove(ended)
            if not pending.waiters and not pending.task.done():
                self._forget(name, pending)
                pending.task.cancel()
        if not pending.task.done():
            return failed_reply(TIMED_OUT)
        if pending.task.cancelled():
            return failed_reply(self._limit.full(self._limit.waiting))
        reply = pending.task.result()
        return replace(reply, source=AnswerSource.JOINED) if joined else reply

    def _begin(self, name: Hashable, until_s: float, compute: Compute) -> _Pending:
        pending = self._pending[name] = _Pending(until_s)
        pending.task = asyncio.get_running_loop().create_task(pending.run(compute))

        def completed(_: asyncio.Task[JudgeReply[Any]]) -> None:
            self._limit.finished()
            self._forget(name, pending)
            for ended in pending.waiters:
                _end(ended)

        pending.task.add_done_callback(completed)
        return pending

    def _forget(self, name: Hashable, pending: _Pending) -> None:
        """Forget a computation immediately, because an equal need may arrive while a cancelled computation ends."""
        if self._pending.get(name) is pending:
            del self._pending[name]
            self._limit.leave()


class SingleFlightJudge(JudgeWrapper):
    """A judge that computes equal concurrent needs once."""

    def __init__(self, judge: Judge, limit: QueueLimit) -> None:
        super().__init__(judge)
        self._computations = Computations(limit)

    @override
    async def close(self) -> None:
        await self._computations.close()
        await super().close()

    @override
    async def answer(self, need: JudgeNeed, *, deadline_s: float | None = None) -> JudgeReply[Any]:
        # The precision changes if the server loses a feature, because answers are then derived differently.
        name = (replace(need, model=""), self.status.precision)

        async def compute(until_s: float | None) -> JudgeReply[Any]:
            return await self._judge.answer(need, deadline_s=until_s)

        return await self._computations.reply(name, deadline_s, compute)


class CachedJudge(JudgeWrapper):
    """A judge that answers from memory or the second level if possible, and computes equal concurrent needs once.

    New answers go to the second level and to memory. The wrapped judge must return only valid answers.
    """

    def __init__(self, judge: Judge, limit: QueueLimit, verdicts: VerdictCache) -> None:
        super().__init__(judge)
        self._computations = Computations(limit)
        self._verdicts = verdicts

    @override
    async def close(self) -> None:
        await self._computations.close()
        await super().close()

    @override
    async def answer(self, need: JudgeNeed, *, deadline_s: float | None = None) -> JudgeReply[Any]:
        started_s = time.perf_counter()
        status = self.status
        key = await self._verdicts.key(need, status)
        known = self._verdicts.find(key, need)
        if known is not None:
            return JudgeReply(known, AnswerSource.MEMORY, Timing(cache_s=time.perf_counter() - started_s))

        async def compute(until_s: float | None) -> JudgeReply[Any]:
            return await self._stored_or_computed(need, key, status.precision, until_s)

        # The key names everything that affects the answer, the precision too.
        return await self._computations.reply(key.name, deadline_s, compute)

    async def _stored_or_computed(
        self, need: JudgeNeed, key: VerdictKey, precision: str, deadline_s: float | None
    ) -> JudgeReply[Any]:
        started_s = time.perf_counter()
        stored = await self._verdicts.find_stored(key, need)
        cache_s = time.perf_counter() - started_s
        if stored is not None:
            return JudgeReply(stored[0], stored[1], Timing(cache_s=cache_s))
        joined = await self._verdicts.join(key, need, deadline_s)
        if joined is not None:
            return JudgeReply(joined, AnswerSource.JOINED, Timing(cache_s=time.perf_counter() - started_s))
        try:
            reply = await self._judge.answer(need, deadline_s=deadline_s)
            # If the server lost a feature during the call, the answer does not match the key.
            if not isinstance(reply.answer, Failure) and self.status.precision == precision:
                self._verdicts.keep(key, reply.answer)
        finally:
            self._verdicts.release(key)
        reply.timing.cache_s += cache_s
        return reply


def wrapped(judge: Judge, images: ImageChecks, limit: QueueLimit, verdicts: VerdictCache) -> Judge:
    """Return a judge with all wrappers."""
    return SeeingJudge(CachedJudge(CheckedJudge(judge), limit, verdicts), images)
