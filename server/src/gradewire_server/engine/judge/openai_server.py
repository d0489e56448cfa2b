"""One model behind an OpenAI-compatible server, as `RemoteJudge` asks it."""

import logging
from dataclasses import replace
from typing import Final

from gradewire_server.engine.judge.config import Prefill
from gradewire_server.engine.judge.openai_answers import answer_of, error_of, kind_of
from gradewire_server.engine.judge.openai_dialect import Dialect, ServerKind, dialect_of, request_body
from gradewire_server.engine.judge.openai_link import HttpLink, Reply
from gradewire_server.engine.judge.remote_errors import RemoteError, Trouble
from gradewire_server.engine.judge.remote_judge import Answer, Question
from gradewire_server.engine.judge.remote_text import harmless

_log = logging.getLogger(__name__)

_COMPLETIONS: Final = "chat/completions"
_MODELS: Final = "models"
_BAD_REQUEST: Final = frozenset({400, 422})
_NO_LIST: Final = frozenset({404, 405, 501})


class OpenAIServer:
    """See `remote_judge.Server`.

    Args:
        link: Where it is.
        model: The model's name there.
        prefill: Whether it goes on from a begun assistant's turn.
    """

    def __init__(self, link: HttpLink, model: str, prefill: Prefill) -> None:
        self._link = link
        self._model = model
        self._prefill = prefill
        self.dialect = Dialect()

    async def find_out(self) -> None:
        """Learns what the server is; raises RemoteError where it is of no use."""
        reply = await self._link.get(_MODELS)
        kind = ServerKind.OTHER
        if reply.status not in _NO_LIST:  # a list of models is no duty
            error = error_of(reply, self._model)
            if error is not None:
                raise error
            kind = kind_of(reply, self._model)
        self.dialect = dialect_of(kind, self._prefill)
        _log.info("judge %s: its server is %s: %s", self._model, kind.value, self.dialect)

    async def ask(self, question: Question) -> Answer:
        """See `Server.ask`."""
        while True:
            dialect = self.dialect
            reply = await self._link.post(_COMPLETIONS, request_body(question, self._model, dialect))
            error = error_of(reply, self._model)
            if error is None:
                continued = dialect.continues and bool(question.prompt.opening)
                answer = answer_of(reply, continued=continued)
                if not question.options or answer.steps is not None or not dialect.logprobs:
                    return _without_echo(answer, question, dialect)
                _log.warning("judge %s: its server gives no log probabilities; its text alone decides", self._model)
                self.dialect = replace(self.dialect, logprobs=False)
            elif reply.status in _BAD_REQUEST and error.kind is not Trouble.TOO_LONG:
                self._learn(dialect, reply, error)
            else:
                raise error

    async def probe(self) -> None:
        """See `Server.probe`."""
        reply = await self._link.get(_MODELS)
        if reply.status in _NO_LIST:
            return
        error = error_of(reply, self._model)
        if error is not None:
            raise error
        kind_of(reply, self._model)

    async def close(self) -> None:
        """See `Server.close`."""
        await self._link.close()

    def _learn(self, asked: Dialect, reply: Reply, error: RemoteError) -> None:
        if self.dialect != asked:
            return  # somebody else's request has taught us meanwhile
        words = self._link.without_key(reply.content.decode("utf-8", "replace"))
        known = asked.without(words)
        if known == asked:
            _log.warning("judge %s: its server rejects a request: %.300r", self._model, words)
            raise error
        _log.warning("judge %s: its server refuses %s; from now on %s", self._model, asked, known)
        self.dialect = known


def _without_echo(answer: Answer, question: Question, dialect: Dialect) -> Answer:
    """llama.cpp puts the begun turn before what it goes on with, in the text and not in the tokens."""
    opening = harmless(question.prompt.opening)
    if answer.continued and dialect.kind is ServerKind.LLAMA_CPP and answer.text.startswith(opening):
        return replace(answer, text=answer.text[len(opening) :])
    return answer
