"""One decision model behind a server, as `RemoteJudge` asks it: one question in each request.

Questions are not put together. What else is in a request can change an answer (Clef's head reads all questions at
once), and metrics ask about one state in one question as a rule, so there is little to put together.
"""

import logging
from typing import Final

from typing_extensions import override

from gradewire_server.domain.judge import JudgePrompt, Role, Turn
from gradewire_server.judges.decisions.answers import answer_of
from gradewire_server.judges.decisions.asked import asked_of, without_demonstrations
from gradewire_server.judges.decisions.forms import DECISIONS, FORMS, Form
from gradewire_server.judges.remote.errors import ADDRESS_SETTING, MODEL_SETTING, RemoteError, refused, server_at
from gradewire_server.judges.remote.http_client import HttpClient, Reply
from gradewire_server.judges.remote.replies import BAD_REQUEST, NOT_FOUND, error_of
from gradewire_server.judges.remote.server import Answer, Paid, Question, Server

_log = logging.getLogger(__name__)

_OWN_QUESTION: Final = Question(
    JudgePrompt((Turn(Role.SYSTEM, "Say whether the statement is true."),), lead="Water is wet.", opening="It is"),
    options=("true", "false"),
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
    """

    def __init__(self, client: HttpClient, model: str, forms: tuple[Form, ...] = FORMS) -> None:
        self._client = client
        self._model = model
        self._forms = forms
        self._form = forms[0]
        self._paid = Paid()

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
            reply = await self._send(_OWN_QUESTION, form)
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
    async def ask(self, question: Question) -> Answer:
        reply = await self._send(question, self._form)
        error = error_of(reply, self._model, _WANTED)
        if error is not None:
            if reply.status in BAD_REQUEST:
                self._note(reply)
            raise error
        answer = answer_of(reply, self._form, asked_of(question))
        paid, self._paid = self._paid, Paid()
        return paid.within(answer)

    @override
    async def probe(self) -> None:
        await self.find_out()  # it may be another server by now

    @override
    async def close(self) -> None:
        await self._client.close()

    async def _send(self, question: Question, form: Form) -> Reply:
        return await self._client.post(form.path, form.body(self._model, asked_of(question)))

    def _look_at_own_answer(self, reply: Reply, form: Form) -> None:
        try:
            self._paid = self._paid.plus(answer_of(reply, form, asked_of(_OWN_QUESTION)))
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
