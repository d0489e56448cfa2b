"""The protocols of a judge and of a judge backend."""

from collections.abc import Sequence
from typing import Protocol

from gradewire_server.domain.ports import Judges, ModelStatus
from gradewire_server.domain.result import Failure


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
        """How it is shown: name, digest, precision, `kind` judge, remarks."""

    def trouble(self) -> str:
        """Why it cannot answer now; empty when it can."""

    async def close(self) -> None:
        """Fails what waits (UNAVAILABLE) and gives back what it holds."""


class JudgeBackend(Protocol):
    """Where judges run. One folder for each: `local`, `openai`, `decisions`, `triton`."""

    def listed(self) -> Sequence[ModelStatus]:
        """Judges that are known, whether or not they can be used; none is marked as the default. Reads small files."""

    async def open(self, name: str) -> Judge:
        """Loads a judge and warms it up; raises JudgeUnavailableError."""

    async def close(self) -> None:
        """Gives back what it holds; all its judges are closed by then."""
