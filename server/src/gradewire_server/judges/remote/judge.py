"""A judge on a server of any type, and the backend for this judge."""

import asyncio
import functools
import hashlib
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from typing_extensions import override

from gradewire_proto.wire_rules import Backoff
from gradewire_server.domain.items import Failure, Status, Timing, quoted
from gradewire_server.domain.judge import Choice, Choose, Generate, Generated, JudgeAnswer, JudgeNeed, JudgePrompt
from gradewire_server.domain.needs import AnswerSource
from gradewire_server.domain.ports import JudgeReply, ModelStatus
from gradewire_server.judges.backend import NO_TOKENS, Judge, JudgeBackend, JudgeUnavailableError, failed_reply
from gradewire_server.judges.connections.places import OwnPlaces, Places
from gradewire_server.judges.prometheus import JudgeTelemetry, Tokens
from gradewire_server.judges.prompt_texts import first_stop, fitted, halved
from gradewire_server.judges.remote.errors import (
    MODEL_SETTING,
    REQUEST_AT_FAULT,
    RETRYABLE,
    SERVER_AWAY,
    RemoteError,
    RemoteFault,
    late,
    too_long,
)
from gradewire_server.judges.remote.labels import AMBIGUOUS, UNREADABLE, labels_of
from gradewire_server.judges.remote.requests import Answered, RequestQueue, ServerAvailability
from gradewire_server.judges.remote.server import Answer, Question, Server
from gradewire_server.settings.judge import RemoteJudgeConfig

_THINKING_HINT: Final = (
    "if the judge thinks before it answers, set judge_reasoning_tokens (--judge-reasoning-tokens) to more tokens than "
    "its thoughts need"
)
_EXHAUSTED: Final = Failure(
    Status.UNPARSABLE, f"the judge's server used up its token limit before it answered: {_THINKING_HINT}"
)
_TIMEOUT: Final = Failure(Status.TIMEOUT, "the judge did not answer before the deadline")
_WRITES_NOTHING: Final = Failure(
    Status.INVALID_PARAMETER,
    "this judge is a decision model: it chooses between labels and cannot write. Leave out reasons and synthetic "
    "answers that a judge writes (lave?mode=rating, judge_verdict?style=plain, judge_grade?style=match, "
    "smile?synthetic=none), or ask a judge that writes (judge_backend embedded, openai or triton)",
)
_CLOSED: Final = Failure(Status.UNAVAILABLE, "the judge is being closed. Try again", 1.0)

_RECIPE: Final = 3
"""A version that the digest includes. Increase the version if you change requests or the parsing of labels."""
_BACKOFF: Final = Backoff(0.5, 8.0)
_OPEN_TIMEOUT_S: Final = 15.0
_RETRY_S: Final = 2.0
_MILLION: Final = 1e6


def _read_or_bill(need: JudgeNeed, answer: Answer, sent: JudgePrompt) -> JudgeAnswer | Failure:
    """Convert a server's answer like `_read`. An answer that cannot be read has its price too."""
    read = _read(need, answer, sent)
    if not isinstance(read, Failure):
        return read
    return replace(read, prompt_tokens=answer.tokens.prompt, generated_tokens=answer.tokens.generated)


def _read(need: JudgeNeed, answer: Answer, sent: JudgePrompt) -> JudgeAnswer | Failure:
    """Convert a server's answer. `sent` is the prompt that was sent, perhaps with a cut prediction."""
    if answer.exhausted:
        return _EXHAUSTED
    truncated = answer.truncated or sent.prediction != need.prompt.prediction
    if isinstance(need, Choose):
        return _read_choice(need, answer, truncated=truncated)
    return _read_text(need, answer, truncated=truncated)


def _read_choice(need: Choose, answer: Answer, *, truncated: bool) -> Choice | Failure:
    counts = answer.tokens.prompt, truncated, answer.tokens.generated, answer.demonstrated
    if answer.probabilities is not None:
        return Choice(answer.probabilities, answer.mass, *counts)
    labels = labels_of(need.options, "" if answer.continued else need.prompt.opening)
    steps = answer.steps
    reading = labels.read_text(answer.text, whole=answer.whole) if steps is None else labels.read(steps)
    if isinstance(reading, Failure) and (reading is UNREADABLE or steps is None):
        # A judge that can only write labels may have written a label that it finds almost impossible.
        improbable = ", or with a very improbable label" if reading is UNREADABLE else ""
        wrote = f"{reading.message}{improbable}. The judge wrote {quoted(answer.text.strip())}"
        return replace(reading, message=wrote if answer.whole else f"{wrote} and was cut short; {_THINKING_HINT}")
    return reading if isinstance(reading, Failure) else Choice(reading.probabilities, reading.mass, *counts)


def _read_text(need: Generate, answer: Answer, *, truncated: bool) -> Generated:
    text, whole = answer.text, answer.whole
    opening = need.prompt.opening
    begin = text.lstrip()
    if not answer.continued and opening and begin.casefold().startswith(opening.casefold()):
        text = begin[len(opening) :]
    end = first_stop(text, need.stop)
    if end is not None:
        text, whole = text[:end], True
    return Generated(text.strip(), whole, answer.tokens.prompt, answer.tokens.generated, truncated)


