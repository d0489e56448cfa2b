"""Where judges come from: the seam between the judge service and its backends."""

from collections.abc import Sequence
from typing import Protocol

from gradewire_server.domain.judge import Choice, Choose, Generate, Generated
from gradewire_server.domain.ports import ModelStatus
from gradewire_server.domain.result import Failure, Timing


class JudgeUnavailableError(Exception):
    """A judge cannot be used; the failure is for callers: MODEL_UNAVAILABLE with how to get it, or UNAVAILABLE."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Judge(Protocol):
    """A judge that is ready. Used on one event loop; any number of calls at once, each of which may be cancelled.

    A cancelled call leaves its batch mates alone; still in the queue, it is not computed. Calls never raise for the
    backend's sake: a worker that died or a server that is away is UNAVAILABLE with `retry_after_s`, a deadline that
    passed is TIMEOUT, a prompt that does not fit even without its prediction is INVALID_INPUT.
    """

    @property
    def status(self) -> ModelStatus:
        """Its public face: name, digest, numeric class, `kind` judge, remarks."""

    async def choose(self, need: Choose, *, deadline_s: float | None) -> tuple[Choice | Failure, Timing]:
        """Probabilities of the options; `need.model` is not looked at. `deadline_s` in `time.monotonic()` seconds."""

    async def generate(self, need: Generate, *, deadline_s: float | None) -> tuple[Generated | Failure, Timing]:
        """Greedy continuation; otherwise as `choose`."""

    def trouble(self) -> str:
        """Why it cannot answer now; empty when it can."""

    async def close(self) -> None:
        """Fails what waits (UNAVAILABLE) and gives back what it holds."""


class JudgeSource(Protocol):
    """A backend."""

    def listed(self) -> Sequence[ModelStatus]:
        """Judges that are known, whether or not they can be used; none is marked as the default. Reads small files."""

    async def open(self, name: str) -> Judge:
        """Gets a judge ready: loads it, warms it up; raises JudgeUnavailableError."""

    async def close(self) -> None:
        """Gives back what it holds; all its judges are closed by then."""
