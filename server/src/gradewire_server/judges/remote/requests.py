"""Requests to a judge's server: queued, bundled, limited in time, repeated where that helps."""

import asyncio
import contextvars
import functools
import logging
import time
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol, TypeAlias, TypeVar

from gradewire_server.domain.items import Failure, Status, Timing
from gradewire_server.domain.judge import JudgePrompt
from gradewire_server.judges.backend import RemoteJudgeObserver, RequestUsage
from gradewire_server.judges.remote.server import (
    RETRYABLE,
    SERVER_AWAY,
    Answer,
    Paid,
    Question,
    RemoteError,
    RemoteFault,
    Server,
    late,
)
from gradewire_server.resilience import Backoff
from gradewire_server.settings.judge import RemoteJudgeConfig

_log = logging.getLogger(__name__)

_PROBES: Final = Backoff(base_s=1.0, cap_s=15.0)
_SHORTEST_WAIT_S: Final = 0.25
_PROBE_TIMEOUT_S: Final = 10.0


class ServerAvailability:
    """Remembers why a server cannot answer, and probes it until it can again.

    Args:
        name: Of the judge, for the log.
        probe: Asks the server for as little as possible; raises RemoteError while it cannot answer.
        backoff: Waits between probes.
        probe_timeout_s: Longest wait for one; a server that is silent is still away.
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
        """Why the server cannot answer now; empty when it can."""
        return "" if self._failure is None else self._failure.message

    def refusal(self) -> Failure | None:
        """What callers are told at once while the server cannot answer; says how long to wait where that helps."""
        if self._failure is None or self._failure.status is not Status.UNAVAILABLE:
            return self._failure
        left_s = max(_SHORTEST_WAIT_S, self._next_probe_s - time.monotonic())
        return Failure(self._failure.status, self._failure.message, round(left_s, 3))

    def succeeded(self) -> None:
        """Notes that a request was answered."""
        self._succeeded_s = time.monotonic()
        if self._failure is not None:
            _log.info("judge %s: its server answers again", self._name)
        self._failure = None

    def failed(self, error: RemoteError, *, sent_s: float) -> None:
        """Notes that a request failed after all its attempts.

        Args:
            error: Of a kind in `SERVER_AWAY`.
            sent_s: When it was first sent: where another request was answered since then, this one alone is to blame.
        """
        if self._succeeded_s > sent_s or self._failure is not None:
            return
        _log.warning("judge %s: %s (%s)", self._name, error.failure.message, error.kind.value)
        self._failure = error.failure
        if self._probing is None or self._probing.done():
            # A context of its own: what it logs later is not about this request.
            self._probing = asyncio.create_task(self._probe_until_it_answers(), context=contextvars.Context())

    async def close(self) -> None:
        """Ends the probes."""
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


_MILLION: Final = 1e6
T = TypeVar("T")
_Send: TypeAlias = Callable[[], Awaitable[tuple[T, Sequence[Answer]]]]
"""Sends one request; gives what is returned to who asked, and the answers whose tokens are counted."""


class ServerRequests:
    """Asks one server.

    Args:
        name: Of the judge, for the log.
        server: Closed with this.
        config: Limits and prices.
        observer: Hears of the requests.
        backoff: Waits between attempts.
    """

    def __init__(
        self, name: str, server: Server, config: RemoteJudgeConfig, observer: RemoteJudgeObserver, backoff: Backoff
    ) -> None:
        self._server = server
        self._config = config
        self._observer = observer
        self._backoff = backoff
        self._availability = ServerAvailability(name, server.probe)

    @property
    def trouble(self) -> str:
        """Why the server cannot answer now; empty when it can."""
        return self._availability.trouble

    async def ask(self, question: Question, deadline_s: float | None) -> Answer:
        """Has one question answered; raises RemoteError.

        Between attempts its caller keeps the permit: a server that wants fewer requests gets fewer.
        """

        async def send() -> tuple[Answer, Sequence[Answer]]:
            answer = await self._server.ask(question)
            return answer, (answer,)

        return await self._request(send, deadline_s)

    async def ask_together(
        self, questions: Sequence[Question], deadline_s: float | None
    ) -> Sequence[Answer | RemoteError]:
        """Likewise, by one request; what is wrong with one answer stands in its place."""

        async def send() -> tuple[Sequence[Answer | RemoteError], Sequence[Answer]]:
            answers = await self._server.ask_together(questions)
            return answers, [answer for answer in answers if isinstance(answer, Answer)]

        return await self._request(send, deadline_s)

    async def close(self) -> None:
        """Ends the probes and closes the server's connections."""
        await self._availability.close()
        await self._server.close()

    async def _request(self, send: _Send[T], deadline_s: float | None) -> T:
        first_s = time.monotonic()
        attempt = 0
        while True:
            refusal = self._availability.refusal()
            if refusal is not None:
                raise RemoteError(RemoteFault.UNREACHABLE, refusal)
            attempt += 1
            try:
                return await self._sent(send)
            except RemoteError as error:
                wait_s = self._backoff.wait_s(attempt, error.retry_after_s)
                late_s = min(deadline_s or float("inf"), time.monotonic() + self._config.timeout_s)
                if error.kind in RETRYABLE and attempt < self._config.attempts and time.monotonic() + wait_s < late_s:
                    self._observer.request_retried(error.kind.value)
                    await asyncio.sleep(wait_s)
                    continue
                if error.kind in SERVER_AWAY:
                    self._availability.failed(error, sent_s=first_s)
                raise RemoteError(error.kind, _with_hint(error.failure, wait_s)) from error

    async def _sent(self, send: _Send[T]) -> T:
        self._observer.requests_in_flight(1)
        started_s = time.monotonic()
        try:
            async with asyncio.timeout(self._config.timeout_s) as limit:
                result, answers = await send()
        except TimeoutError as error:
            if limit.expired():
                raise late(self._config.url, self._config.timeout_s) from error
            raise
        finally:
            self._observer.requests_in_flight(-1)
        if answers:
            self._availability.succeeded()
            self._observer.request_answered(self._usage(answers, time.monotonic() - started_s))
        return result

    def _usage(self, answers: Sequence[Answer], duration_s: float) -> RequestUsage:
        paid = Paid()
        for answer in answers:
            paid = paid.plus(answer)
        read, written = paid.prompt_tokens, paid.generated_tokens
        costs = (_priced(read, self._config.input_price), _priced(written, self._config.output_price))
        cost = None if costs[0] is None or costs[1] is None else costs[0] + costs[1]
        return RequestUsage(read, paid.cached_tokens, written, cost, duration_s)


