"""A queue that bundles questions for a judge's server, and the server's availability."""

import asyncio
import contextvars
import functools
import itertools
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, TypeAlias

from gradewire_proto.wire_rules import Backoff
from gradewire_server.domain.caller import current_caller
from gradewire_server.domain.items import Failure, Status, Timing
from gradewire_server.domain.judge import JudgePrompt
from gradewire_server.judges.connections.places import Places
from gradewire_server.judges.remote.errors import RemoteError, RemoteFault
from gradewire_server.judges.remote.server import Answer, Question

_log = logging.getLogger(__name__)

_PROBES: Final = Backoff(1.0, 15.0)
_SHORTEST_WAIT_S: Final = 0.25
_PROBE_TIMEOUT_S: Final = 10.0

Answered: TypeAlias = tuple[Answer, JudgePrompt]
"""A server's answer, and the prompt that was sent."""
SendQuestions: TypeAlias = Callable[[Sequence[Question], float | None], Awaitable[Sequence[Answered | None]]]


class ServerAvailability:
    """A server's availability, with probes while the server is down.

    Args:
        probe: Function that sends a minimal request, and raises RemoteError while the server cannot answer.
        test: Function that asks a test question after an error, and returns the error that it meets, or None if the
            server answers it.
    """

    def __init__(
        self,
        name: str,
        probe: Callable[[], Awaitable[None]],
        test: Callable[[RemoteError], Awaitable[RemoteError | None]],
        *,
        backoff: Backoff = _PROBES,
        probe_timeout_s: float = _PROBE_TIMEOUT_S,
    ) -> None:
        self._name = name
        self._probe = probe
        self._test = test
        self._testing = asyncio.Lock()
        self._backoff = backoff
        self._probe_timeout_s = probe_timeout_s
        self._failure: Failure | None = None
        self._succeeded_s = float("-inf")
        self._next_probe_s = 0.0
        self._probing: asyncio.Task[None] | None = None

    @property
    def trouble(self) -> str:
        """The reason why the server cannot answer now, or "" if the server works."""
        return "" if self._failure is None else self._failure.message

    def refusal(self) -> Failure | None:
        """Return the failure for callers if the server cannot answer now; otherwise return None."""
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

    async def failed(self, error: RemoteError, *, sent_s: float) -> None:
        """Record a request that failed after all its attempts, with an error from `SERVER_AWAY`.

        Ignore the error if the server has answered a request since `sent_s`, the time of the first attempt in
        `time.monotonic()` seconds. Some servers fail for a single item, so ask a test question after SERVER_ERROR.
        """
        if error.kind is not RemoteFault.SERVER_ERROR:
            self._away(error, sent_s)
            return
        async with self._testing:  # one test question for all requests that failed together
            if not self._may_be_away(sent_s):
                return
            found: RemoteError | None = error
            try:
                async with asyncio.timeout(self._probe_timeout_s):
                    found = await self._test(error)
            except TimeoutError:
                _log.debug("judge %s: its server does not answer a test question in time", self._name)
            if found is None:
                self.succeeded()
            else:
                self._away(found, sent_s)

    def _may_be_away(self, sent_s: float) -> bool:
        return self._succeeded_s <= sent_s and self._failure is None

    def _away(self, error: RemoteError, sent_s: float) -> None:
        if not self._may_be_away(sent_s):
            return
        _log.warning("judge %s: %s (%s)", self._name, error.failure.message, error.kind.value)
        self._failure = error.failure
        if self._probing is None or self._probing.done():
            # Use a separate context, because later log records are not about this request.
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
            except Exception as error:  # noqa: BLE001 - if probes stopped, the judge would stay down forever
                _log.error("judge %s: a probe of its server raised %s", self._name, type(error).__qualname__)
            else:
                self.succeeded()


@dataclass(eq=False, slots=True)
class _Waiting:
    """A waiting question. `answer` is cancelled if the caller leaves.

    The answer None means that the question has a place, and its caller sends it alone.
    """

    question: Question
    subject: Hashable
    deadline_s: float | None
    answer: asyncio.Future[Answered | None]
    context: contextvars.Context
    caller: str
    started_s: float | None = None
    request: "_Request | None" = None
    has_place: bool = False


@dataclass(eq=False, slots=True)
class _Request:
    members: list[_Waiting]
    task: asyncio.Task[None] = field(init=False)


