"""A judge behind a server: what the two kinds of servers have in common."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final, Protocol, TypeVar

from gradewire_server.domain.judge import Choice, Choose, Generate, Generated, JudgePrompt
from gradewire_server.domain.ports import ModelStatus
from gradewire_server.domain.result import Failure, Status, Timing
from gradewire_server.judges.remote.availability import Reach
from gradewire_server.judges.remote.errors import AWAY, RETRIED, RemoteError, Trouble, late, too_long
from gradewire_server.judges.remote.labels import AMBIGUOUS, Labels, Step
from gradewire_server.judges.remote.observer import RemoteObserver, RemoteUsage
from gradewire_server.judges.remote.retries import Backoff
from gradewire_server.judges.remote.text import fitted, halved
from gradewire_server.settings.judge import RemoteJudgeConfig

_TIMEOUT: Final = Failure(Status.TIMEOUT, "the judge did not answer before the deadline")
_CLOSED: Final = Failure(Status.UNAVAILABLE, "the judge is being closed; try again", 1.0)
_MILLION: Final = 1e6

A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class Question:
    """One request.

    Attributes:
        prompt: What the judge is to see, not yet made harmless.
        options: Labels to choose from; empty for free text.
        max_tokens: Longest free text.
        stop: Texts that end it.
    """

    prompt: JudgePrompt
    options: tuple[str, ...] = ()
    max_tokens: int = 0
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered.

    Attributes:
        text: What the judge wrote, without what it was made to begin with.
        whole: Whether it ended by itself or at a stop.
        steps: Its tokens with the alternatives; None where the server does not give them.
        continued: Whether it goes on from the opening; otherwise the opening may be its begin.
        prompt_tokens, cached_tokens, generated_tokens: As RemoteUsage has them.
    """

    text: str
    whole: bool
    steps: tuple[Step, ...] | None
    continued: bool
    prompt_tokens: int = 0
    cached_tokens: int = 0
    generated_tokens: int = 0


class Server(Protocol):
    """One kind of server."""

    @property
    def lacks(self) -> str:
        """Names of what it does not do though its kind does, where that changes answers; ""."""

    async def ask(self, question: Question) -> Answer:
        """Has one question answered; raises RemoteError. Cancelling it cancels the request."""

    async def probe(self) -> None:
        """Asks for as little as possible; raises RemoteError while the server is of no use."""

    async def close(self) -> None:
        """Closes connections."""


