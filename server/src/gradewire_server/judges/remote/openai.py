"""The backend `openai`: models behind OpenAI-compatible servers, with the features that requests of our own find."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

from typing_extensions import override

from gradewire_server.domain.judge import JudgePrompt
from gradewire_server.judges.backend import RemoteJudgeObserver
from gradewire_server.judges.remote.http_client import (
    BAD_REQUEST,
    NOT_FOUND,
    HttpClient,
    checked,
    error_of,
    server_message,
)
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
from gradewire_server.judges.remote.server import (
    Answer,
    Paid,
    Question,
    RemoteError,
    RemoteFault,
    Reply,
    Server,
    body_with,
    rate_limited,
    refusal_of_pictures,
    says_too_long,
    unreadable,
)
from gradewire_server.judges.texts import harmless
from gradewire_server.settings.judge import Prefill, RemoteJudgeConfig

_log = logging.getLogger(__name__)

OWN_QUESTION: Final = Question(
    JudgePrompt((), lead="Is water wet?", prediction="", opening="Answer:"), options=("yes", "no"), stop=("\n\n\n",)
)
"""It uses everything that a server can refuse, and holds nothing from users."""
_BELIEVED_S: Final = 60.0
_LOOK_AGAIN_S: Final = 600.0

_COMPLETIONS: Final = "chat/completions"
_MODELS: Final = "models"
_MOST_LESSONS: Final = 6
_REFUSING_STATUSES: Final = BAD_REQUEST | {404, 415, 500}
"""Statuses by which servers refuse what a request holds: llama.cpp's 500 a picture that it cannot use, gateways' 404 a
model without eyes."""


class Features:
    """How one server is spoken to. Lives on one event loop.

    Args:
        name: Of the judge, for the log.
        full: With everything that its kind can do.
        send: Sends a question in a dialect; raises RemoteError where nothing comes back.
        clock: Monotonic, in seconds.
    """

    def __init__(
        self,
        name: str,
        full: Dialect,
        send: Callable[[Question, Dialect], Awaitable[Reply]],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = name
        self._full = full
        self._send = send
        self._clock = clock
        self._lock = asyncio.Lock()
        self._confirmed_s = float("-inf")
        self._doubted = False
        self._unanswered: Dialect | None = None
        self._not_before_s = float("-inf")
        self._paid = Paid()
        self.dialect = full

    def take_paid(self) -> Paid:
        """What our own questions have cost since it was taken last."""
        paid, self._paid = self._paid, Paid()
        return paid

    @property
    def lacks(self) -> str:
        """Names of what the server turned out not to do and what changes answers, or ""."""
        return self.dialect.lacks(self._full)

    def begin(self, full: Dialect) -> None:
        """Starts anew with everything that a kind can do."""
        self._full = self.dialect = full
        self._unanswered = None
        self._confirmed_s = float("-inf")
        self._doubted = False

    def doubt(self, full: Dialect) -> None:
        """The server was away and is back: what is known of it is checked again before the next question."""
        if full.kind is not self._full.kind:
            self.begin(full)
        self._doubted = bool(self.lacks)
        self._confirmed_s = float("-inf")

    async def confirm(self, asked: Dialect) -> bool:
        """Looks whether the server refuses our own question in a dialect too.

        Returns:
            Whether the dialect is another one now: the same question is worth another try.

        Raises:
            RemoteError: The server cannot be asked. One that takes no more requests for now is asked again before the
                next question, which is then asked once and in the right way.
        """
        async with self._lock:
            if self.dialect != asked:
                self._unanswered = None
                return True  # somebody else's question was first
            if self._clock() - self._confirmed_s < _BELIEVED_S:
                return False
            left_s = self._not_before_s - self._clock()
            if self._unanswered is not None and left_s > 0:
                raise rate_limited(left_s)
            self._unanswered = None
            try:
                await self._settle(asked)
            except RemoteError as error:
                if error.kind is RemoteFault.RATE_LIMITED:
                    self._unanswered = asked
                    self._not_before_s = self._clock() + (error.retry_after_s or 0.0)
                raise
            return self.dialect != asked

    async def look_again(self) -> None:
        """Asks from time to time whether the server can do by now what it could not.

        Raises:
            RemoteError: It takes no more requests for now, and how it is to be asked is not known yet.
        """
        if self._unanswered is not None:
            try:
                await self.confirm(self._unanswered)
            except RemoteError as error:
                if error.kind is RemoteFault.RATE_LIMITED:
                    raise
                # The question that comes next finds out for itself what is wrong.
        if not self._due():
            return
        async with self._lock:
            if not self._due():
                return
            try:
                await self._settle(self._full)
            except RemoteError as error:
                # The question that comes next finds out for itself what is wrong.
                _log.debug("judge %s: its features cannot be looked at (%s)", self._name, error.kind.value)
                self._confirmed_s = self._clock()

    def _due(self) -> bool:
        return self._doubted or (bool(self.lacks) and self._clock() - self._confirmed_s >= _LOOK_AGAIN_S)

    async def _settle(self, first: Dialect) -> None:
        """Leaves out what the server names, until it takes our question; where it never does, nothing changes."""
        dialect = first
        while True:
            reply = await self._send(OWN_QUESTION, dialect)
            error = error_of(reply, self._name)
            if error is not None and (reply.status not in BAD_REQUEST or error.kind is RemoteFault.TOO_LONG):
                raise error
            if error is not None:
                less = dialect.without(server_message(reply))
                if less == dialect:
                    break
                dialect = less
                continue
            answer = answer_of(reply, continued=dialect.continues, reasoning=bool(dialect.reasoning_tokens))
            self._paid = self._paid.plus(answer)
            if dialect.logprobs and answer.steps is None:
                # Where there is no text either, that proves nothing.
                dialect = replace(dialect, logprobs=not answer.text.strip() and self.dialect.logprobs)
            self._learn(dialect)
            break
        self._confirmed_s = self._clock()
        self._doubted = False

    def _learn(self, dialect: Dialect) -> None:
        if dialect.lacks(self._full) != self.lacks:
            lacking = dialect.consequences(self._full)
            if lacking:
                _log.warning("judge %s: its server does not do this: %s", self._name, lacking)
            else:
                _log.info("judge %s: its server does all that its kind can", self._name)
        self.dialect = dialect


class OpenAIServer(Server):
    """One model behind an OpenAI-compatible server.

    Args:
        client: Where it is.
        model: The model's name there.
        prefill: Whether it goes on from a begun assistant's turn.
        reasoning_tokens: What the model may think before it answers.
    """

    def __init__(self, client: HttpClient, model: str, prefill: Prefill, reasoning_tokens: int = 0) -> None:
        self._client = client
        self._model = model
        self._prefill = prefill
        self._reasoning_tokens = reasoning_tokens
        self._paid = Paid()
        self._sees_images: bool | None = None
        self._features = Features(model, self._full(ServerKind.OTHER), self._send)

    @property
    def dialect(self) -> Dialect:
        """How it is spoken to now."""
        return self._features.dialect

    @property
    @override
    def lacks(self) -> str:
        return self._features.lacks

    @property
    @override
    def sees_images(self) -> bool | None:
        return self._sees_images

    @override
    async def find_out(self) -> None:
        kind = await self._kind()
        self._features.begin(self._full(kind))
        _log.info("judge %s: its server is of the kind %s", self._model, kind.value)

    @override
    async def ask(self, question: Question) -> Answer:
        await self._features.look_again()
        for _ in range(_MOST_LESSONS):
            dialect = self.dialect
            reply = await self._send(question, dialect)
            error = error_of(reply, self._model)
            if error is None:
                continued = dialect.continues and bool(question.prompt.opening)
                read = answer_of(reply, continued=continued, reasoning=bool(dialect.reasoning_tokens))
                answer = _without_echo(read, question, dialect)
                if answer.exhausted or not question.options or answer.steps is not None or not dialect.logprobs:
                    return self._with_paid(answer)
                if not answer.text.strip():
                    return self._with_paid(replace(answer, steps=()))
                if await self._is_all_there_is(answer, dialect):
                    return self._with_paid(answer)
            elif reply.status in BAD_REQUEST and error.kind is not RemoteFault.TOO_LONG:
                self._note(reply)
                if dialect.without(server_message(reply)) == dialect or not await self._features.confirm(dialect):
                    raise self._of_pictures(reply, question) or error
            else:
                raise self._of_pictures(reply, question) or error
        raise unreadable("another refusal each time")

    @override
    async def probe(self) -> None:
        # It may be another server by now, or one that has learnt something.
        self._features.doubt(self._full(await self._kind()))

    @override
    async def close(self) -> None:
        await self._client.close()

    async def _is_all_there_is(self, answer: Answer, dialect: Dialect) -> bool:
        """Whether an answer without log probabilities is as good as one in the dialect that the server has.

        Raises:
            RemoteError: The server gives log probabilities to our own question, or cannot be asked it.
        """
        try:
            learnt = await self._features.confirm(dialect)
        except RemoteError:
            self._paid = self._paid.plus(answer)
            raise
        if learnt and answer.whole and self.dialect == replace(dialect, logprobs=False):
            return True
        self._paid = self._paid.plus(answer)
        if not learnt:
            raise unreadable("no log probabilities this time")
        return False

    def _of_pictures(self, reply: Reply, question: Question) -> RemoteError | None:
        if not question.prompt.images or reply.status not in _REFUSING_STATUSES or says_too_long(server_message(reply)):
            return None
        return refusal_of_pictures(server_message(reply), self._model, reply.status)

    def _with_paid(self, answer: Answer) -> Answer:
        paid, self._paid = self._paid.plus(self._features.take_paid()), Paid()
        return paid.within(answer)

    def _full(self, kind: ServerKind) -> Dialect:
        return dialect_of(kind, self._prefill, self._reasoning_tokens)

    async def _kind(self) -> ServerKind:
        reply = await self._client.get(_MODELS)
        if reply.status in NOT_FOUND:  # a list of models is no duty
            return ServerKind.OTHER
        error = error_of(reply, self._model)
        if error is not None:
            raise error
        self._sees_images = sees_images(reply, self._model)
        return kind_of(reply, self._model)

    async def _send(self, question: Question, dialect: Dialect) -> Reply:
        images = question.prompt.images
        body = await body_with(images, lambda: request_body(question, self._model, dialect))
        return await self._client.post(_COMPLETIONS, body)

    def _note(self, reply: Reply) -> None:
        # What a server says may quote the request, and that a user's text.
        _log.warning("judge %s: its server rejects a request (status %d)", self._model, reply.status)
        if _log.isEnabledFor(logging.DEBUG):
            words = self._client.without_key(reply.content[:4000].decode("utf-8", "replace"))
            _log.debug("judge %s: its server's words: %.300r", self._model, words)


def _without_echo(answer: Answer, question: Question, dialect: Dialect) -> Answer:
    """llama.cpp puts the begun turn before what it goes on with, in the text and not in the tokens."""
    opening = harmless(question.prompt.opening)
    if answer.continued and dialect.kind is ServerKind.LLAMA_CPP and answer.text.startswith(opening):
        return replace(answer, text=answer.text[len(opening) :])
    return answer


class OpenAIJudges(RemoteBackend):
    """One judge behind an OpenAI-compatible server.

    Args:
        config: Where the server is.
        observer: Hears of the requests.

    Raises:
        ValueError: The address or the token is not valid.
    """

    def __init__(self, config: RemoteJudgeConfig, observer: RemoteJudgeObserver) -> None:
        checked(config)

        async def server() -> OpenAIServer:
            # On a thread: it reads certificates and imports what connects.
            client = await asyncio.to_thread(HttpClient.loaded, config)
            return OpenAIServer(client, config.model, config.assistant_prefill, config.reasoning_tokens)

        super().__init__("openai", config, observer, server)
