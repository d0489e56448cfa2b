"""The backend `decisions`: decision models on servers with the endpoint `/v1/systemone` or `/v1/decisions`."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from typing_extensions import override

from gradewire_server.domain.judge import JudgePrompt
from gradewire_server.judges.prometheus import JudgeTelemetry, Tokens
from gradewire_server.judges.remote import errors
from gradewire_server.judges.remote.decision_forms import (
    DECISIONS,
    FORMS,
    DecisionQuestion,
    Form,
    decision_question,
    without_demonstrations,
)
from gradewire_server.judges.remote.errors import RemoteError, RemoteFault, Reply
from gradewire_server.judges.remote.http_client import HttpClient, checked, json_bytes
from gradewire_server.judges.remote.judge import RemoteBackend
from gradewire_server.judges.remote.server import Answer, Question, Server, UncountedTokens, token_count
from gradewire_server.settings.judge import RemoteJudgeConfig

_log = logging.getLogger(__name__)

_TEST_QUESTION: Final = DecisionQuestion(
    "Water is wet.", "Say whether the statement is true.", {label: f"It is {label}" for label in ("true", "false")}
)
"""A test question without user data."""
_PREFIX: Final = "the judge's server answered with "
_WANTED: Final = "decisions of a decision model"
_REMARK: Final = "A decision model: it chooses between labels, writes no text and sees no demonstrations."


def answer_of(reply: Reply, form: Form, asked: DecisionQuestion) -> Answer:
    """Return the answer to a request's only question; raise RemoteError if there is no valid answer."""
    (answer,) = answers_of(reply, form, (asked,))
    if isinstance(answer, RemoteError):
        raise answer
    return answer


def answers_of(reply: Reply, form: Form, asked: Sequence[DecisionQuestion]) -> list[Answer | RemoteError]:
    """Return an answer or an error for each question; raise RemoteError if the reply is invalid as a whole.

    The answers share the request's tokens equally.
    """
    read = errors.json_object(reply.content)
    checked = [_checked(form, given, one) for one, given in zip(asked, form.answers(read, len(asked)), strict=True)]
    usage = read.get("usage")
    counts = _counts(usage if isinstance(usage, dict) else {})
    good = sum(not isinstance(each, RemoteError) for each in checked)
    shares = zip(*(_shared(tokens, good) for tokens in counts), strict=True)
    return [each if isinstance(each, RemoteError) else _answer(each, *next(shares)) for each in checked]


def _answer(probabilities: tuple[float, ...], read: int | None, written: int | None) -> Answer:
    tokens = Tokens(read, None, written)
    return Answer(
        "", whole=True, steps=None, continued=False, tokens=tokens, probabilities=probabilities, demonstrated=False
    )


