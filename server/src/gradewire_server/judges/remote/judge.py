"""A judge behind a server, and the backend with its one judge: the parts that all kinds of servers share."""

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final

from typing_extensions import override

from gradewire_server.domain.items import Failure, Status, Timing, quoted
from gradewire_server.domain.judge import Choice, Choose, Generate, Generated, JudgePrompt
from gradewire_server.domain.needs import AnswerSource
from gradewire_server.domain.ports import A, JudgeReply, ModelStatus
from gradewire_server.judges.backend import Judge, JudgeBackend, JudgeUnavailableError, RemoteJudgeObserver
from gradewire_server.judges.remote.labels import AMBIGUOUS, UNREADABLE, Labels
from gradewire_server.judges.remote.requests import Answered, BatchReplies, RequestQueue, ServerRequests
from gradewire_server.judges.remote.server import (
    MODEL_SETTING,
    REQUEST_AT_FAULT,
    Answer,
    Question,
    RemoteError,
    RemoteFault,
    Server,
    late,
    too_long,
)
from gradewire_server.judges.texts import first_stop, fitted, halved
from gradewire_server.resilience import Backoff
from gradewire_server.settings.judge import RemoteJudgeConfig

_THINKS: Final = (
    "if the judge thinks before it answers, set judge_reasoning_tokens (--judge-reasoning-tokens) to more than its "
    "thoughts take"
)
EXHAUSTED: Final = Failure(
    Status.UNPARSABLE, f"the judge's server used up the tokens that it may write before it answered: {_THINKS}"
)


def read_choice(need: Choose, answer: Answer, sent: JudgePrompt) -> Choice | Failure:
    """The probabilities of the options.

    Args:
        need: What was asked for.
        answer: What the server answered.
        sent: The prompt as it was sent: its prediction may have been cut.
    """
    if answer.exhausted:
        return EXHAUSTED
    truncated = sent.prediction != need.prompt.prediction
    counts = answer.prompt_tokens, truncated, answer.generated_tokens, answer.demonstrated
    if answer.probabilities is not None:
        return Choice(answer.probabilities, None, *counts)
    labels = Labels(need.options, "" if answer.continued else need.prompt.opening)
    steps = answer.steps
    reading = labels.read_text(answer.text, whole=answer.whole) if steps is None else labels.read(steps)
    if isinstance(reading, Failure):
        return _with_reply(reading, answer) if reading is UNREADABLE else reading
    return Choice(reading.probabilities, reading.mass, *counts)


def read_text(need: Generate, answer: Answer, sent: JudgePrompt) -> Generated | Failure:
    """The text, without the opening that the judge may have repeated and without what ended it; otherwise as above."""
    if answer.exhausted:
        return EXHAUSTED
    text, whole = answer.text, answer.whole
    opening = need.prompt.opening
    begin = text.lstrip()
    if not answer.continued and opening and begin.casefold().startswith(opening.casefold()):
        text = begin[len(opening) :]
    end = first_stop(text, need.stop)
    if end is not None:
        text, whole = text[:end], True
    truncated = sent.prediction != need.prompt.prediction
    return Generated(text.strip(), whole, answer.prompt_tokens, answer.generated_tokens, truncated)


def _with_reply(failure: Failure, answer: Answer) -> Failure:
    # Held to the labels it may have written one that it finds all but impossible.
    wrote = f"{failure.message}, or finds them all but impossible: it wrote {quoted(answer.text.strip())}"
    return replace(failure, message=wrote if answer.whole else f"{wrote} and was cut short; {_THINKS}")


_TIMEOUT: Final = Failure(Status.TIMEOUT, "the judge did not answer before the deadline")
_WRITES_NOTHING: Final = Failure(
    Status.INVALID_PARAMETER,
    "this judge is a decision model: it chooses between labels and cannot write. Leave out reasons and synthetic "
    "answers that a judge writes (lave?mode=rating, judge_verdict?style=plain, judge_grade?style=match, "
    "smile?synthetic=none), or ask a judge that writes (judge_backend embedded, openai or triton)",
)
_CLOSED: Final = Failure(Status.UNAVAILABLE, "the judge is being closed; try again", 1.0)


