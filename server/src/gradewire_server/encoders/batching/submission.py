"""What a queue returns for the jobs of one call: how they end, in parts, as runs end."""

import asyncio
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Generic, NamedTuple, Protocol, Self, TypeVar

from gradewire_proto.conventions.spans import current_span, tell_batch
from gradewire_proto.conventions.telemetry_names import BATCH, TEXTS, TOKENS
from gradewire_server.domain.turn import Lane


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


class Ended(NamedTuple, Generic[J, R]):
    """Jobs of one call that ended together.

    Attributes:
        jobs: Which.
        results: One per job, where a run went well.
        error: Why there are none: a `RunError`, or whatever else a run raised. Neither: nobody wanted the jobs any more
            when their turn came.
    """

    jobs: Sequence[J]
    results: Sequence[R] | None = None
    error: Exception | None = None


class Submission(Generic[J, R]):
    """The jobs of one call; iterating over it gives every job once. Lives on one event loop.

    Args:
        count: How many jobs.
        lane: Which they wait in.

    Attributes:
        span: Of who asked, where that is traced.
    """

    def __init__(self, count: int, lane: Lane = Lane.INTERACTIVE) -> None:
        self.lane = lane
        self.span = current_span()
        self._left = count
        self._parts: list[Ended[J, R]] = []
        self._waiting: asyncio.Future[None] | None = None

    def queued(self, jobs: Sequence[J]) -> "list[Queued[J, R]]":
        """Its jobs as a queue takes them. They know the submission; it does not keep them, or both were a cycle."""
        return [Queued(job, self) for job in jobs]

    def put(self, part: Ended[J, R]) -> None:
        """Takes note of how some of its jobs ended."""
        self._parts.append(part)
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Ended[J, R]:
        if not self._parts:
            if not self._left:
                raise StopAsyncIteration
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting
        part = self._parts.pop(0)
        self._left -= len(part.jobs)
        return part


class Queued(Generic[J, R]):
    """One job in a queue, and where it belongs."""

    __slots__ = ("job", "length", "submission")

    def __init__(self, job: J, submission: Submission[J, R]) -> None:
        self.job = job
        self.length = job.length
        self.submission = submission

    def wanted(self, now_s: float) -> bool:
        """Whether somebody still waits for it."""
        return self.job.wanted(now_s)


def jobs_of(run: Sequence[Queued[J, R]]) -> list[J]:
    """The jobs of a run."""
    return [each.job for each in run]


def tell_run(run: Sequence[Queued[J, R]], *, start_ns: int, end_ns: int) -> None:
    """Tells the traces of all calls in a run of it; times in nanoseconds since 1970."""
    if any(each.submission.span is not None for each in run):
        attributes = {TEXTS: len(run), TOKENS: sum(each.length for each in run)}
        waiting = (each.submission.span for each in run)
        tell_batch(BATCH, waiting, start_ns=start_ns, end_ns=end_ns, attributes=attributes)


def finish(run: Sequence[Queued[J, R]], results: Sequence[R]) -> None:
    """Gives every call its part of a run that went well."""
    start = 0
    for submission, jobs in _by_submission(run):
        submission.put(Ended(jobs, results[start : start + len(jobs)]))
        start += len(jobs)


def end(run: Sequence[Queued[J, R]], error: Exception | None = None) -> None:
    """Tells every call that jobs of it failed, or, without an error, that nobody wanted them any more."""
    for submission, jobs in _by_submission(run):
        submission.put(Ended(jobs, error=error))


def _by_submission(run: Sequence[Queued[J, R]]) -> Iterator[tuple[Submission[J, R], list[J]]]:
    # Jobs of one call mostly stand next to each other; where they do not, it gets several parts.
    for submission, group in groupby(run, key=attrgetter("submission")):
        yield submission, [each.job for each in group]