class RemoteJudge(Judge):
    """A judge on a server. `close` also closes the connections to the server."""

    def __init__(
        self, status: ModelStatus, server: Server, config: RemoteJudgeConfig, telemetry: JudgeTelemetry
    ) -> None:
        self._status = status
        self._server = server
        self._config = config
        self._telemetry = telemetry
        self._availability = ServerAvailability(status.name, server.probe, server.fails_a_test)
        self._queue = RequestQueue(_places(config), server.questions_per_request, self._send)
        self._closed = False
        self._shown: tuple[tuple[ModelStatus, str, str, bool | None], ModelStatus] | None = None

    @property
    @override
    def status(self) -> ModelStatus:
        server = self._server
        said = server.sees_images
        known = (server.described(self._status), server.lacks, server.uses, said)
        # The status is read several times for every item, and hardly ever changes.
        if self._shown is None or self._shown[0] != known:
            self._shown = known, self._described(*known[:3], said=said)
        return self._shown[1]

    def _described(self, own: ModelStatus, lacks: str, uses: str, *, said: bool | None) -> ModelStatus:
        sees = {"yes": said is not False, "auto": said is True, "no": False}[self._config.sees_images]
        status = own if sees == own.sees_images else replace(own, sees_images=sees)
        # Another way of asking gives other verdicts, so report another precision.
        asked = f"{status.precision} with {uses}" if uses else status.precision
        if not lacks:
            return replace(status, precision=asked) if uses else status
        return replace(
            status,
            precision=f"{asked} without {lacks}",
            remarks=(*status.remarks, f"The judge's server lacks features that similar servers have: {lacks}."),
        )

    @override
    async def answer(self, need: JudgeNeed, *, deadline_s: float | None = None) -> JudgeReply[Any]:
        prompt = self._server.shown(need.prompt)
        if isinstance(need, Choose):
            if self._server.reads_texts and not labels_of(need.options).distinct:
                return failed_reply(AMBIGUOUS)
            question = Question(prompt, options=need.options, namespace=need.namespace)
        else:
            if not self._server.writes:
                return failed_reply(_WRITES_NOTHING)
            if need.max_tokens < 1:
                return failed_reply(NO_TOKENS)
            question = Question(prompt, max_tokens=need.max_tokens, stop=need.stop, namespace=need.namespace)
        timing = Timing()
        answered = await self._answered(question, deadline_s, timing)
        answer = answered if isinstance(answered, Failure) else _read_or_bill(need, *answered)
        return JudgeReply(answer, AnswerSource.COMPUTED, timing)

    @override
    def trouble(self) -> str:
        return self._availability.trouble or self._server.trouble

    @override
    async def close(self) -> None:
        self._closed = True
        await self._queue.close()
        await self._availability.close()
        await self._server.close()

    async def _answered(self, question: Question, deadline_s: float | None, timing: Timing) -> Answered | Failure:
        prompt = fitted(question.prompt, self._config.max_prompt_characters)
        if prompt is None:
            return too_long().failure
        if self._closed:
            return _CLOSED
        if prompt is not question.prompt:
            question = replace(question, prompt=prompt)
        try:
            async with asyncio.timeout_at(deadline_s):  # the loop has the same clock
                subject = self._server.subject(question)
                # Questions of different tenants never share a request.
                shared = None if subject is None else (question.namespace, subject)
                return await self._queue.ask(question, shared, deadline_s, timing)
        except RemoteError as error:
            return error.failure
        except TimeoutError:
            return _TIMEOUT
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if caller is None or caller.cancelling():
                raise
            return _CLOSED

    async def _send(self, questions: Sequence[Question], deadline_s: float | None) -> list[Answered | None]:
        """Send questions. If there are several, None in the result marks a question that must be sent again alone."""
        if len(questions) == 1:
            return [await self._send_one(questions[0], deadline_s)]
        try:
            answers = await self._ask(questions, deadline_s)
        except RemoteError as error:
            if error.kind in REQUEST_AT_FAULT:
                return [None] * len(questions)
            raise
        return [
            (answer, question.prompt) if isinstance(answer, Answer) else None
            for answer, question in zip(answers, questions, strict=True)
        ]

    async def _send_one(self, question: Question, deadline_s: float | None) -> Answered:
        """Send one question. If the server finds the prompt too long, halve the prediction and try again."""
        while True:
            try:
                (answer,) = await self._ask([question], deadline_s)
            except RemoteError as error:
                answer = error
            if isinstance(answer, Answer):
                return answer, question.prompt
            if answer.kind is not RemoteFault.TOO_LONG:
                raise answer
            shorter = halved(question.prompt)
            if shorter is None:
                raise too_long(pictures=bool(question.prompt.images)) from answer
            question = replace(question, prompt=shorter)

    async def _ask(self, questions: Sequence[Question], deadline_s: float | None) -> Sequence[Answer | RemoteError]:
        """Send questions in one request, with retries; raise RemoteError if the whole request fails.

        Returns:
            An answer for each question or, only if there are several questions, an error.
        """
        first_s = time.monotonic()
        attempt = 0
        while True:
            refusal = self._availability.refusal()
            if refusal is not None:
                raise RemoteError(RemoteFault.UNREACHABLE, refusal.status, refusal.message, refusal.retry_after_s)
            attempt += 1
            try:
                return await self._request(questions)
            except RemoteError as error:
                failure = error.failure
                wait_s = _BACKOFF.wait_s(attempt)
                if failure.retry_after_s is not None:
                    wait_s = failure.retry_after_s + min(wait_s, _BACKOFF.first_s)
                late_s = min(deadline_s or float("inf"), time.monotonic() + self._config.timeout_s)
                if error.kind in RETRYABLE and attempt < self._config.attempts and time.monotonic() + wait_s < late_s:
                    self._telemetry.request_retried(error.kind.value)
                    await asyncio.sleep(wait_s)
                    continue
                if error.kind in SERVER_AWAY:
                    await self._availability.failed(error, sent_s=first_s)
                if failure.status is Status.UNAVAILABLE and failure.retry_after_s is None:
                    error.failure = replace(failure, retry_after_s=round(wait_s, 3))
                raise

    async def _request(self, questions: Sequence[Question]) -> Sequence[Answer | RemoteError]:
        self._telemetry.requests_in_flight(1)
        started_s = time.monotonic()
        try:
            async with asyncio.timeout(self._config.timeout_s) as limit:
                answers = await self._server.ask(questions)
        except TimeoutError as error:
            if limit.expired():
                raise late(self._config.url, self._config.timeout_s) from error
            raise
        finally:
            self._telemetry.requests_in_flight(-1)
        good = [answer for answer in answers if isinstance(answer, Answer)]
        if good:
            self._availability.succeeded()
            self._count(good, time.monotonic() - started_s)
        return answers

    def _count(self, answers: Sequence[Answer], duration_s: float) -> None:
        used = functools.reduce(Tokens.plus, (answer.tokens for answer in answers))
        cost = None
        if self._config.prices is not None and used.prompt is not None and used.generated is not None:
            read_price, written_price = self._config.prices
            cost = (used.prompt * read_price + used.generated * written_price) / _MILLION
        self._telemetry.request_answered(used, cost, duration_s)


