"""The protocols of a judge and of a judge backend."""

from collections.abc import Sequence
from typing import Any, Protocol

from typing_extensions import override

from gradewire_server.domain.items import Failure, Timing
from gradewire_server.domain.judge import Choice, Choose, Generate, Generated, JudgeNeed
from gradewire_server.domain.needs import AnswerSource
from gradewire_server.domain.ports import JudgeReply, Judges, ModelStatus


class JudgeUnavailableError(Exception):
    """A judge cannot be used; the failure is for callers: MODEL_UNAVAILABLE with how to get it, or UNAVAILABLE."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def failed_reply(failure: Failure, timing: Timing | None = None) -> JudgeReply[Any]:
    """Return the reply to a need that was not answered."""
    return JudgeReply(failure, AnswerSource.COMPUTED, timing or Timing())


class UniformJudges(Judges, Protocol):
    """Judges that answer choices and texts in one way."""

    async def answer(self, need: JudgeNeed, *, deadline_s: float | None = None) -> JudgeReply[Any]:
        """Answer a need, as `choose` and `generate` do."""

    @override
    async def choose(self, need: Choose, *, deadline_s: float | None = None) -> JudgeReply[Choice]:
        return await self.answer(need, deadline_s=deadline_s)

    @override
    async def generate(self, need: Generate, *, deadline_s: float | None = None) -> JudgeReply[Generated]:
        return await self.answer(need, deadline_s=deadline_s)


class Judge(UniformJudges, Protocol):
    """One judge that is ready. Used on one event loop; any number of calls at once, each of which may be cancelled.

    `need.model` is not looked at. A cancelled call leaves its batch mates alone; still in the queue, it is not
    computed. Calls never raise for the backend's sake: a worker that died or a server that is away is UNAVAILABLE with
    `retry_after_s`, a deadline that passed is TIMEOUT, a prompt that does not fit even without its prediction is
    INVALID_INPUT.
    """

    @property
    def status(self) -> ModelStatus:
        """The judge as it is shown: name, digest, precision, `kind` judge, remarks."""

    def trouble(self) -> str:
        """Return why it cannot answer now; empty when it can."""

    async def close(self) -> None:
        """Fail what waits (UNAVAILABLE) and give back what it holds."""
        return


class JudgeBackend(Protocol):
    """A place where judges run: `local.judge`, `remote.openai`, `remote.decisions`, `remote.triton`, `shared`."""

    def listed(self) -> Sequence[ModelStatus]:
        """Return judges that are known, usable or not; none is marked as the default. Reads small files."""

    async def open(self, name: str) -> Judge:
        """Load a judge and warm it up; raise JudgeUnavailableError."""

    async def close(self) -> None:
        """Give back what it holds; all its judges are closed by then."""
        return