class RequestQueue:
    """A queue that limits concurrent requests. For one event loop only.

    Callers take turns. A request contains a caller's oldest question and waiting questions that may share the request.
    No question waits for its caller's later questions.

    Args:
        send: Function that sends questions in one request, with their latest deadline in `time.monotonic()` seconds,
            and returns one answer per question. If there are several questions, None instead of an answer means that
            this question must be sent again alone.
    """

    def __init__(self, places: Places, questions_per_request: int, send: SendQuestions) -> None:
        self._places = places
        self._questions_per_request = questions_per_request
        self._send = send
        self._callers: OrderedDict[str, OrderedDict[_Waiting, None]] = OrderedDict()  # ordered sets of questions
        self._groups: dict[Hashable, dict[_Waiting, None]] = {}  # waiting questions by subject
        self._running: set[asyncio.Task[None]] = set()
        self._sending: set[asyncio.Task[Any]] = set()
        """The callers' tasks that send their own question. This needs no further task for each question."""
        self._nobody_sends = asyncio.Event()
        self._starts_soon = False
        self._looking_again: asyncio.TimerHandle | None = None
        self._closed = False

    async def ask(self, question: Question, subject: Hashable, deadline_s: float | None, timing: Timing) -> Answered:
        """Send a question and return the answer; raise RemoteError on failure.

        Questions with equal subjects may share a request; a question with the subject None is sent alone. If you cancel
        this call, the other questions in the request continue.

        The deadline `deadline_s`, in `time.monotonic()` seconds, limits the attempts, but does not end this call.
        """
        queued_s = time.monotonic()
        if subject is None and not self._callers and not self._closed and self._places.take():
            try:
                return await self._send_alone(question, deadline_s)
            finally:
                timing.inference_s += time.monotonic() - queued_s
                self._leave_place()
        loop = asyncio.get_running_loop()
        context = contextvars.copy_context()
        one = _Waiting(question, subject, deadline_s, loop.create_future(), context, current_caller())
        self._callers.setdefault(one.caller, OrderedDict())[one] = None
        if subject is not None:
            self._groups.setdefault(subject, {})[one] = None
        self._start_soon()
        try:
            answered = await one.answer
            return await self._send_alone(question, deadline_s) if answered is None else answered
        finally:
            ended_s = time.monotonic()
            started_s = ended_s if one.started_s is None else one.started_s
            timing.queue_s += started_s - queued_s
            timing.inference_s += ended_s - started_s
            self._leave(one)
            if one.has_place:
                self._leave_place()

    async def close(self) -> None:
        """Cancel running requests and waiting questions."""
        self._closed = True
        for waiting in self._callers.values():
            for one in waiting:
                one.answer.cancel()
        for task in (*self._running, *self._sending):
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        if self._sending:
            self._nobody_sends.clear()
            await self._nobody_sends.wait()
        if self._looking_again is not None:
            self._looking_again.cancel()
        self._places.close()

    async def _send_alone(self, question: Question, deadline_s: float | None) -> Answered:
        """Send a question that has a place, in the caller's task."""
        task = asyncio.current_task()
        if task is None or self._is_closed():
            raise asyncio.CancelledError
        self._sending.add(task)
        try:
            (answered,) = await self._send((question,), deadline_s)
        except asyncio.CancelledError:
            if self._is_closed():
                task.uncancel()  # `close` ends the question, but not its caller
            raise
        finally:
            self._sending.discard(task)
            if not self._sending:
                self._nobody_sends.set()
        if answered is None:
            raise TypeError("only one of several questions may be sent again")
        return answered

    def _is_closed(self) -> bool:
        return self._closed

    def _leave_place(self) -> None:
        self._places.leave()
        self._start_soon()

    def _start_soon(self) -> None:
        # Start in the loop's next turn, so that questions from this turn can share the request.
        if not self._starts_soon:
            self._starts_soon = True
            asyncio.get_running_loop().call_soon(self._start)

    def _start(self) -> None:
        self._starts_soon = False
        if self._closed:
            return
        while (members := self._next_members()) and self._places.take():
            self._callers.move_to_end(members[0].caller)
            if members[0].subject is None:
                (one,) = members
                one.has_place = True
                one.answer.set_result(None)
            else:
                self._run_soon(_Request(members))
            for one in members:
                self._remove(one)
                if one.started_s is None:
                    one.started_s = time.monotonic()
        wait_s = self._places.wish(more=bool(members))
        if wait_s is not None and self._looking_again is None:
            self._looking_again = asyncio.get_running_loop().call_later(wait_s, self._look_again)

    def _run_soon(self, request: _Request) -> None:
        context = request.members[0].context
        request.task = asyncio.get_running_loop().create_task(self._run(request), context=context)
        self._running.add(request.task)
        request.task.add_done_callback(functools.partial(self._on_done, request))
        for one in request.members:
            one.request = request

    def _look_again(self) -> None:
        self._looking_again = None
        self._start()

    def _next_members(self) -> list[_Waiting]:
        # Skip questions that were cancelled in this turn of the loop but have not left the queue yet.
        waiting = itertools.chain.from_iterable(self._callers.values())
        first = next((one for one in waiting if not one.answer.done()), None)
        if first is None or first.subject is None:
            return [] if first is None else [first]
        group = (one for one in self._groups[first.subject] if not one.answer.done())
        return list(islice(group, self._questions_per_request))

    def _remove(self, one: _Waiting) -> None:
        mine = self._callers.get(one.caller)
        if mine is None or one not in mine:
            return
        del mine[one]
        if not mine:
            del self._callers[one.caller]
        if one.subject is not None:
            del self._groups[one.subject][one]
            if not self._groups[one.subject]:
                del self._groups[one.subject]

    def _on_done(self, request: _Request, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        for one in request.members:
            one.answer.cancel()  # has no effect on an answered question
        self._leave_place()

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
        except Exception as error:  # noqa: BLE001 - waiting callers get any error
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
        """Queue each of these questions again for a separate request, before others. Their caller's turn is next."""
        for one in reversed(retried):
            request.members.remove(one)
            one.request = one.subject = None
            mine = self._callers.setdefault(one.caller, OrderedDict())
            mine[one] = None
            mine.move_to_end(one, last=False)
            self._callers.move_to_end(one.caller, last=False)
