"""The backend `openai`: models on OpenAI-compatible servers."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final

from typing_extensions import override

from gradewire_server.domain.judge import JudgePrompt
from gradewire_server.judges.prometheus import JudgeTelemetry
from gradewire_server.judges.remote import errors
from gradewire_server.judges.remote.errors import RemoteError, RemoteFault, Reply
from gradewire_server.judges.remote.http_client import HttpClient, checked, json_bytes
from gradewire_server.judges.remote.judge import RemoteBackend
from gradewire_server.judges.remote.openai_dialect import (
    Dialect,
    ServerKind,
    answer_of,
    dialect_of,
    kind_of,
    request_body,
    sees_images,
)
from gradewire_server.judges.remote.server import Answer, Question, Server, UncountedTokens
from gradewire_server.settings.judge import Prefill, RemoteJudgeConfig

_log = logging.getLogger(__name__)

TEST_QUESTION: Final = Question(
    JudgePrompt((), lead="Is water wet?", prediction="", opening="Answer:"), options=("yes", "no"), stop=("\n\n\n",)
)
"""A test question without user data, which uses every feature that a server can refuse."""
_CONFIRMED_FOR_S: Final = 60.0
"""Seconds for which the test question's result stays valid, even if the server refuses other requests."""
_LOOK_AGAIN_S: Final = 600.0
"""Seconds between tests for missing features."""

_COMPLETIONS: Final = "chat/completions"
_MODELS: Final = "models"
_MOST_LESSONS: Final = 6
_MAY_BE_GENERAL: Final = frozenset({RemoteFault.REFUSED, RemoteFault.REJECTED, RemoteFault.UNREADABLE})
"""Errors that may be about a single question, or about all questions. Only a test question can tell."""
_LARGE_BYTES: Final = 128 << 10
"""A request with images of this total size or more is written on a thread. Writing 12 MB takes 0.1 s."""
_PICTURE_REFUSALS: Final = errors.BAD_REQUEST | {404, 415, 500}
"""Statuses that may mean a refusal of images. llama.cpp returns 500, and gateways without vision models return 404."""


