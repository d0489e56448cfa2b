"""The backend `openai`: models on servers with OpenAI's APIs or Anthropic's Messages API."""

import asyncio
import functools
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from typing_extensions import override

from gradewire_server.domain.items import Status
from gradewire_server.judges.prometheus import JudgeTelemetry
from gradewire_server.judges.remote import errors
from gradewire_server.judges.remote.dialect_learner import (
    CONFIRMED_FOR_S,
    MAY_BE_GENERAL,
    OUT_OF_TOKENS,
    DialectLearner,
    may_name_a_feature,
)
from gradewire_server.judges.remote.endpoints import CHAT, RESPONSES, Api, endpoint_of
from gradewire_server.judges.remote.errors import RemoteError, RemoteFault, Reply
from gradewire_server.judges.remote.filter_watch import FilterWatch
from gradewire_server.judges.remote.first_tokens import FirstTokens
from gradewire_server.judges.remote.http_client import HttpClient, checked
from gradewire_server.judges.remote.judge import RemoteBackend
from gradewire_server.judges.remote.model_list import kind_of, missing_model, sees_images
from gradewire_server.judges.remote.openai_dialect import Dialect, ServerKind
from gradewire_server.judges.remote.request_bodies import RequestBodies
from gradewire_server.judges.remote.server import Answer, Question, Server
from gradewire_server.settings.judge import Prefill, RemoteJudgeConfig

_log = logging.getLogger(__name__)

_MODELS: Final = "models"
_UNAUTHORIZED: Final = 401
_MOST_LESSONS: Final = 6
_MAY_BE_ONE_ITEM: Final = frozenset({403, 404})
"""Statuses with which some gateways refuse single texts."""
_SPARED_FOR_S: Final = 5.0
"""Seconds without another test question after one that was accepted though the server had refused an item."""
_LARGE_BYTES: Final = 128 << 10
"""A request with images of this total size or more is written on a thread. Writing 12 MB takes 0.1 s."""
_WITHOUT_REGARD_TO_THE_LIMIT: Final = frozenset({RemoteFault.RATE_LIMITED, RemoteFault.TOO_LONG})
"""Errors that a question with a higher limit of tokens would meet too."""
_PICTURE_REFUSALS: Final = errors.BAD_REQUEST | {404, 415, 500}
"""Statuses that may mean a refusal of images. llama.cpp returns 500, and gateways without vision models return 404."""


