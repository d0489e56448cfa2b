"""Jobs in a queue, each with the future that its result is put into."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Generic, Protocol, TypeVar


class WantedJob(Protocol):
    """What is queued."""

    @property
    def length(self) -> int:
        """Tokens."""

    @property
    def deadline_s(self) -> float:
        """When the last who waits for it gives up, `time.monotonic()` seconds; infinity for never."""

    def wanted(self, now_s: float) -> bool:
        """Whether somebody still waits for it."""


J = TypeVar("J", bound=WantedJob)
R = TypeVar("R")


class Queued(Generic[J, R]):
    """One job and its future, which is cancelled where nobody wanted the job any more when its turn came."""

    __slots__ = ("future", "job", "length")

    def __init__(self, job: J, loop: asyncio.AbstractEventLoop) -> None:
        self.job = job
        self.length = job.length
        self.future: asyncio.Future[R] = loop.create_future()

    def wanted(self, now_s: float) -> bool:
        """Whether somebody still waits for it."""
        return self.job.wanted(now_s)


def finish(queued: Iterable[Queued[J, R]], results: Iterable[R]) -> None:
    """Puts results into the futures of a run."""
    for each, result in zip(queued, results, strict=True):
        if not each.future.done():
            each.future.set_result(result)


def fail(queued: Iterable[Queued[J, R]], error: Exception) -> None:
    """Puts an error into the futures of a run."""
    for each in queued:
        if not each.future.done():
            each.future.set_exception(error)


def drop(queued: Iterable[Queued[J, R]]) -> None:
    """Cancels the futures of jobs that nobody wants."""
    for each in queued:
        each.future.cancel()


def jobs_of(queued: Sequence[Queued[J, R]]) -> list[J]:
    """The jobs of a run."""
    return [each.job for each in queued]
