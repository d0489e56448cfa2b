"""What holds for every queue of texts that are to be encoded."""

from collections.abc import Sequence
from typing import Any, Protocol


class HasLength(Protocol):
    """A job, as the queues see it."""

    @property
    def length(self) -> int:
        """Tokens."""
        ...


class JobQueue(Protocol):
    """A queue of jobs."""

    @property
    def jobs(self) -> int:
        """How many wait."""
        ...

    @property
    def tokens(self) -> int:
        """Of those that wait."""
        ...

    def take(self, *, max_tokens: int, max_jobs: int) -> tuple[Sequence[Any], Sequence[Any]]:
        """The next batch, and the jobs that nobody wants any more."""
        ...


def assert_every_job_comes_once(queue: JobQueue, jobs: Sequence[HasLength], *, max_tokens: int, max_jobs: int) -> None:
    """Empties the queue, whose jobs are all wanted: each comes once, and no batch is larger than allowed."""
    seen: list[HasLength] = []
    while queue.jobs:
        taken, dropped = queue.take(max_tokens=max_tokens, max_jobs=max_jobs)
        assert taken
        assert not dropped
        assert len(taken) <= max_jobs
        assert len(taken) == 1 or sum(job.length for job in taken) <= max_tokens
        seen += taken
        assert queue.tokens == sum(job.length for job in jobs) - sum(job.length for job in seen)
    assert len(seen) == len(jobs)
    assert set(seen) == set(jobs)