class RemoteJudge(Judge):
    """A judge behind a server.

    Args:
        status: How it is shown.
        server: Where it runs; closed with it.
        config: Limits and prices.
        observer: Hears of its requests.
        backoff: Waits between attempts.
    """

    def __init__(
        self,
        status: ModelStatus,
        server: Server,
        config: RemoteJudgeConfig,
        observer: RemoteJudgeObserver,
        *,
        backoff: Backoff | None = None,
    ) -> None:
        self._status = status
        self._server = server
        self._sees_images = config.sees_images
        self._max_prompt_characters = config.max_prompt_characters
        self._requests = ServerRequests(status.name, server, config, observer, backoff or Backoff())
        self._queue = RequestQueue(config.max_in_flight, self._alone, self._together, server.takes)
        self._tasks: set[asyncio.Task[object]] = set()
        self._closed = False

    @property
    @override
    def status(self) -> ModelStatus:
        # Verdicts that were read in another way are of another precision.
        lacks, said = self._server.lacks, self._server.sees_images
        sees = {"yes": said is not False, "auto": said is True, "no": False}[self._sees_images]
        status = self._status if sees == self._status.sees_images else replace(self._status, sees_images=sees)
        if not lacks:
            return status
        return replace(
            status,
            precision=f"{self._status.precision} without {lacks}",
            remarks=(*status.remarks, f"Its server does not give what its kind can: {lacks}."),
        )

    @override
    async def choose(self, need: Choose, *, deadline_s: float | None = None) -> JudgeReply[Choice]:
        if not Labels(need.options).distinct:
            return JudgeReply(AMBIGUOUS, AnswerSource.COMPUTED, Timing())
        question = Question(self._server.shown(need.prompt), options=need.options, namespace=need.namespace)
        return await self._ask(question, deadline_s, lambda answer, sent: read_choice(need, answer, sent))

    @override
    async def generate(self, need: Generate, *, deadline_s: float | None = None) -> JudgeReply[Generated]:
        if not self._server.writes:
            return JudgeReply(_WRITES_NOTHING, AnswerSource.COMPUTED, Timing())
        question = Question(
            self._server.shown(need.prompt), max_tokens=need.max_tokens, stop=need.stop, namespace=need.namespace
        )
        return await self._ask(question, deadline_s, lambda answer, sent: read_text(need, answer, sent))

    @override
    def trouble(self) -> str:
        return self._requests.trouble

    @override
    async def close(self) -> None:
        self._closed = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._queue.close()
        await self._requests.close()

    async def _ask(
        self, question: Question, deadline_s: float | None, read: Callable[[Answer, JudgePrompt], A | Failure]
    ) -> JudgeReply[A]:
        timing = Timing()
        answered = await self._request(question, deadline_s, timing)
        answer = answered if isinstance(answered, Failure) else read(*answered)
        return JudgeReply(answer, AnswerSource.COMPUTED, timing)

    async def _request(self, question: Question, deadline_s: float | None, timing: Timing) -> Answered | Failure:
        prompt = fitted(question.prompt, self._max_prompt_characters)
        if prompt is None:
            return too_long().failure
        if self._closed:
            return _CLOSED
        # A task of its own, so that closing ends it with an answer where cancelling its caller ends it without one.
        work = asyncio.ensure_future(self._work(replace(question, prompt=prompt), deadline_s, timing))
        self._tasks.add(work)
        work.add_done_callback(self._tasks.discard)
        try:
            return await work
        except RemoteError as error:
            return error.failure
        except TimeoutError:
            return _TIMEOUT
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if caller is None or caller.cancelling():
                raise
            return _CLOSED

    async def _work(self, question: Question, deadline_s: float | None, timing: Timing) -> Answered:
        left_s = None if deadline_s is None else deadline_s - time.monotonic()
        subject = self._server.subject(question)
        # A tenant's question waits for no other tenant's, and is not answered by its request.
        shared = None if subject is None else (question.namespace, subject)
        async with asyncio.timeout(left_s):
            return await self._queue.ask(question, shared, deadline_s, timing)

    async def _together(self, questions: Sequence[Question], deadline_s: float | None) -> BatchReplies:
        """What may be the company's fault is asked for alone: an item gets what it gets by itself."""
        try:
            answers = await self._requests.ask_together(questions, deadline_s)
        except RemoteError as error:
            if error.kind in REQUEST_AT_FAULT:
                return [None] * len(questions)
            raise
        return [
            (answer, question.prompt) if isinstance(answer, Answer) else None
            for answer, question in zip(answers, questions, strict=True)
        ]

    async def _alone(self, question: Question, deadline_s: float | None) -> Answered:
        """Halves the prediction as long as the server says that the whole is too long for its model."""
        while True:
            try:
                return await self._requests.ask(question, deadline_s), question.prompt
            except RemoteError as error:
                if error.kind is not RemoteFault.TOO_LONG:
                    raise
                shorter = halved(question.prompt)
                if shorter is None:
                    raise too_long(pictures=bool(question.prompt.images)) from error
                question = replace(question, prompt=shorter)