def _shared(tokens: int | None, count: int) -> list[int | None]:
    return [None if tokens is None else tokens // count + (place < tokens % count) for place in range(count)]


def _checked(form: Form, answer: object, asked: DecisionQuestion) -> tuple[float, ...] | RemoteError:
    try:
        return form.distribution(answer, tuple(asked.options))
    except RemoteError as error:
        return error


def _counts(usage: Mapping[str, Any]) -> tuple[int | None, int | None]:
    # Every question has tokens, so 0 means that the server does not count tokens (sparrow-decider).
    read = token_count(usage.get("input_tokens", usage.get("prompt_tokens"))) or None
    written = token_count(usage.get("output_tokens", usage.get("completion_tokens")))
    return read, written if read is not None else None


class DecisionServer(Server):
    """One decision model on a server. `forms` are request formats to try."""

    writes = False

    def __init__(
        self, client: HttpClient, model: str, forms: tuple[Form, ...] = FORMS, *, most_questions: int = 1
    ) -> None:
        self._client = client
        self._model = model
        self._forms = forms
        self._form = forms[0]
        self._uncounted = UncountedTokens()
        self.questions_per_request = most_questions

    @override
    def shown(self, prompt: JudgePrompt) -> JudgePrompt:
        return without_demonstrations(prompt)

    @override
    async def find_out(self) -> None:
        refusal: RemoteError | None = None
        for form in self._forms:
            reply = await self._send([_TEST_QUESTION], form)
            error = errors.error_of(reply, self._model, _WANTED)
            if error is None:
                self._check_test_answer(reply, form)
                self._form = form
                _log.info("judge %s: its server accepts requests to %s", self._model, form.path)
                return
            self._note(reply)
            if error.kind is RemoteFault.REJECTED:
                error = errors.rejects_everything(reply)
            error = self._client.with_words(error, reply)
            away = reply.status in errors.NOT_FOUND
            # Prefer a refusal that is not about the address, because this refusal says more.
            refusal = error if refusal is None or not away else refusal
            next_may_do = away or (form is DECISIONS and reply.status in errors.BAD_REQUEST)
            if not next_may_do or form is self._forms[-1]:
                raise refusal

    @override
    def subject(self, question: Question) -> str | None:
        return None if self.questions_per_request == 1 else decision_question(question).state

    @override
    async def ask(self, questions: Sequence[Question]) -> Sequence[Answer | RemoteError]:
        asked = [decision_question(question) for question in questions]
        form = self._form  # a probe may find a different format during the request
        reply = await self._send(asked, form)
        error = errors.error_of(reply, self._model, _WANTED)
        if error is not None:
            if reply.status in errors.BAD_REQUEST:
                self._note(reply)
            raise error
        answers = answers_of(reply, form, asked)
        for place, answer in enumerate(answers):
            if isinstance(answer, Answer):
                answers[place] = self._uncounted.moved_into(answer)
                break
        return answers

    @override
    async def probe(self) -> None:
        await self.find_out()  # the server may have changed

    @override
    async def fails_a_test(self, error: RemoteError) -> RemoteError | None:
        try:
            await self.find_out()
        except RemoteError as unanswered:
            return unanswered if unanswered.kind in errors.SERVER_AWAY else None
        return None

    @override
    async def close(self) -> None:
        await self._client.close()

    async def _send(self, asked: Sequence[DecisionQuestion], form: Form) -> Reply:
        return errors.unwrapped(await self._client.send(form.path, json_bytes(form.body(self._model, asked))))

    def _check_test_answer(self, reply: Reply, form: Form) -> None:
        try:
            self._uncounted.add(answer_of(reply, form, _TEST_QUESTION))
        except RemoteError as error:
            # The address may be a web page, for example, so no item can succeed.
            server, why = errors.server_at(reply.address), error.failure.message.removeprefix(_PREFIX)
            raise errors.refused(
                f"{server} answers a test question with something other than a decision ({why}). Check "
                f"{errors.ADDRESS_SETTING} and {errors.MODEL_SETTING}"
            ) from error

    def _note(self, reply: Reply) -> None:
        self._client.note_refusal(_log, logging.INFO, f"judge {self._model}: its server refuses a request", reply)


class DecisionJudges(RemoteBackend):
    """One decision model on a server. The address may include the endpoint (…/systemone, …/decisions).

    Raises:
        ValueError: The address or the token is not valid.
    """

    def __init__(self, config: RemoteJudgeConfig, telemetry: JudgeTelemetry) -> None:
        checked(config)
        base, forms = endpoint_of(config.url)
        config = replace(config, url=base)

        async def server() -> DecisionServer:
            client = await asyncio.to_thread(HttpClient, config)
            return DecisionServer(client, config.model, forms, most_questions=config.questions_per_request)

        super().__init__("decisions", config, telemetry, server, remarks=(_REMARK,))


def endpoint_of(url: str) -> tuple[str, tuple[Form, ...]]:
    """Return the base address and the formats to try. If the address includes an endpoint, there is only one format."""
    address = url.rstrip("/")
    base, _, last = address.rpartition("/")
    named = tuple(form for form in FORMS if form.path == last)
    # In http://systemone, the name is the host, not the endpoint.
    return (base, named) if named and not base.endswith("/") else (address, FORMS)
