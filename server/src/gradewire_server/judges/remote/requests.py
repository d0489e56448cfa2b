"""Queue and bundle requests to a judge's server, and hold them back while it is down."""

import asyncio
import contextvars
import functools
import logging
import time
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, TypeAlias

from gradewire_proto.wire_rules import Backoff
from gradewire_server.domain.items import Failure, Status, Timing
from gradewire_server.domain.judge import JudgePrompt
from gradewire_server.judges.remote.errors import RemoteError
from gradewire_server.judges.remote.server import Answer, Question

_log = logging.getLogger(__name__)

_PROBES: Final = Backoff(1.0, 15.0)
_SHORTEST_WAIT_S: Final = 0.25
_PROBE_TIMEOUT_S: Final = 10.0

Answered: TypeAlias = tuple[Answer, JudgePrompt]
"""A server's answer and the prompt as sent."""
SendQuestions: TypeAlias = Callable[[Sequence[Question], float | None], Awaitable[Sequence[Answered | None]]]


class ServerAvailability:
    """The availability of a server: why it cannot answer, and probes until it can.

    Args:
        probe: Sends a minimal request; raises RemoteError while the server cannot answer.
        probe_timeout_s: Longest wait for a probe; a silent server stays down.
    """

    def __init__(
        self,
        name: str,
        probe: Callable[[], Awaitable[None]],
        *,
        backoff: Backoff = _PROBES,
        probe_timeout_s: float = _PROBE_TIMEOUT_S,
    ) -> None:
        self._name = name
        self._probe = probe
        self._backoff = backoff
        self._probe_timeout_s = probe_timeout_s
        self._failure: Failure | None = None
        self._succeeded_s = float("-inf")
        self._next_probe_s = 0.0
        self._probing: asyncio.Task[None] | None = None

    @property
    def trouble(self) -> str:
        """The reason why the server cannot answer now; empty if it can."""
        return "" if self._failure is None else self._failure.message

    def refusal(self) -> Failure | None:
        """Return the failure for callers while the server cannot answer, with the time to wait if that helps."""
        if self._failure is None or self._failure.status is not Status.UNAVAILABLE:
            return self._failure
        left_s = max(_SHORTEST_WAIT_S, self._next_probe_s - time.monotonic())
        return Failure(self._failure.status, self._failure.message, round(left_s, 3))

    def succeeded(self) -> None:
        """Record an answered request."""
        self._succeeded_s = time.monotonic()
        if self._failure is not None:
            _log.info("judge %s: its server answers again", self._name)
        self._failure = None

    def failed(self, error: RemoteError, *, sent_s: float) -> None:
        """Record a request that failed after all its attempts.

        Args:
            error: Of a kind in `SERVER_AWAY`.
            sent_s: The time of its first attempt. If another request was answered since then, the server is not down.
        """
        if self._succeeded_s > sent_s or self._failure is not None:
            return
        _log.warning("judge %s: %s (%s)", self._name, error.failure.message, error.kind.value)
        self._failure = error.failure
        if self._probing is None or self._probing.done():
            # A context of its own: what it logs later is not about this request.
            self._probing = asyncio.create_task(self._probe_until_it_answers(), context=contextvars.Context())

    async def close(self) -> None:
        """Stop the probes."""
        if self._probing is not None:
            self._probing.cancel()
            await asyncio.gather(self._probing, return_exceptions=True)

    async def _probe_until_it_answers(self) -> None:
        attempt = 0
        while self._failure is not None:
            attempt += 1
            wait_s = max(_SHORTEST_WAIT_S, self._backoff.wait_s(attempt))
            self._next_probe_s = time.monotonic() + wait_s
            await asyncio.sleep(wait_s)
            try:
                async with asyncio.timeout(self._probe_timeout_s):
                    await self._probe()
            except RemoteError as error:
                self._failure = error.failure
            except TimeoutError:
                continue
            except Exception as error:  # noqa: BLE001 - probes that ended would keep the judge down for ever
                _log.error("judge %s: a probe of its server raised %s", self._name, type(error).__qualname__)
            else:
                self.succeeded()


@dataclass(eq=False, slots=True)
class _Waiting:
    """A waiting question. Its caller may leave at any time, which cancels `answer`."""

    question: Question
    subject: Hashable
    deadline_s: float | None
    answer: asyncio.Future[Answered]
    context: contextvars.Context
    started_s: float | None = None
    request: "_Request | None" = None


