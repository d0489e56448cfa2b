"""One model behind an OpenAI-compatible server, as `RemoteJudge` asks it."""

import logging
from dataclasses import replace
from typing import Final

from typing_extensions import override

from gradewire_server.judges.openai.answers import answer_of, kind_of, sees_images
from gradewire_server.judges.openai.dialect import Dialect, ServerKind, dialect_of, request_body
from gradewire_server.judges.openai.features import Features
from gradewire_server.judges.remote.errors import RemoteError, RemoteFault, says_too_long, unreadable
from gradewire_server.judges.remote.http_client import HttpClient, Reply
from gradewire_server.judges.remote.pictures import body_with
from gradewire_server.judges.remote.refused_pictures import refusal_of_pictures
from gradewire_server.judges.remote.replies import BAD_REQUEST, NOT_FOUND, error_of, said
from gradewire_server.judges.remote.server import Answer, Paid, Question, Server
from gradewire_server.judges.remote.text import harmless
from gradewire_server.settings.judge import Prefill

_log = logging.getLogger(__name__)

_COMPLETIONS: Final = "chat/completions"
_MODELS: Final = "models"
_MOST_LESSONS: Final = 6
_OF_REQUESTS: Final = BAD_REQUEST | {404, 415, 500}
"""Statuses by which servers refuse what a request holds: llama.cpp's 500 a picture that it cannot use, gateways' 404 a
model without eyes."""


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
                if dialect.without(said(reply)) == dialect or not await self._features.confirm(dialect):
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
        if not question.prompt.images or reply.status not in _OF_REQUESTS or says_too_long(said(reply)):
            return None
        return refusal_of_pictures(said(reply), self._model, reply.status)

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
