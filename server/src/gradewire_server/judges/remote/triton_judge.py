"""A judge that `gradewire models build` made, run by Triton: its questions are token IDs, as for an embedded judge."""

import asyncio
import contextvars
import hashlib
import logging
import math
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from gradewire_models.judges.catalog import catalog_judges
from gradewire_models.judges.cores import wire
from gradewire_models.repository.config import ServedModel
from gradewire_server.domain.items import Status
from gradewire_server.domain.ports import ModelStatus
from gradewire_server.judges.local.chat import ChatTokenizer, PromptError, PromptLimits, PromptTokens, TextEnd
from gradewire_server.judges.prometheus import Tokens
from gradewire_server.judges.remote import errors
from gradewire_server.judges.remote.errors import RemoteError, RemoteFault
from gradewire_server.judges.remote.server import Answer, Question
from gradewire_server.settings.judge import EmbeddedJudgeConfig
from gradewire_server.triton import Fault, TritonClient, TritonError

_log = logging.getLogger(__name__)

_KIND: Final = "judge"
_CHECK: Final = wire.Question((), (0,))
_CHECK_TIMEOUT_S: Final = 5.0
_SPREAD_S: Final = 1.0
_REPAIR_AGAIN_S: Final = 30.0
_LIMITS: Final = EmbeddedJudgeConfig(Path())
"""Limits of prompts. They are those of an embedded judge, so that both judges give the same answers."""


@dataclass(frozen=True, slots=True)
class JudgeFacts:
    """Properties of a built judge that Triton serves, from its config.pbtxt."""

    digest: str
    numeric_class: str
    licence: str
    chat_template: str
    eos_ids: tuple[int, ...]
    max_tokens: int
    tokenizer_sha256: str

    @classmethod
    def of(cls, served: ServedModel) -> Self | None:
        """Return the facts, or None if the model is not a built judge.

        Raises:
            RemoteError: The judge was built by an incompatible version of gradewire.
        """
        given = served.facts
        if given.get("kind") != _KIND:
            return None
        if given.get("protocol") != wire.PROTOCOL:
            raise errors.refused(
                "the judge in Triton was built by a different version of gradewire. Run: gradewire models build NAME"
            )
        try:
            wire.fingerprint_of(given["digest"])
            return cls(
                given["digest"],
                given["numeric_class"],
                given["licence"],
                given["chat_template"],
                tuple(map(int, given["eos_ids"].split())),
                int(given["max_tokens"]),
                given["tokenizer_sha256"],
            )
        except (KeyError, ValueError) as error:
            raise errors.refused(
                "the judge's config.pbtxt in Triton is damaged. Run: gradewire models build NAME"
            ) from error


class BuiltJudge:
    """A built judge in Triton. `open` makes it; use it on the event loop that opened it."""

    def __init__(self, client: TritonClient, model: str, facts: JudgeFacts, tokenizer: ChatTokenizer) -> None:
        self.facts = facts
        self._client = client
        self._model = model
        self._tokenizer = tokenizer
        self._fingerprint = wire.fingerprint_of(facts.digest)

    @classmethod
    async def open(cls, client: TritonClient, model: str, facts: JudgeFacts) -> Self:
        """Get the judge's tokenizer from Triton.

        Raises:
            TritonError: Triton does not answer.
            RemoteError: The tokenizer is not the one of the judge's description, or cannot be read.
        """
        question = wire.to_tensors(_CHECK)
        outputs = await client.infer(model, question, wire.TOKENIZER_OUTPUTS, timeout_s=client.timeout_s)
        content = _value(outputs, wire.TOKENIZER)
        if not isinstance(content, bytes):
            raise TritonError(Fault.WRONG_ANSWER, "the tokenizer is not a string of bytes")
        if hashlib.sha256(content).hexdigest() != facts.tokenizer_sha256:
            raise errors.refused("the judge's tokenizer in Triton does not match its config.pbtxt. Reload the model")
        context = min(facts.max_tokens, _LIMITS.max_context_tokens)
        limits = PromptLimits(min(_LIMITS.max_item_tokens, context), context)
        try:
            tokenizer = await asyncio.to_thread(
                ChatTokenizer, content, template=facts.chat_template, eos_ids=facts.eos_ids, limits=limits
            )
        except ValueError as error:
            raise errors.refused(f"the judge in Triton cannot be used: {error}") from error
        return cls(client, model, facts, tokenizer)

    def described(self, status: ModelStatus) -> ModelStatus:
        """Return a status with the built judge's properties, as an embedded judge has them."""
        known = catalog_judges().get(self._model)
        return replace(
            status,
            digest=self.facts.digest,
            precision=self.facts.numeric_class,
            max_tokens=self._tokenizer.limits.context,
            licence=self.facts.licence,
            remarks=(*(known.remarks if known else ()), "Runs in Triton."),
        )

    async def ask(self, question: Question) -> Answer:
        """Answer a question.

        Raises:
            TritonError: Triton does not answer, or gives no valid answer.
            RemoteError: The question does not fit into the judge's limits.
        """
        try:
            prompt, labels = await asyncio.to_thread(
                self._tokenizer.question, question.prompt, question.options, question.max_tokens
            )
        except PromptError as error:
            raise RemoteError(RemoteFault.REJECTED, error.status, str(error)) from error
        if question.options:
            return await self._choose(prompt, labels)
        return await self._write(prompt, question)

    async def check(self) -> None:
        """Ask for one token. Triton reports a judge as ready even if its process has died.

        Raises:
            TritonError: Triton does not answer, or gives no valid answer.
            RemoteError: Triton serves another judge.
        """
        await self._infer(_CHECK, wire.TOKEN_OUTPUTS, min(_CHECK_TIMEOUT_S, self._client.timeout_s))

    async def _choose(self, prompt: PromptTokens, labels: tuple[int, ...]) -> Answer:
        outputs = await self._infer(wire.Question(prompt.fixed, prompt.item, labels), wire.CHOICE_OUTPUTS)
        shares = outputs[wire.PROBABILITIES].reshape(-1)
        mass = float(_value(outputs, wire.MASS))
        if shares.shape != (len(labels),) or not np.isfinite(shares).all() or not 0 <= mass <= 1:
            raise TritonError(Fault.WRONG_ANSWER, f"{len(shares)} probabilities with the mass {mass}")
        return Answer(
            "",
            whole=True,
            steps=None,
            continued=True,
            tokens=_counted(prompt, 0),
            probabilities=tuple(shares.tolist()),
            mass=mass,
            truncated=prompt.truncated,
        )

    async def _write(self, prompt: PromptTokens, question: Question) -> Answer:
        # Each request continues the state that the model keeps from the last one.
        end = TextEnd(self._tokenizer.text, self._tokenizer.ends, question.stop)
        written: list[int] = []
        while len(written) < question.max_tokens and not end.reached(written):
            asked = wire.Question(prompt.fixed, prompt.item, written=tuple(written))
            outputs = await self._infer(asked, wire.TOKEN_OUTPUTS)
            written.append(int(_value(outputs, wire.NEXT_ID)))
        text, complete = end.read(written)
        counts = _counted(prompt, len(written))
        return Answer(text, complete, None, continued=True, tokens=counts, truncated=prompt.truncated)

    async def _infer(
        self, question: wire.Question, outputs: tuple[str, ...], timeout_s: float | None = None
    ) -> Mapping[str, NDArray[Any]]:
        tensors = wire.to_tensors(question)
        answer = await self._client.infer(self._model, tensors, outputs, timeout_s=timeout_s or self._client.timeout_s)
        if _value(answer, wire.FINGERPRINT) != self._fingerprint:
            raise replaced()
        return answer


