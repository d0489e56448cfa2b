"""Single flight for judges: equal needs that are asked at the same time are one computation.

Unlike an encoder's, a judge's computation is expensive: when the last caller who waits for it leaves, it is cancelled.
"""

import asyncio
import math
import time
from collections.abc import Hashable
from dataclasses import replace
from typing import Any, Final

from typing_extensions import override

from gradewire_server.domain.judge import JudgeNeed
from gradewire_server.domain.needs import AnswerSource
from gradewire_server.domain.ports import JudgeReply
from gradewire_server.domain.result import Failure, Status, Timing
from gradewire_server.judges.backend import Judge
from gradewire_server.judges.verdicts.queue_limit import QueueLimit
from gradewire_server.judges.verdicts.wrapper import Ask, JudgeWrapper

TIMED_OUT: Final = Failure(
    Status.TIMEOUT, "the deadline passed before the judge was done; allow more time or send less"
)


class _Pending:
    """One computation, and how many wait for it."""

    __slots__ = ("deadline_s", "task", "waiters")

    def __init__(self, deadline_s: float) -> None:
        self.deadline_s = deadline_s
        self.waiters = 0
        self.task: asyncio.Task[JudgeReply[Any]]

    async def run(self, ask: Ask) -> JudgeReply[Any]:
        """Computes until the latest of the callers' deadlines, also where a caller with a later one came later."""
        while True:
            deadline_s = self.deadline_s
            reply = await ask(None if deadline_s == math.inf else deadline_s)
            late = isinstance(reply.answer, Failure) and reply.answer.status is Status.TIMEOUT
            if not late or self.deadline_s <= deadline_s:
                return reply


class SingleFlightJudge(JudgeWrapper):
    """A judge that is asked once for all who ask the same at the same time.

    A full queue is UNAVAILABLE with a hint, a deadline that passes is TIMEOUT for the caller whose deadline it is.
    Cancelling a call cancels the computation where nobody else waits for it.

    Args:
        judge: The judge behind it.
        limit: How many computations may be under way, those of other judges included.
    """

    def __init__(self, judge: Judge, limit: QueueLimit) -> None:
        super().__init__(judge)
        self._limit = limit
        self._pending: dict[Hashable, _Pending] = {}

    @override
    async def close(self) -> None:
        tasks = [pending.task for pending in self._pending.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await super().close()

    @override
    async def _answer(self, need: JudgeNeed, ask: Ask, deadline_s: float | None) -> JudgeReply[Any]:
        until_s = math.inf if deadline_s is None else deadline_s
        # A server that turned out to give less is read in another way, which is another computation.
        name = (replace(need, model=""), self.status.precision)
        pending = self._pending.get(name)
        joined = pending is not None
        if pending is None:
            refusal = self._limit.enter()
            if refusal is not None:
                return _failed(refusal)
            pending = self._begin(name, ask, until_s)
        pending.deadline_s = max(pending.deadline_s, until_s)
        pending.waiters += 1
        try:
            # Not wait_for, which would cancel the others' computation with this caller.
            done, _ = await asyncio.wait((pending.task,), timeout=_left_s(until_s))
        finally:
            pending.waiters -= 1
            if not pending.waiters and not pending.task.done():
                self._forget(name, pending)
                pending.task.cancel()
        if not done:
            return _failed(TIMED_OUT)
        if pending.task.cancelled():
            return _failed(self._limit.full(self._limit.waiting))
        reply = pending.task.result()
        return replace(reply, source=AnswerSource.JOINED) if joined else reply

    def _begin(self, name: Hashable, ask: Ask, until_s: float) -> _Pending:
        pending = self._pending[name] = _Pending(until_s)
        pending.task = asyncio.get_running_loop().create_task(pending.run(ask))

        def completed(_: asyncio.Task[JudgeReply[Any]]) -> None:
            self._limit.finished()
            self._forget(name, pending)

        pending.task.add_done_callback(completed)
        return pending

    def _forget(self, name: Hashable, pending: _Pending) -> None:
        """Makes room at once: an equal need may come while a cancelled computation is still ending."""
        if self._pending.get(name) is pending:
            del self._pending[name]
            self._limit.leave()


def _failed(failure: Failure) -> JudgeReply[Any]:
    return JudgeReply(failure, AnswerSource.COMPUTED, Timing())


def _left_s(until_s: float) -> float | None:
    return None if until_s == math.inf else max(0.0, until_s - time.monotonic())
