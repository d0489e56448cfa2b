"""Queues that form fair batches within a token budget, and a function that splits batches into runs."""

from collections import deque
from collections.abc import Callable, Sequence
from itertools import accumulate
from operator import attrgetter
from typing import Final, Generic, Protocol, TypeVar

from gradewire_server.domain.caller import Lane


class HasLength(Protocol):
    """A job with a length."""

    @property
    def length(self) -> int:
        """The number of tokens."""


J = TypeVar("J", bound=HasLength)


class _Group(Generic[J]):
    __slots__ = ("deficit", "jobs")

    def __init__(self, jobs: list[J]) -> None:
        self.jobs = jobs
        self.deficit = 0


class FairQueue(Generic[J]):
    """A queue that serves calls in turn.

    Args:
        quantum_tokens: Number of tokens that a call may add to a batch per turn.
    """

    def __init__(self, *, quantum_tokens: int) -> None:
        self._quantum = quantum_tokens
        self._ring: deque[_Group[J]] = deque()
        self.tokens = 0
        self.jobs = 0

    @property
    def calls(self) -> int:
        """The number of calls with queued jobs."""
        return len(self._ring)

    def push(self, jobs: Sequence[J]) -> None:
        """Append one call's jobs."""
        if jobs:
            self._ring.append(_Group(sorted(jobs, key=attrgetter("length"))))
            self.tokens += sum([job.length for job in jobs])
            self.jobs += len(jobs)

    def take(
        self,
        *,
        max_tokens: int,
        max_jobs: int,
        wanted: Callable[[J], bool] = lambda _: True,
        at_least_one: bool = True,
    ) -> tuple[list[J], list[J]]:
        """Take the next batch, and drop jobs for which `wanted` returns False.

        If `at_least_one` is True, a job longer than `max_tokens` may form a batch alone.

        Returns:
            The batch and the dropped jobs.
        """
        taken: list[J] = []
        dropped: list[J] = []
        tokens = 0
        while self._ring:
            group = self._ring[0]
            group.deficit += self._quantum
            full = False
            while group.jobs and not full:
                job = group.jobs[-1]
                if not wanted(job):
                    dropped.append(self._pop(group))
                    continue
                full = (bool(taken) or not at_least_one) and (
                    tokens + job.length > max_tokens or len(taken) >= max_jobs
                )
                if full or job.length > group.deficit:
                    break
                taken.append(self._pop(group))
                tokens += job.length
                group.deficit -= job.length
            if group.jobs:
                self._ring.rotate(-1)
            else:
                self._ring.popleft()
            if full:
                break
        return taken, dropped

    def drain(self) -> list[J]:
        """Remove and return all jobs."""
        jobs = [job for group in self._ring for job in group.jobs]
        self._ring.clear()
        self.tokens = self.jobs = 0
        return jobs

    def _pop(self, group: _Group[J]) -> J:
        job = group.jobs.pop()
        self.tokens -= job.length
        self.jobs -= 1
        return job


def plan_runs(jobs: Sequence[J], *, max_tokens: int, overhead_tokens: int, padding_cost: float = 1.0) -> list[list[J]]:
    """Split a batch into runs with the lowest total cost of padding and overhead.

    A run's cost is the sum of `overhead_tokens`, the run's tokens, and `padding_cost` for each padding token. The
    search takes O(n²) for n distinct lengths.

    Args:
        jobs: Jobs in any order.
        max_tokens: Maximum cost of a run, without overhead, unless all jobs in the run have the same length.
        overhead_tokens: Fixed cost of a run, in tokens.
        padding_cost: Cost of a padding token, in tokens, from 0 to 1.

    Returns:
        Runs that together contain every job once, longest jobs first.
    """
    ordered = sorted(jobs, key=lambda job: -job.length)
    starts = [i for i, job in enumerate(ordered) if i == 0 or job.length != ordered[i - 1].length]
    bounds = [*starts, len(ordered)]
    tokens_before = [0, *accumulate(job.length for job in ordered)]
    best = [0.0] * len(bounds)  # lowest cost of ordered[bounds[i]:]
    end_of = [0] * len(bounds)
    for first in range(len(starts) - 1, -1, -1):
        longest = ordered[bounds[first]].length
        best[first] = float("inf")
        for end in range(first + 1, len(bounds)):
            tokens = tokens_before[bounds[end]] - tokens_before[bounds[first]]
            padding = longest * (bounds[end] - bounds[first]) - tokens
            run = tokens + padding_cost * padding
            if end > first + 1 and run > max_tokens:
                break
            cost = overhead_tokens + run + best[end]
            if cost < best[first]:
                best[first], end_of[first] = cost, end
    runs = []
    at = 0
    while at < len(starts):
        runs.append(ordered[bounds[at] : bounds[end_of[at]]])
        at = end_of[at]
    return runs