class RemoteBackend(JudgeBackend):
    """One judge on one server.

    Args:
        backend: The type of server, which the digest includes.
    """

    def __init__(
        self,
        backend: str,
        config: RemoteJudgeConfig,
        telemetry: JudgeTelemetry,
        make_server: Callable[[], Awaitable[Server]],
        *,
        remarks: tuple[str, ...] = (),
    ) -> None:
        self._config = config
        self._telemetry = telemetry
        self._make_server = make_server
        status = _status(backend, config)
        self._status = replace(status, remarks=(*status.remarks, *remarks))

    @override
    def listed(self) -> Sequence[ModelStatus]:
        return (self._status,)

    @override
    async def open(self, name: str) -> RemoteJudge:
        if name not in {"", self._config.model}:
            message = f"the judge's server only runs {self._config.model!r}. Check {MODEL_SETTING}"
            raise JudgeUnavailableError(Failure(Status.MODEL_UNAVAILABLE, message))
        server = await self._make_server()
        try:
            async with asyncio.timeout(_OPEN_TIMEOUT_S):
                await server.find_out()
            judge = RemoteJudge(replace(self._status, state="loaded"), server, self._config, self._telemetry)
        except BaseException as error:
            await server.close()
            if isinstance(error, TimeoutError):
                raise _unavailable(late(self._config.url, _OPEN_TIMEOUT_S)) from error
            if isinstance(error, RemoteError):
                raise _unavailable(error) from error
            raise
        return judge


def _places(config: RemoteJudgeConfig) -> Places:
    if config.places_file is None:
        return OwnPlaces(config.max_in_flight)
    from gradewire_server.judges.connections.shared_places import SharedPlaces  # noqa: PLC0415 - only Linux has its locks

    return SharedPlaces(config.places_file, config.max_in_flight, config.processes)


def _status(backend: str, config: RemoteJudgeConfig) -> ModelStatus:
    asked = f"gradewire remote judge {_RECIPE}\0{backend}\0{config.model}\0{config.assistant_prefill}"
    thinks: tuple[str, ...] = ()
    if config.reasoning_tokens:
        asked += f"\0thinks {config.reasoning_tokens}"
        thinks = (f"Thinks for up to {config.reasoning_tokens} tokens before each answer (judge_reasoning_tokens).",)
    return ModelStatus(
        name=config.model,
        digest=hashlib.sha256(asked.encode()).hexdigest(),
        state="built",
        precision="remote",
        kind="judge",
        sees_images=config.sees_images == "yes",
        remarks=(
            f"Runs on a separate server (backend {backend}).",
            "Only the judge's name identifies its scores, because gradewire does not know the server's weights.",
            *thinks,
        ),
    )


def _unavailable(error: RemoteError) -> JudgeUnavailableError:
    again = error.failure.status is Status.UNAVAILABLE
    return JudgeUnavailableError(replace(error.failure, retry_after_s=_RETRY_S) if again else error.failure)