def _priced(tokens: int | None, price: float | None) -> float | None:
    if tokens == 0:
        return 0.0
    return None if tokens is None or price is None else tokens * price / _MILLION


def _with_hint(failure: Failure, wait_s: float) -> Failure:
    if failure.status is not Status.UNAVAILABLE or failure.retry_after_s is not None:
        return failure
    return replace(failure, retry_after_s=round(wait_s, 3))


Answered: TypeAlias = tuple[Answer, JudgePrompt]
"""What a server answered, and the prompt as it was sent."""
SendSingle: TypeAlias = Callable[[Question, float | None], Awaitable[Answered]]
BatchReplies: TypeAlias = Sequence[Answered | None]
SendBatch: TypeAlias = Callable[[Sequence[Question], float | None], Awaitable[BatchReplies]]


class CanShareRequest(Protocol):
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

    def __init__(self, max_in_flight: int, alone: SendSingle, together: SendBatch, takes: CanShareRequest) -> None:
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
            request.task.add_done_callback(functools.partial(self._on_done, request))
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

    def _on_done(self, request: _Request, task: asyncio.Task[None]) -> None:
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
        retried: list[_Waiting] = []
        for one, answer in zip(members, answers, strict=True):
            if answer is None:
                retried.append(one)
            elif not one.answer.done():
                one.answer.set_result(answer)
        self._ask_apart(request, retried)

    def _ask_apart(self, request: _Request, retried: Sequence[_Waiting]) -> None:
        """Has those of them who stayed wait again, before all others, each for a request that ends when it leaves."""
        stayed = [one for one in retried if one in request.members]
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