class DialectLearner:
    """The features that one server accepts. For one event loop only.

    If the server refuses a caller's question, the learner sends a test question instead of parsing the refusal, which
    may quote a user's text.

    Args:
        send: Function that sends a question in a dialect, and raises RemoteError if there is no reply.

    Attributes:
        refused: The error and the reply if the server refused the last test question, otherwise None.
    """

    def __init__(
        self,
        name: str,
        full: Dialect,
        send: Callable[[Question, Dialect], Awaitable[Reply]],
        uncounted: UncountedTokens,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = name
        self._full = self.dialect = full
        self._send = send
        self._uncounted = uncounted
        self._clock = clock
        self._lock = asyncio.Lock()
        self._tested_s = self._confirmed_s = self._not_before_s = float("-inf")
        self._unanswered: Dialect | None = None
        self._doubted = False
        self.refused: tuple[RemoteError, Reply] | None = None

    @property
    def lacks(self) -> str:
        """Names of missing features that change answers, or "" if no such feature is missing."""
        return ", ".join(self.dialect.lacking(self._full))

    def begin(self, full: Dialect) -> None:
        """Start with all features of a server type."""
        self._full = self.dialect = full
        self._unanswered = None
        self._doubted = False
        self._tested_s = self._confirmed_s = float("-inf")

    def doubt(self, full: Dialect) -> None:
        """Check the features again before the next question."""
        if full.kind is not self._full.kind:
            self.begin(full)
        self._doubted = bool(self.lacks)
        self._tested_s = self._confirmed_s = float("-inf")

    async def confirm(self, asked: Dialect) -> bool:
        """Check whether the server also refuses the test question in a dialect.

        Returns:
            True if the dialect has changed, so that the caller should send the question again.

        Raises:
            RemoteError: The server does not answer.
        """
        async with self._lock:
            # A concurrent question may have confirmed the dialect first.
            if self.dialect == asked and self._clock() - self._confirmed_s >= _CONFIRMED_FOR_S:
                await self._find_out(asked)
            return self.dialect != asked

    async def refusal(self, asked: Dialect, since_s: float) -> tuple[RemoteError, Reply] | None:
        """Return the error and the reply with which the server also refuses the test question, or None.

        If the server accepted only a test question that was sent before `since_s`, a time of the clock, ask it again.

        Raises:
            RemoteError: The server does not answer now, so nothing is known.
        """
        async with self._lock:
            known_s = self._tested_s if self.refused is None else self._confirmed_s + _CONFIRMED_FOR_S
            if known_s < since_s:
                await self._find_out(asked)
            return self.refused

    def now_s(self) -> float:
        """Return the time of the clock."""
        return self._clock()

    async def look_again(self) -> None:
        """Test from time to time whether the server has gained features.

        Raises:
            RemoteError: The server limits requests, and the server's dialect is not known yet.
        """
        if self._unanswered is None and not self._due():
            return
        async with self._lock:
            due = self._unanswered is None and self._due()
            try:
                if self._unanswered is not None:
                    await self._find_out(self._unanswered)
                elif due:
                    await self._settle(self._full)
            except RemoteError as error:
                if self._unanswered is not None:
                    raise
                # The next question will report the same problem.
                _log.debug("judge %s: cannot test its server's features (%s)", self._name, error.kind.value)
                if due:
                    self._confirmed_s = self._clock()

    def _due(self) -> bool:
        return self._doubted or (bool(self.lacks) and self._clock() - self._confirmed_s >= _LOOK_AGAIN_S)

    async def _find_out(self, asked: Dialect) -> None:
        left_s = self._not_before_s - self._clock()
        if self._unanswered is not None and left_s > 0:
            raise errors.rate_limited(left_s)
        self._unanswered = None
        try:
            await self._settle(asked)
        except RemoteError as error:
            if error.kind is RemoteFault.RATE_LIMITED:
                self._unanswered = asked
                self._not_before_s = self._clock() + (error.failure.retry_after_s or 0.0)
            raise

    async def _settle(self, dialect: Dialect) -> None:
        """Remove refused features until the server accepts the test question, or until nothing is left to remove."""
        while True:
            tested_s = self._clock()
            reply = await self._send(TEST_QUESTION, dialect)
            error = errors.error_of(reply, self._name) or errors.no_json(reply)
            if error is None:
                self._learn(dialect, reply)
                self.refused = None
                break
            if error.kind not in _MAY_BE_GENERAL:
                raise error
            less = dialect.without(errors.server_message(reply)) if _may_name_a_feature(reply, error) else dialect
            if less == dialect:
                general = error if error.kind is RemoteFault.REFUSED else errors.rejects_everything(reply)
                self.refused = general, reply
                break
            dialect = less
        self._tested_s, self._confirmed_s = tested_s, self._clock()
        self._doubted = False

    def _learn(self, dialect: Dialect, reply: Reply) -> None:
        answer = answer_of(reply, TEST_QUESTION, dialect)
        self._uncounted.add(answer)
        if dialect.logprobs and answer.steps is None:
            # An answer without text proves nothing about log probabilities.
            dialect = replace(dialect, logprobs=not answer.text.strip() and self.dialect.logprobs)
        before, self.dialect = self.lacks, dialect
        if self.lacks and self.lacks != before:
            consequences = dialect.consequences(self._full)
            _log.warning("judge %s: its server lacks features: %s", self._name, consequences)
        elif self.lacks != before:
            _log.info("judge %s: its server has all features of its type", self._name)


def _may_name_a_feature(reply: Reply, error: RemoteError) -> bool:
    return reply.status in errors.BAD_REQUEST and error.kind is not RemoteFault.TOO_LONG


class OpenAIServer(Server):
    """One model on an OpenAI-compatible server."""

    def __init__(self, client: HttpClient, model: str, prefill: Prefill, reasoning_tokens: int = 0) -> None:
        self._client = client
        self._model = model
        self._prefill = prefill
        self._reasoning_tokens = reasoning_tokens
        self._uncounted = UncountedTokens()
        self.sees_images = None
        self._learner = DialectLearner(model, self._full(ServerKind.OTHER), self._send, self._uncounted)

    @property
    @override
    def lacks(self) -> str:
        return self._learner.lacks

    @override
    async def find_out(self) -> None:
        kind = await self._kind()
        self._learner.begin(self._full(kind))
        _log.info("judge %s: its server has the type %s", self._model, kind.value)

    @override
    async def ask(self, questions: Sequence[Question]) -> Sequence[Answer | RemoteError]:
        (question,) = questions
        await self._learner.look_again()
        for _ in range(_MOST_LESSONS):
            dialect = self._learner.dialect
            reply = await self._send(question, dialect)
            error = errors.error_of(reply, self._model) or errors.no_json(reply)
            if error is None:
                answer = await self._whole_answer(question, dialect, reply)
                if answer is not None:
                    return [self._uncounted.moved_into(answer)]
            elif not await self._teaches(reply, error, dialect):
                raise self._picture_refusal(question, reply) or await self._confirmed(error, reply, dialect)
        raise errors.unreadable("a different refusal to each request")

    @override
    async def probe(self) -> None:
        self._learner.doubt(self._full(await self._kind()))

    @override
    async def close(self) -> None:
        await self._client.close()

    async def _teaches(self, reply: Reply, error: RemoteError, dialect: Dialect) -> bool:
        """Check whether a refusal was about the dialect. Return True if the dialect has changed as a result."""
        if not _may_name_a_feature(reply, error):
            return False
        self._client.note_refusal(_log, logging.INFO, f"judge {self._model}: its server rejects a request", reply)
        return dialect.without(errors.server_message(reply)) != dialect and await self._learner.confirm(dialect)

    async def _confirmed(self, error: RemoteError, reply: Reply, dialect: Dialect) -> RemoteError:
        """Return the error for a refused question: the server's if it refuses the test question too, else its own."""
        if error.kind not in _MAY_BE_GENERAL:
            return error
        # Single items meet other refusals more often: do not ask about each of them.
        since_s = self._learner.now_s() - (0 if error.kind is RemoteFault.REFUSED else _CONFIRMED_FOR_S)
        try:
            general = await self._learner.refusal(dialect, since_s)
        except RemoteError as unknown:
            _log.debug("judge %s: cannot test its server (%s)", self._model, unknown.kind.value)
            return error
        if general is not None:
            return self._client.with_words(*general)
        if error.kind is not RemoteFault.REFUSED:
            return error
        # The server takes the key and knows the model. Some gateways refuse single texts with such a status.
        return errors.rejected(reply.status)

    async def _whole_answer(self, question: Question, dialect: Dialect, reply: Reply) -> Answer | None:
        """Return an answer, or None if the question must be sent again because log probabilities are missing.

        Raises:
            RemoteError: The server does not answer, or returns log probabilities only for the test question.
        """
        answer = answer_of(reply, question, dialect)
        if answer.exhausted or not question.options or answer.steps is not None or not dialect.logprobs:
            return answer
        if not answer.text.strip():
            return replace(answer, steps=())
        learnt = False
        try:
            learnt = await self._learner.confirm(dialect)
            if not learnt and self._learner.refused is not None:
                raise self._client.with_words(*self._learner.refused)
            if not learnt:
                raise errors.unreadable("no log probabilities for this question")
        finally:
            good = learnt and answer.whole and self._learner.dialect == replace(dialect, logprobs=False)
            if not good:
                self._uncounted.add(answer)
        return answer if good else None

    def _picture_refusal(self, question: Question, reply: Reply) -> RemoteError | None:
        words = errors.server_message(reply)
        if not question.prompt.images or reply.status not in _PICTURE_REFUSALS or errors.says_too_long(words):
            return None
        return errors.refusal_of_pictures(words, self._model, reply.status)

    def _full(self, kind: ServerKind) -> Dialect:
        return dialect_of(kind, self._prefill, self._reasoning_tokens)

    async def _kind(self) -> ServerKind:
        reply = await self._client.send(_MODELS)
        if reply.status in errors.NOT_FOUND:  # servers need not list models
            return ServerKind.OTHER
        error = errors.error_of(reply, self._model)
        if error is not None:
            raise self._client.with_words(error, reply)
        self.sees_images = sees_images(reply, self._model)
        return kind_of(reply, self._model)

    async def _send(self, question: Question, dialect: Dialect) -> Reply:
        def body() -> bytes:
            return json_bytes(request_body(question, self._model, dialect))

        large = sum(len(image.data) for image in question.prompt.images) >= _LARGE_BYTES
        return await self._client.send(_COMPLETIONS, await asyncio.to_thread(body) if large else body())


class OpenAIJudges(RemoteBackend):
    """One judge on an OpenAI-compatible server.

    Raises:
        ValueError: The address or the token is not valid.
    """

    def __init__(self, config: RemoteJudgeConfig, telemetry: JudgeTelemetry) -> None:
        checked(config)

        async def server() -> OpenAIServer:
            client = await asyncio.to_thread(HttpClient, config)
            return OpenAIServer(client, config.model, config.assistant_prefill, config.reasoning_tokens)

        super().__init__("openai", config, telemetry, server)
