"""The protocols of a judge and of a judge backend, and the base class of wrappers around a judge."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeAlias

from gradewire_server.domain.judge import Choice, Choose, Generate, Generated, JudgeNeed
from gradewire_server.domain.ports import JudgeReply, Judges, ModelStatus
from gradewire_server.domain.result import Failure

Ask: TypeAlias = Callable[[float | None], Awaitable[JudgeReply[Any]]]
"""Asks the judge behind a wrapper; takes a deadline in `time.monotonic()` seconds."""


class JudgeUnavailableError(Exception):
    """A judge cannot be used; the failure is for callers: MODEL_UNAVAILABLE with how to get it, or UNAVAILABLE."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Judge(Judges, Protocol):
    """One judge that is ready. Used on one event loop; any number of calls at once, each of which may be cancelled.

    `need.model` is not looked at. A cancelled call leaves its batch mates alone; still in the queue, it is not
    computed. Calls never raise for the backend's sake: a worker that died or a server that is away is UNAVAILABLE with
    `retry_after_s`, a deadline that passed is TIMEOUT, a prompt that does not fit even without its prediction is
    INVALID_INPUT.
    """

    @property
    def status(self) -> ModelStatus:
        """How it is shown: name, digest, numeric class, `kind` judge, remarks."""

    def trouble(self) -> str:
        """Why it cannot answer now; empty when it can."""

    async def close(self) -> None:
        """Fails what waits (UNAVAILABLE) and gives back what it holds."""


class JudgeBackend(Protocol):
    """Where judges run. One folder for each: `local`, `openai`, `triton`."""

    def listed(self) -> Sequence[ModelStatus]:
        """Judges that are known, whether or not they can be used; none is marked as the default. Reads small files."""

    async def open(self, name: str) -> Judge:
        """Loads a judge and warms it up; raises JudgeUnavailableError."""

    async def close(self) -> None:
        """Gives back what it holds; all its judges are closed by then."""


class JudgeWrapper:
    """A `Judge` around another one. Subclasses add to it in `_answer`, which handles choices and texts alike.

    Args:
        judge: The judge behind it; closed with it.
    """

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    @property
    def status(self) -> ModelStatus:
        """How the judge behind it is shown."""
        return self._judge.status

    async def choose(self, need: Choose, *, deadline_s: float | None = None) -> JudgeReply[Choice]:
        """Has the judge choose."""
        return await self._answer(need, lambda until_s: self._judge.choose(need, deadline_s=until_s), deadline_s)

    async def generate(self, need: Generate, *, deadline_s: float | None = None) -> JudgeReply[Generated]:
        """Has the judge write."""
        return await self._answer(need, lambda until_s: self._judge.generate(need, deadline_s=until_s), deadline_s)

    def trouble(self) -> str:
        """Why the judge cannot answer now; empty when it can."""
        return self._judge.trouble()

    async def close(self) -> None:
        """Closes the judge behind it."""
        await self._judge.close()

    async def _answer(self, need: JudgeNeed, ask: Ask, deadline_s: float | None) -> JudgeReply[Any]:
        """Answers a need.

        Args:
            need: What is asked.
            ask: Asks the judge behind it.
            deadline_s: In `time.monotonic()` seconds.
        """
        raise NotImplementedError