_BULK_SHARE: Final = 1 / 8
"""The credit, in tokens, that waiting bulk jobs earn for each interactive token."""


class LaneQueue(Generic[J]):
    """A fair queue for each lane.

    Args:
        quantum_tokens: See `FairQueue`. When the bulk jobs' credit reaches this value, bulk jobs go first.
    """

    def __init__(self, *, quantum_tokens: int) -> None:
        self._quantum = quantum_tokens
        self._lanes: dict[Lane, FairQueue[J]] = {lane: FairQueue(quantum_tokens=quantum_tokens) for lane in Lane}
        self._owed_tokens = 0.0

    @property
    def tokens(self) -> int:
        """The number of queued tokens."""
        return self._lanes[Lane.INTERACTIVE].tokens + self._lanes[Lane.BULK].tokens

    @property
    def jobs(self) -> int:
        """The number of queued jobs."""
        return self._lanes[Lane.INTERACTIVE].jobs + self._lanes[Lane.BULK].jobs

    @property
    def bulk_jobs(self) -> int:
        """The number of queued bulk jobs."""
        return self._lanes[Lane.BULK].jobs

    @property
    def calls(self) -> int:
        """The number of calls with queued jobs."""
        return self._lanes[Lane.INTERACTIVE].calls + self._lanes[Lane.BULK].calls

    def lane(self, lane: Lane) -> FairQueue[J]:
        """Return one lane's queue. Jobs that you take from it do not count as credit for the other lane."""
        return self._lanes[lane]

    def push(self, jobs: Sequence[J], lane: Lane = Lane.INTERACTIVE) -> None:
        """Append one call's jobs."""
        self._lanes[lane].push(jobs)

    def take(
        self, *, max_tokens: int, max_jobs: int, wanted: Callable[[J], bool] = lambda _: True
    ) -> tuple[list[J], list[J]]:
        """Take the next batch, like `FairQueue.take`."""
        interactive, bulk = self._lanes[Lane.INTERACTIVE], self._lanes[Lane.BULK]
        if not bulk.jobs:
            self._owed_tokens = 0.0
            return interactive.take(max_tokens=max_tokens, max_jobs=max_jobs, wanted=wanted)
        if not interactive.jobs:
            return bulk.take(max_tokens=max_tokens, max_jobs=max_jobs, wanted=wanted)
        bulk_first = self._owed_tokens >= self._quantum
        first, second = (bulk, interactive) if bulk_first else (interactive, bulk)
        first_tokens = min(max_tokens, int(self._owed_tokens)) if bulk_first else max_tokens
        taken, dropped = first.take(max_tokens=first_tokens, max_jobs=max_jobs, wanted=wanted)
        used = sum(job.length for job in taken)
        more, gone = second.take(
            max_tokens=max_tokens - used, max_jobs=max_jobs - len(taken), wanted=wanted, at_least_one=not taken
        )
        also_used = sum(job.length for job in more)
        bulk_tokens, interactive_tokens = (used, also_used) if bulk_first else (also_used, used)
        self._owed_tokens = max(0.0, self._owed_tokens + _BULK_SHARE * interactive_tokens - bulk_tokens)
        return taken + more, dropped + gone

    def drain(self) -> list[J]:
        """Remove and return all jobs."""
        return [job for lane in self._lanes.values() for job in lane.drain()]