class JudgeRepair:
    """Loads a judge whose process has died again, in the background. Triton does not start the process by itself.

    For one event loop only.

    Args:
        check: Function that asks the judge a short question, and raises TritonError if there is no answer.
    """

    def __init__(self, client: TritonClient, model: str, check: Callable[[], Awaitable[None]]) -> None:
        self._client = client
        self._model = model
        self._check = check
        self._task: asyncio.Task[None] | None = None
        self._allowed = True
        self._unloaded = False
        self._not_before_s = -math.inf

    @property
    def running(self) -> bool:
        """True while the judge is being loaded."""
        return self._task is not None and not self._task.done()

    def failed(self) -> None:
        """Repair the judge, because it cannot compute although Triton reports it as ready."""
        if self._allowed and not self.running and time.monotonic() >= self._not_before_s:
            self._task = asyncio.create_task(self._repair(), context=contextvars.Context())

    def not_ready(self) -> None:
        """Load the judge if an earlier repair has only unloaded it."""
        if self._unloaded:
            self.failed()

    async def close(self) -> None:
        """Wait for the end of a repair, because a judge that is only unloaded would not come back."""
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    async def _repair(self) -> None:
        # Servers that share the Triton wait for different times, and then look whether it still has to be done.
        await asyncio.sleep(random.uniform(0, _SPREAD_S))  # noqa: S311 - no secret
        self._not_before_s = time.monotonic() + _REPAIR_AGAIN_S
        try:
            if not self._unloaded:
                if not await self._is_broken():
                    return
                await self._client.unload(self._model)
                self._unloaded = True
            await self._client.load(self._model)
        except TritonError as error:
            self._allowed = "not allowed" not in str(error)
            _log.warning("judge %s: cannot be loaded again in Triton: %s", self._model, error)
            return
        self._unloaded = False
        _log.warning("judge %s: its process in Triton had died, so it was loaded again", self._model)

    async def _is_broken(self) -> bool:
        try:
            await self._check()
        except TritonError as error:
            return error.kind is Fault.FAILED
        return False


def replaced() -> RemoteError:
    """Return the error for a judge that was exchanged in Triton while this server runs."""
    message = "Triton now serves a judge with a different digest. Restart the server to use that judge"
    return RemoteError(RemoteFault.REFUSED, Status.MODEL_UNAVAILABLE, message)


def _value(outputs: Mapping[str, NDArray[Any]], name: str) -> Any:
    if outputs[name].size != 1:
        raise TritonError(Fault.WRONG_ANSWER, f"{name} has {outputs[name].size} values")
    return outputs[name].item()


def _counted(prompt: PromptTokens, generated: int) -> Tokens:
    return Tokens(len(prompt.fixed) + len(prompt.item), None, generated)
