"""The protocols of a judge and of a judge backend."""

from collections.abc import Sequence
from typing import Any, Final, Protocol

from typing_extensions import override

from gradewire_server.domain.items import Failure, Status, Timing
from gradewire_server.domain.judge import Choice, Choose, Generate, Generated, JudgeNeed
from gradewire_server.domain.needs import AnswerSource
from gradewire_server.domain.ports import JudgeReply, Judges, ModelStatus

NO_TOKENS: Final = Failure(Status.INVALID_PARAMETER, "max_tokens must be at least 1")


class JudgeUnavailableError(Exception):
    """Raised when a judge cannot be used. `failure` is MODEL_UNAVAILABLE or UNAVAILABLE."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def failed_reply(failure: Failure, timing: Timing | None = None) -> JudgeReply[Any]:
    """Return a reply with a failure."""
    return JudgeReply(failure, AnswerSource.COMPUTED, timing or Timing())


class UniformJudges(Judges, Protocol):
    """Judges with one method for all needs."""

    async def answer(self, need: JudgeNeed, *, deadline_s: float | None = None) -> JudgeReply[Any]:
        """Answer a need of any kind. `choose` and `generate` call this method."""

    @override
    async def choose(self, need: Choose, *, deadline_s: float | None = None) -> JudgeReply[Choice]:
        return await self.answer(need, deadline_s=deadline_s)

    @override
    async def generate(self, need: Generate, *, deadline_s: float | None = None) -> JudgeReply[Generated]:
        return await self.answer(need, deadline_s=deadline_s)


class Judge(UniformJudges, Protocol):
    """A loaded judge, for concurrent calls on one event loop. You may cancel calls.

    A judge ignores `need.model`. Calls return failures instead of raising errors: UNAVAILABLE with `retry_after_s` if a
    worker is dead or a server cannot be reached, TIMEOUT after the deadline, and INVALID_INPUT if a prompt is too long
    even without its prediction.
    """

    @property
    def status(self) -> ModelStatus:
        """The judge's status."""

    def trouble(self) -> str:
        """Return the reason why the judge cannot answer now, or "" if the judge works."""

    async def close(self) -> None:
        """Answer all queued needs with UNAVAILABLE, and release all resources."""
        return


class JudgeBackend(Protocol):
    """A backend that runs judges."""

    def listed(self) -> Sequence[ModelStatus]:
        """Return all known judges, usable or not, without marking a default. Read only small files."""

    async def open(self, name: str) -> Judge:
        """Load and warm up a judge; raise JudgeUnavailableError if the judge cannot be used."""

    async def close(self) -> None:
        """Release all resources. Close all judges before the backend."""
        return