_RECIPE: Final = 1
"""Part of the digest; raised when what is sent, or how labels are read, changes the answers of the same server."""
_OPEN_TIMEOUT_S: Final = 15.0
_RETRY_S: Final = 2.0


class RemoteBackend(JudgeBackend):
    """One judge, on one server.

    Args:
        backend: Kind of server; a part of the digest.
        config: Where it is.
        observer: Hears of the requests.
        make_server: Awaited once per opened judge.
        remarks: What is to be known of this kind of judge, beside what holds for all.
    """

    def __init__(
        self,
        backend: str,
        config: RemoteJudgeConfig,
        observer: RemoteJudgeObserver,
        make_server: Callable[[], Awaitable[Server]],
        *,
        remarks: tuple[str, ...] = (),
    ) -> None:
        self._config = config
        self._observer = observer
        self._make_server = make_server
        status = remote_status(backend, config)
        self._status = replace(status, remarks=(*status.remarks, *remarks))

    @override
    def listed(self) -> Sequence[ModelStatus]:
        return (self._status,)

    @override
    async def open(self, name: str) -> Judge:
        if name not in {"", self._config.model}:
            raise JudgeUnavailableError(
                Failure(
                    Status.MODEL_UNAVAILABLE,
                    f"the judge's server runs {self._config.model!r} and no other: see {MODEL_SETTING}",
                )
            )
        server = await self._make_server()
        try:
            async with asyncio.timeout(_OPEN_TIMEOUT_S):
                await _found_out(server)
        except TimeoutError as error:
            raise JudgeUnavailableError(_later(late(self._config.url, _OPEN_TIMEOUT_S).failure)) from error
        except RemoteError as error:
            raise JudgeUnavailableError(_later(error.failure)) from error
        return RemoteJudge(replace(self._status, state="loaded"), server, self._config, self._observer)

    @override
    async def close(self) -> None:
        pass  # each judge closes its own server


async def _found_out(server: Server) -> None:
    try:
        await server.find_out()
    except BaseException:
        await server.close()
        raise


def remote_status(backend: str, config: RemoteJudgeConfig) -> ModelStatus:
    """How a model is shown whose weights nobody here has seen."""
    asked = f"gradewire remote judge {_RECIPE}\0{backend}\0{config.model}\0{config.assistant_prefill}"
    thinks: tuple[str, ...] = ()
    if config.reasoning_tokens:
        asked += f"\0thinks {config.reasoning_tokens}"
        thinks = (f"It may think for {config.reasoning_tokens} tokens before each answer (judge_reasoning_tokens).",)
    return ModelStatus(
        name=config.model,
        digest=hashlib.sha256(asked.encode()).hexdigest(),
        state="built",
        precision="remote",
        kind="judge",
        sees_images=config.sees_images == "yes",
        remarks=(
            f"Runs on a server of its own (backend {backend}).",
            "Its scores are pinned by its name alone: what weights answer to that name is not known here.",
            *thinks,
        ),
    )


def _later(failure: Failure) -> Failure:
    return failure if failure.status is not Status.UNAVAILABLE else replace(failure, retry_after_s=_RETRY_S)
