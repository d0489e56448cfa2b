"""One decision model behind a server, as `RemoteJudge` asks it.

Questions about one state share a request where the operator says that the server answers each as it does alone.
"""

import logging
from collections.abc import Sequence
from typing import Final

from typing_extensions import override

from gradewire_server.domain.judge import JudgePrompt
from gradewire_server.judges.decisions.answers import answer_of, answers_of
from gradewire_server.judges.decisions.asked import Asked, asked_of, without_demonstrations
from gradewire_server.judges.decisions.forms import DECISIONS, FORMS, Form
from gradewire_server.judges.remote.errors import (
    ADDRESS_SETTING,
    MODEL_SETTING,
    RemoteError,
    refused,
    server_at,
)
from gradewire_server.judges.remote.http_client import HttpClient, Reply
from gradewire_server.judges.remote.replies import BAD_REQUEST, NOT_FOUND, error_of
from gradewire_server.judges.remote.server import Answer, Paid, Question, Server

_log = logging.getLogger(__name__)

_OWN: Final = Asked(
    "Water is wet.", "Say whether the statement is true.", {label: f"It is {label}" for label in ("true", "false")}
)
"""It holds nothing from users."""
_PREFIX: Final = "the judge's server answered with "
_WANTED: Final = "decisions of a decision model"


class DecisionServer(Server):
    """One decision model behind a server.

    Args:
        client: Where it is.
        model: The model's name there.
        forms: How it may be asked; the first that it takes is used.
        most_questions: How many questions one request may have at most.
    """

    def __init__(
        self, client: HttpClient, model: str, forms: tuple[Form, ...] = FORMS, *, most_questions: int = 1
    ) -> None:
        self._client = client
        self._model = model
        self._forms = forms
        self._form = forms[0]
        self._paid = Paid()
        self._most_questions = most_questions

    @property
    @override
    def lacks(self) -> str:
        return ""

    @property
    @override
    def writes(self) -> bool:
        return False

    @override
    def shown(self, prompt: JudgePrompt) -> JudgePrompt:
        return without_demonstrations(prompt)

    @override
    async def find_out(self) -> None:
        refusal: RemoteError | None = None
        for form in self._forms:
            reply = await self._send([_OWN], form)
            error = error_of(reply, self._model, _WANTED)
            if error is None:
                self._look_at_own_answer(reply, form)
                self._form = form
                _log.info("judge %s: its server answers %s", self._model, form.path)
                return
            self._note(reply)
            away = reply.status in NOT_FOUND
            # Of several refusals one that is not about the address says most.
            refusal = error if refusal is None or not away else refusal
            next_may_do = away or (form is DECISIONS and reply.status in BAD_REQUEST)
            if not next_may_do or form is self._forms[-1]:
                raise refusal

    @override
    def subject(self, question: Question) -> str | None:
        return None if self._most_questions == 1 else asked_of(question).state

    @override
    def takes(self, questions: Sequence[Question]) -> bool:
        return len(questions) <= self._most_questions

    @override
    async def ask(self, question: Question) -> Answer:
        asked = asked_of(question)
        answer = answer_of(*await self._answered([asked]), asked)
        paid, self._paid = self._paid, Paid()
        return paid.within(answer)

    @override
    async def ask_together(self, questions: Sequence[Question]) -> list[Answer | RemoteError]:
        asked = [asked_of(question) for question in questions]
        answers = answers_of(*await self._answered(asked), asked)
        for place, answer in enumerate(answers):
            if isinstance(answer, Answer):
                paid, self._paid = self._paid, Paid()
                answers[place] = paid.within(answer)
                break
        return answers

    @override
    async def probe(self) -> None:
        await self.find_out()  # it may be another server by now

    @override
    async def close(self) -> None:
        await self._client.close()

    async def _answered(self, asked: Sequence[Asked]) -> tuple[Reply, Form]:
        form = self._form  # a probe may find another one meanwhile
        reply = await self._send(asked, form)
        error = error_of(reply, self._model, _WANTED)
        if error is None:
            return reply, form
        if reply.status in BAD_REQUEST:
            self._note(reply)
        raise error

    async def _send(self, asked: Sequence[Asked], form: Form) -> Reply:
        return await self._client.post(form.path, form.body(self._model, asked))

    def _look_at_own_answer(self, reply: Reply, form: Form) -> None:
        try:
            self._paid = self._paid.plus(answer_of(reply, form, _OWN))
        except RemoteError as error:
            # A web page, for instance: nothing here is about an item, and items need not be tried.
            raise refused(
                f"{server_at(reply.address)} answers a small question of our own with something that is no decision "
                f"({error.failure.message.removeprefix(_PREFIX)}): see {ADDRESS_SETTING} and {MODEL_SETTING}"
            ) from error

    def _note(self, reply: Reply) -> None:
        # What a server says may quote the request, and that a user's text.
        _log.info("judge %s: its server refuses a request (status %d)", self._model, reply.status)
        if _log.isEnabledFor(logging.DEBUG):
            words = self._client.without_key(reply.content[:4000].decode("utf-8", "replace"))
            _log.debug("judge %s: its server's words: %.300r", self._model, words)