class OpenAIServer(Server):
    """One model on a server with one of the known APIs."""

    def __init__(
        self, client: HttpClient, model: str, prefill: Prefill, reasoning_tokens: int = 0, *, api: Api = CHAT
    ) -> None:
        self._client = client
        self._model = model
        self._prefill = prefill
        self._reasoning_tokens = reasoning_tokens
        self._api = api
        self._first_tokens = FirstTokens()
        self._bodies = RequestBodies(model, api.request_body)
        self.sees_images = None
        full = self._full(ServerKind.OTHER)
        self._learner = DialectLearner(model, full, self._send, api)
        self._filters = FilterWatch(model, self._learner)
        self._spared_s = float("-inf")

    @property
    @override
    def lacks(self) -> str:
        return self._learner.lacks

    @property
    @override
    def uses(self) -> str:
        return self._learner.uses

    @property
    @override
    def trouble(self) -> str:
        return self._filters.trouble

    @override
    async def find_out(self) -> None:
        kind, doubt = await self._kind(ServerKind.OTHER)
        self._learner.begin(self._full(kind))
        _log.info("judge %s: its server has the type %s", self._model, kind.value)
        await self._settle_doubt(doubt)

    @override
    async def ask(self, questions: Sequence[Question]) -> Sequence[Answer | RemoteError]:
        (question,) = questions
        await self._learner.look_again()
        try:
            answer = await self._answer(question)
        except RemoteError as error:
            if error.kind is RemoteFault.FILTERED:
                await self._filters.refused()
            raise
        self._filters.answered()
        return [answer]

    async def _answer(self, question: Question) -> Answer:
        dialect = self._learner.dialect
        short = self._first_tokens.shortened(question, dialect)
        if not short.one_token:
            return await self._answer_with_room(question)
        answer, accepted = await self._first_token(short, dialect)
        if answer is not None:
            return answer
        answer = await self._answer_with_room(question)
        if not accepted and not answer.exhausted and self._learner.dialect == dialect:
            self._first_tokens.block(question)
        return answer

    async def _first_token(self, question: Question, dialect: Dialect) -> tuple[Answer | None, bool]:
        """Ask for one token. Return an answer, or None if the question must be sent again with room for more tokens.

        The second value is False if the server did not accept the limit, or returned no probabilities with it.

        Raises:
            RemoteError: The request failed for a reason that has nothing to do with the limit.
        """
        reply = await self._send(question, dialect)
        error = errors.error_of(reply, self._model, self._api.wanted) or errors.no_json(reply)
        if error is not None and error.kind in _WITHOUT_REGARD_TO_THE_LIMIT:
            raise error
        try:
            answer = None if error is not None else self._api.answer_of(reply, question, dialect)
        except RemoteError as unusable:
            _log.debug("judge %s: cannot use an answer of one token (%s)", self._model, unusable.kind.value)
            answer = None
        if answer is None:
            self._first_tokens.restart(question)
            return None, False
        if self._first_tokens.is_enough(question, answer):
            return self._learner.uncounted.moved_into(answer), True
        self._learner.uncounted.add(answer)
        return None, answer.steps is not None

    async def _answer_with_room(self, question: Question) -> Answer:
        for _ in range(_MOST_LESSONS):
            dialect = self._learner.dialect
            reply = await self._send(question, dialect)
            error = errors.error_of(reply, self._model, self._api.wanted) or errors.no_json(reply)
            if error is not None and errors.says_out_of_tokens(reply):
                return OUT_OF_TOKENS
            if error is None:
                answer = await self._whole_answer(question, dialect, reply)
                if answer is not None:
                    self._first_tokens.learn(question, answer)
                    return self._learner.uncounted.moved_into(answer)
            elif not await self._teaches(reply, error, dialect):
                raise self._picture_refusal(question, reply) or await self._confirmed(error, reply, dialect)
        raise errors.unreadable("a different refusal to each request")

    @override
    async def probe(self) -> None:
        kind, doubt = await self._kind(self._learner.kind)
        self._learner.doubt(self._full(kind))
        await self._settle_doubt(doubt)

    @override
    async def fails_a_test(self, error: RemoteError) -> RemoteError | None:
        try:
            general = await self._learner.refusal(self._learner.dialect, self._learner.now_s())
        except RemoteError as unanswered:
            return unanswered if unanswered.kind in errors.SERVER_AWAY else None
        return None if general is None else self._client.with_words(*general)

    @override
    async def close(self) -> None:
        await self._client.close()

    async def _teaches(self, reply: Reply, error: RemoteError, dialect: Dialect) -> bool:
        """Check whether a refusal was about the dialect. Return True if the dialect has changed as a result."""
        if not may_name_a_feature(reply, error):
            return False
        self._client.note_refusal(_log, logging.INFO, f"judge {self._model}: its server rejects a request", reply)
        return dialect.without(errors.server_message(reply)) != dialect and await self._learner.confirm(dialect)

    async def _confirmed(self, error: RemoteError, reply: Reply, dialect: Dialect) -> RemoteError:
        """Return the error for a refused question: the server's if it refuses the test question too, else its own."""
        if error.kind not in MAY_BE_GENERAL:
            return error
        since_s = self._trusted_since_s(error, reply)
        try:
            general = await self._learner.refusal(dialect, since_s)
        except RemoteError as unknown:
            _log.debug("judge %s: cannot test its server (%s)", self._model, unknown.kind.value)
            if error.kind is not RemoteFault.REFUSED:
                return error
            # Nothing is known about other items, so this refusal must not stop them.
            return unknown if unknown.failure.status is Status.UNAVAILABLE else errors.rejected(reply.status)
        if general is not None:
            return self._client.with_words(*general)
        if error.kind is RemoteFault.REFUSED:
            self._spared_s = since_s
        if error.kind is RemoteFault.UNREADABLE:
            return error
        # The server takes the key and knows the model. Some gateways refuse single texts with 403 or 404.
        return errors.filtered() if errors.mentions_a_filter(reply) else errors.rejected(reply.status)

    def _trusted_since_s(self, error: RemoteError, reply: Reply) -> float:
        """Return the time since when an accepted test question counts, so that not each refusal costs a new one."""
        now_s = self._learner.now_s()
        if error.kind is not RemoteFault.REFUSED:  # single items meet these more often
            return now_s - CONFIRMED_FOR_S
        spared = reply.status in _MAY_BE_ONE_ITEM and now_s - self._spared_s < _SPARED_FOR_S
        return self._spared_s if spared else now_s

    async def _whole_answer(self, question: Question, dialect: Dialect, reply: Reply) -> Answer | None:
        """Return an answer, or None if the question must be sent again because log probabilities are missing.

        Raises:
            RemoteError: The server does not answer, or returns log probabilities only for the test question.
        """
        answer = self._api.answer_of(reply, question, dialect)
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
                self._learner.uncounted.add(answer)
        return answer if good else None

    def _picture_refusal(self, question: Question, reply: Reply) -> RemoteError | None:
        words = errors.server_message(reply)
        if not question.prompt.images or reply.status not in _PICTURE_REFUSALS or errors.says_too_long(words):
            return None
        return errors.refusal_of_pictures(words, self._model, reply.status)

    def _full(self, kind: ServerKind) -> Dialect:
        return self._api.dialect(kind, self._prefill, self._reasoning_tokens)

    async def _kind(self, known: ServerKind) -> tuple[ServerKind, RemoteError | None]:
        """Return the server's type and, if its list of models speaks against the judge, the error for that.

        The type is `known` if the server does not show its list now.

        Raises:
            RemoteError: The server is down or refuses the key.
        """
        try:
            reply = await self._client.send(_MODELS)
        except RemoteError as unread:
            if unread.kind is not RemoteFault.UNREADABLE:
                raise
            return known, unread  # the lists of some gateways are longer than the limit of a reply
        if reply.status in errors.NOT_FOUND:  # servers need not list models
            return known, None
        error = errors.error_of(reply, self._model, self._api.wanted)
        if error is None:
            self.sees_images = sees_images(reply, self._model)
            return kind_of(reply) or known, missing_model(reply, self._model)
        error = self._client.with_words(error, reply)
        if error.kind not in MAY_BE_GENERAL or reply.status == _UNAUTHORIZED:
            raise error
        return known, error  # the key may be allowed to ask, but not to list

    async def _settle_doubt(self, doubt: RemoteError | None) -> None:
        """Ask the test question if the list of models speaks against the judge; raise this error if it is refused."""
        if doubt is None:
            return
        try:
            general = await self._learner.refusal(self._learner.dialect, self._learner.now_s())
        except RemoteError as error:
            raise (error if error.failure.status is Status.UNAVAILABLE else doubt) from error
        if general is not None:
            raise doubt
        _log.info("judge %s: its server answers, though its list of models does not fit", self._model)

    async def _send(self, question: Question, dialect: Dialect) -> Reply:
        large = sum(len(image.data) for image in question.prompt.images) >= _LARGE_BYTES
        write = self._bodies.body
        body = await asyncio.to_thread(write, question, dialect) if large else write(question, dialect)
        return errors.unwrapped(await self._client.send(self._api.path, body))


class OpenAIJudges(RemoteBackend):
    """One judge on a server with one of the known APIs, which the end of the address or its host chooses.

    Raises:
        ValueError: The address, the token or the setting for begun answers is not valid.
    """

    def __init__(self, config: RemoteJudgeConfig, telemetry: JudgeTelemetry) -> None:
        checked(replace(config, url=config.url.partition("?")[0]))
        endpoint = endpoint_of(config.url)
        if endpoint.api is RESPONSES and config.assistant_prefill == "yes":
            raise ValueError("judge_assistant_prefill must not be yes, because the Responses API begins no answer")
        config = replace(config, url=endpoint.base)

        async def server() -> OpenAIServer:
            headers = endpoint.headers(config.token)
            connect = functools.partial(HttpClient, config, headers=headers, query=endpoint.query)
            client = await asyncio.to_thread(connect)
            tokens = config.reasoning_tokens
            return OpenAIServer(client, config.model, config.assistant_prefill, tokens, api=endpoint.api)

        # The same model may answer differently in another API.
        backend = "openai" if endpoint.api is CHAT else f"openai, {endpoint.api.path}"
        super().__init__(backend, config, telemetry, server)