class RemoteJudge:
    """See `Judge`.

    Args:
        status: Its public face.
        server: Where it runs.
        config: Limits and prices.
        observer: Told what happens.
        backoff: Waits between attempts.
    """

    def __init__(
        self,
        status: ModelStatus,
        server: Server,
        config: RemoteJudgeConfig,
        observer: RemoteObserver,
        *,
        backoff: Backoff | None = None,
    ) -> None:
        self._status = status
        self._server = server
        self._config = config
        self._observer = observer
        self._backoff = backoff or Backoff()
        self._permits = asyncio.Semaphore(config.max_in_flight)
        self._reach = Reach(status.name, server.probe)
        self._tasks: set[asyncio.Task[object]] = set()
        self._closed = False

    @property
    def status(self) -> ModelStatus:
        """See `Judge.status`. Verdicts that were read in another way are of another numeric class."""
        lacks = self._server.lacks
        if not lacks:
            return self._status
        return replace(
            self._status,
            numeric_class=f"{self._status.numeric_class} without {lacks}",
            remarks=(*self._status.remarks, f"Its server does not give what its kind can: {lacks}."),
        )

    async def choose(self, need: Choose, *, deadline_s: float | None) -> tuple[Choice | Failure, Timing]:
        """See `Judge.choose`."""
        if not Labels(need.options).distinct:
            return AMBIGUOUS, Timing()
        question = Question(need.prompt, options=need.options)
        return await self._answered(question, deadline_s, lambda answer, asked: _choice(need, answer, asked))

    async def generate(self, need: Generate, *, deadline_s: float | None) -> tuple[Generated | Failure, Timing]:
        """See `Judge.generate`."""
        question = Question(need.prompt, max_tokens=need.max_tokens, stop=need.stop)
        return await self._answered(question, deadline_s, lambda answer, asked: _generated(need, answer, asked))

    def trouble(self) -> str:
        """See `Judge.trouble`."""
        return self._reach.trouble

    async def close(self) -> None:
        """See `Judge.close`."""
        self._closed = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._reach.close()
        await self._server.close()

    async def _answered(
        self, question: Question, deadline_s: float | None, read: Callable[[Answer, JudgePrompt], A | Failure]
    ) -> tuple[A | Failure, Timing]:
        timing = Timing()
        prompt = fitted(question.prompt, self._config.max_prompt_characters)
        if prompt is None:
            return too_long().failure, timing
        if self._closed:
            return _CLOSED, timing
        # A task of its own, so that closing ends it with an answer where cancelling its caller ends it without one.
        work = asyncio.ensure_future(self._work(replace(question, prompt=prompt), deadline_s, timing))
        self._tasks.add(work)
        work.add_done_callback(self._tasks.discard)
        try:
            answer, asked = await work
        except RemoteError as error:
            return error.failure, timing
        except TimeoutError:
            return _TIMEOUT, timing
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if caller is None or caller.cancelling():
                raise
            return _CLOSED, timing
        return read(answer, asked), timing

    async def _work(self, question: Question, deadline_s: float | None, timing: Timing) -> tuple[Answer, JudgePrompt]:
        left_s = None if deadline_s is None else deadline_s - time.monotonic()
        async with asyncio.timeout(left_s):
            async with self._permit(timing):
                started_s = time.monotonic()
                try:
                    return await self._fitting(question, deadline_s)
                finally:
                    timing.inference_s += time.monotonic() - started_s

    @asynccontextmanager
    async def _permit(self, timing: Timing) -> AsyncIterator[None]:
        queued_s = time.monotonic()
        async with self._permits:
            timing.queue_s += time.monotonic() - queued_s
            yield

    async def _fitting(self, question: Question, deadline_s: float | None) -> tuple[Answer, JudgePrompt]:
        """Halves the prediction as long as the server says that the whole is too long for its model."""
        while True:
            try:
                return await self._with_retries(question, deadline_s), question.prompt
            except RemoteError as error:
                shorter = halved(question.prompt) if error.kind is Trouble.TOO_LONG else None
                if shorter is None:
                    raise
                question = replace(question, prompt=shorter)

    async def _with_retries(self, question: Question, deadline_s: float | None) -> Answer:
        # What waits keeps its permit: a server that wants fewer requests gets fewer.
        first_s = time.monotonic()
        attempt = 0
        while True:
            refusal = self._reach.refusal()
            if refusal is not None:
                raise RemoteError(Trouble.UNREACHABLE, refusal)
            attempt += 1
            try:
                return await self._send(question)
            except RemoteError as error:
                wait_s = self._backoff.wait_s(attempt, error.retry_after_s)
                late_s = min(deadline_s or float("inf"), time.monotonic() + self._config.timeout_s)
                if error.kind in RETRIED and attempt < self._config.attempts and time.monotonic() + wait_s < late_s:
                    self._observer.retried(error.kind.value)
                    await asyncio.sleep(wait_s)
                    continue
                if error.kind in AWAY:
                    self._reach.failed(error, sent_s=first_s)
                raise RemoteError(error.kind, _with_hint(error.failure, wait_s)) from error

    async def _send(self, question: Question) -> Answer:
        self._observer.in_flight(1)
        started_s = time.monotonic()
        try:
            async with asyncio.timeout(self._config.timeout_s) as limit:
                answer = await self._server.ask(question)
        except TimeoutError as error:
            if limit.expired():
                raise late(self._config.timeout_s) from error
            raise
        finally:
            self._observer.in_flight(-1)
        self._reach.well()
        price = self._config
        cost = (answer.prompt_tokens * price.input_price + answer.generated_tokens * price.output_price) / _MILLION
        self._observer.answered(
            RemoteUsage(
                answer.prompt_tokens,
                answer.cached_tokens,
                answer.generated_tokens,
                cost,
                time.monotonic() - started_s,
            )
        )
        return answer


def _choice(need: Choose, answer: Answer, asked: JudgePrompt) -> Choice | Failure:
    labels = Labels(need.options, "" if answer.continued else need.prompt.opening)
    steps = answer.steps
    reading = labels.read_text(answer.text, whole=answer.whole) if steps is None else labels.read(steps)
    if isinstance(reading, Failure):
        return reading
    truncated = asked.prediction != need.prompt.prediction
    return Choice(reading.probabilities, reading.mass, answer.prompt_tokens, truncated)


def _generated(need: Generate, answer: Answer, asked: JudgePrompt) -> Generated:
    text, whole = answer.text, answer.whole
    opening = need.prompt.opening
    begin = text.lstrip()
    if not answer.continued and opening and begin.casefold().startswith(opening.casefold()):
        text = begin[len(opening) :]
    ends = [found for found in (text.find(stop) for stop in need.stop if stop) if found >= 0]
    if ends:
        text, whole = text[: min(ends)], True
    truncated = asked.prediction != need.prompt.prediction
    return Generated(text.strip(), whole, answer.prompt_tokens, answer.generated_tokens, truncated)


def _with_hint(failure: Failure, wait_s: float) -> Failure:
    if failure.status is not Status.UNAVAILABLE or failure.retry_after_s is not None:
        return failure
    return replace(failure, retry_after_s=round(wait_s, 3))
