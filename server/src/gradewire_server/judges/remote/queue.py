"""Questions that wait for their request to a judge's server; those that the server takes together share one."""

import asyncio
import contextvars
import functools
import time
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from gradewire_server.domain.judge import JudgePrompt
from gradewire_server.domain.result import Timing
from gradewire_server.judges.remote.server import Answer, Question

Answered: TypeAlias = tuple[Answer, JudgePrompt]
"""What a server answered, and the prompt as it was sent."""
AskAlone: TypeAlias = Callable[[Question, float | None], Awaitable[Answered]]
AnsweredEach: TypeAlias = Sequence[Answered | None]
AskTogether: TypeAlias = Callable[[Sequence[Question], float | None], Awaitable[AnsweredEach]]


class Takes(Protocol):
    """Says whether questions may share a request."""

    def __call__(self, questions: Sequence[Question]) -> bool:
        """Of two or more questions about one subject; must not wait."""


@dataclass(eq=False, slots=True)
class _Waiting:
    """A question; what waits for `answer` may leave at any time, which cancels it."""

    question: Question
    subject: Hashable
    deadline_s: float | None
    answer: asyncio.Future[Answered]
    context: contextvars.Context
    started_s: float | None = None
    request: "_Request | None" = None


@dataclass(eq=False, slots=True)
class _Request:
    """Questions on their way together, without those that were left."""

    members: list[_Waiting]
    task: asyncio.Task[None] = field(init=False)


class RequestQueue:
    """Bounds the requests under way. Lives on one event loop.

    No question waits for another one to come: when a request may start, the question that waits longest starts it, and
    those that wait already and may share it come along. Those of one turn of the event loop wait together.

    Args:
        max_in_flight: Requests under way at a time.
        alone: Has one question answered; takes it and its deadline in `time.monotonic()` seconds; raises RemoteError.
        together: Has several answered by one request, until the latest of their deadlines: an answer for each,
            None in the place of one that is to be asked alone, which it is before any other that waits; raises
            RemoteError where all have failed.
        takes: Whether questions may share a request.
    """

    def __init__(self, max_in_flight: int, alone: AskAlone, together: AskTogether, takes: Takes) -> None:
        self._free = max_in_flight
        self._alone = alone
        self._together = together
        self._takes = takes
        # Sets that keep their order.
        self._waiting: dict[_Waiting, None] = {}
        self._of_subject: dict[Hashable, dict[_Waiting, None]] = {}
        self._running: set[asyncio.Task[None]] = set()
        self._starts_soon = False

    async def ask(self, question: Question, subject: Hashable, deadline_s: float | None, timing: Timing) -> Answered:
        """Has a question answered; raises RemoteError.

        Cancelling it leaves those alone that share its request, which is cancelled when all have left it.

        Args:
            question: What is asked.
            subject: Questions of equal subjects may share a request; None: it goes alone.
            deadline_s: In `time.monotonic()` seconds, for attempts of the request; the caller ends the wait itself.
            timing: Gets the time that it waited, and that its request took.
        """
        loop = asyncio.get_running_loop()
        one = _Waiting(question, subject, deadline_s, loop.create_future(), contextvars.copy_context())
        queued_s = time.monotonic()
        self._waiting[one] = None
        if subject is not None:
            self._of_subject.setdefault(subject, {})[one] = None
        self._start_soon()
        try:
            return await one.answer
        finally:
            ended_s = time.monotonic()
            started_s = ended_s if one.started_s is None else one.started_s
            timing.queue_s += started_s - queued_s
            timing.inference_s += ended_s - started_s
            self._leave(one)

    async def close(self) -> None:
        """Cancels the requests under way, and whoever waits."""
        for one in self._waiting:
            one.answer.cancel()
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def _start_soon(self) -> None:
        # Not at once: who asks in the same turn of the loop may come along.
        if not self._starts_soon and self._free and self._waiting:
            self._starts_soon = True
            asyncio.get_running_loop().call_soon(self._start)

    def _start(self) -> None:
        self._starts_soon = False
        while self._free and (first := self._first()):
            try:
                members = self._with_company(first)
            except Exception as error:  # noqa: BLE001 - it would wait for ever, and all behind it
                self._forget(first)
                _fail(first, error)
                continue
            request = _Request(members)
            self._free -= 1
            # In the context of one of them, for what is logged on the way.
            context = members[0].context
            request.task = asyncio.get_running_loop().create_task(self._run(request), context=context)
            self._running.add(request.task)
            request.task.add_done_callback(functools.partial(self._ended, request))
            for one in members:
                self._forget(one)
                one.request = request
                if one.started_s is None:
                    one.started_s = time.monotonic()

    def _first(self) -> _Waiting | None:
        # One that was cancelled in this turn of the loop has yet to leave.
        return next((one for one in self._waiting if not one.answer.done()), None)

    def _with_company(self, first: _Waiting) -> list[_Waiting]:
        members = [first]
        for other in self._of_subject.get(first.subject, ()):
            if other is first or other.answer.done():
                continue
            if self._takes([*(one.question for one in members), other.question]):
                members.append(other)
        return members

    def _ended(self, request: _Request, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        for one in request.members:
            one.answer.cancel()  # does nothing where it is done
        self._free += 1
        self._start_soon()

    def _leave(self, one: _Waiting) -> None:
        request = one.request
        if request is None:
            self._forget(one)
            return
        request.members.remove(one)
        if not request.members:
            request.task.cancel()

    def _forget(self, one: _Waiting) -> None:
        self._waiting.pop(one, None)
        of_subject = self._of_subject.get(one.subject)
        if of_subject is not None:
            of_subject.pop(one, None)
            if not of_subject:
                del self._of_subject[one.subject]

    async def _run(self, request: _Request) -> None:
        members = tuple(request.members)
        try:
            if len(members) == 1:
                await self._answer_alone(members[0])
            else:
                await self._answer_together(request, members)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is for those who wait
            for one in members:
                _fail(one, error)

    async def _answer_together(self, request: _Request, members: Sequence[_Waiting]) -> None:
        deadlines = [one.deadline_s for one in members if one.deadline_s is not None]
        latest_s = max(deadlines) if len(deadlines) == len(members) else None
        answers = await self._together([one.question for one in members], latest_s)
        again: list[_Waiting] = []
        for one, answer in zip(members, answers, strict=True):
            if answer is None:
                again.append(one)
            elif not one.answer.done():
                one.answer.set_result(answer)
        self._ask_apart(request, again)

    def _ask_apart(self, request: _Request, again: Sequence[_Waiting]) -> None:
        """Has those of them who stayed wait again, before all others, each for a request that ends when it leaves."""
        stayed = [one for one in again if one in request.members]
        for one in stayed:
            request.members.remove(one)
            one.request, one.subject = None, None
        if stayed:
            self._waiting = dict.fromkeys([*stayed, *self._waiting])

    async def _answer_alone(self, one: _Waiting) -> None:
        answer = await self._alone(one.question, one.deadline_s)
        if not one.answer.done():
            one.answer.set_result(answer)


def _fail(one: _Waiting, error: Exception) -> None:
    if not one.answer.done():
        one.answer.set_exception(error)
