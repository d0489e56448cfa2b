"""A judge behind a server: what all kinds of servers have in common."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from typing_extensions import override

from gradewire_server.concurrency.backoff import Backoff
from gradewire_server.domain.judge import Choice, Choose, Generate, Generated, JudgePrompt
from gradewire_server.domain.needs import AnswerSource
from gradewire_server.domain.ports import A, JudgeReply, ModelStatus
from gradewire_server.domain.result import Failure, Status, Timing
from gradewire_server.judges.backend import Judge
from gradewire_server.judges.observers import RemoteJudgeObserver
from gradewire_server.judges.remote.errors import OF_THE_REQUEST, RemoteError, RemoteFault, too_long
from gradewire_server.judges.remote.labels import AMBIGUOUS, Labels
from gradewire_server.judges.remote.queue import Answered, AnsweredEach, RequestQueue
from gradewire_server.judges.remote.reading import read_choice, read_text
from gradewire_server.judges.remote.requests import ServerRequests
from gradewire_server.judges.remote.server import Answer, Question, Server
from gradewire_server.judges.remote.text import fitted, halved
from gradewire_server.settings.judge import RemoteJudgeConfig

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
        answered = await self._answered(question, deadline_s, timing)
        answer = answered if isinstance(answered, Failure) else read(*answered)
        return JudgeReply(answer, AnswerSource.COMPUTED, timing)

    async def _answered(self, question: Question, deadline_s: float | None, timing: Timing) -> Answered | Failure:
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

    async def _together(self, questions: Sequence[Question], deadline_s: float | None) -> AnsweredEach:
        """What may be the company's fault is asked for alone: an item gets what it gets by itself."""
        try:
            answers = await self._requests.ask_together(questions, deadline_s)
        except RemoteError as error:
            if error.kind in OF_THE_REQUEST:
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