@dataclass(eq=False, slots=True)
class _Request:
    """The questions of one request, without those whose callers left."""

    members: list[_Waiting]
    task: asyncio.Task[None] = field(init=False)


class RequestQueue:
    """A queue that limits concurrent requests. Lives on one event loop.

    No question waits for others to arrive. When a request may start, the oldest question starts it, and waiting
    questions that may share the request join it. Questions of one turn of the event loop wait together.

    Args:
        send: Sends questions in one request, with the latest of their deadlines in `time.monotonic()` seconds. Returns
            an answer for each, or None for one of several that must be sent alone, before any other waiting question.
            Raises RemoteError if all failed.
    """

    def __init__(self, max_in_flight: int, questions_per_request: int, send: SendQuestions) -> None:
        self._free = max_in_flight
        self._questions_per_request = questions_per_request
        self._send = send
        self._waiting: dict[_Waiting, None] = {}  # a set that keeps its order
        self._groups: dict[Hashable, dict[_Waiting, None]] = {}  # those with a subject, by subject
        self._running: set[asyncio.Task[None]] = set()
        self._starts_soon = False

    async def ask(self, question: Question, subject: Hashable, deadline_s: float | None, timing: Timing) -> Answered:
        """Send a question and return the answer; raise RemoteError.

        Cancelling it does not affect the others in its request, which is cancelled when all have left.

        Args:
            question: The question.
            subject: Questions of equal subjects may share a request; None to send it alone.
            deadline_s: In `time.monotonic()` seconds, for attempts of the request; the caller itself ends the wait.
            timing: Gets the times of the wait and of the request.
        """
        loop = asyncio.get_running_loop()
        one = _Waiting(question, subject, deadline_s, loop.create_future(), contextvars.copy_context())
        queued_s = time.monotonic()
        self._waiting[one] = None
        if subject is not None:
            self._groups.setdefault(subject, {})[one] = None
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
        """Cancel running requests and waiting questions."""
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
        while self._free and (members := self._next_members()):
            request = _Request(members)
            self._free -= 1
            # In the context of one of them, for what is logged on the way.
            context = members[0].context
            request.task = asyncio.get_running_loop().create_task(self._run(request), context=context)
            self._running.add(request.task)
            request.task.add_done_callback(functools.partial(self._on_done, request))
            for one in members:
                self._remove(one)
                one.request = request
                if one.started_s is None:
                    one.started_s = time.monotonic()

    def _next_members(self) -> list[_Waiting]:
        # One that was cancelled in this turn of the loop has yet to leave.
        first = next((one for one in self._waiting if not one.answer.done()), None)
        if first is None or first.subject is None:
            return [] if first is None else [first]
        group = (one for one in self._groups[first.subject] if not one.answer.done())
        return list(islice(group, self._questions_per_request))

    def _remove(self, one: _Waiting) -> None:
        """Remove a question from the waiting ones, if it is there."""
        if one in self._waiting:
            del self._waiting[one]
            if one.subject is not None:
                del self._groups[one.subject][one]
                if not self._groups[one.subject]:
                    del self._groups[one.subject]

    def _on_done(self, request: _Request, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        for one in request.members:
            one.answer.cancel()  # does nothing where it is done
        self._free += 1
        self._start_soon()

    def _leave(self, one: _Waiting) -> None:
        self._remove(one)
        if one.request is not None:
            one.request.members.remove(one)
            if not one.request.members:
                one.request.task.cancel()

    async def _run(self, request: _Request) -> None:
        members = tuple(request.members)
        deadlines = [one.deadline_s for one in members if one.deadline_s is not None]
        latest_s = max(deadlines) if len(deadlines) == len(members) else None
        try:
            answers = await self._send([one.question for one in members], latest_s)
            waiting = [(one, answer) for one, answer in zip(members, answers, strict=True) if not one.answer.done()]
        except Exception as error:  # noqa: BLE001 - whatever it is, it is for those who wait
            for one in members:
                if not one.answer.done():
                    one.answer.set_exception(error)
            return
        for one, answer in waiting:
            if answer is not None:
                one.answer.set_result(answer)
        retried = [one for one, answer in waiting if answer is None]
        if retried:
            self._retry(retried, request)

    def _retry(self, retried: Sequence[_Waiting], request: _Request) -> None:
        """Queue questions again before all others, each for a request of its own."""
        for one in retried:
            request.members.remove(one)
            one.request = one.subject = None
        self._waiting = dict.fromkeys([*retried, *self._waiting])
