"""Jobs of two lanes: interactive ones go first, bulk ones keep a share that they cannot lose."""

from collections.abc import Callable, Sequence
from typing import Final, Generic

from gradewire_server.domain.turn import Lane
from gradewire_server.encoders.batching.fair_queue import FairQueue, J

_BULK_SHARE: Final = 1 / 8
"""Of the tokens of interactive jobs, what bulk jobs are owed that had to stand back for them."""


class LaneQueue(Generic[J]):
    """A fair queue for each lane.

    Args:
        quantum_tokens: As for `FairQueue`; bulk jobs go first once they are owed as much.
    """

    def __init__(self, *, quantum_tokens: int) -> None:
        self._quantum = quantum_tokens
        self._lanes: dict[Lane, FairQueue[J]] = {lane: FairQueue(quantum_tokens=quantum_tokens) for lane in Lane}
        self._owed_tokens = 0.0

    @property
    def tokens(self) -> int:
        """Tokens of all jobs."""
        return sum(lane.tokens for lane in self._lanes.values())

    @property
    def jobs(self) -> int:
        """How many there are."""
        return sum(lane.jobs for lane in self._lanes.values())

    @property
    def bulk_jobs(self) -> int:
        """How many of them are bulk ones."""
        return self._lanes[Lane.BULK].jobs

    @property
    def calls(self) -> int:
        """Calls that have jobs here."""
        return sum(lane.calls for lane in self._lanes.values())

    def push(self, jobs: Sequence[J], lane: Lane = Lane.INTERACTIVE) -> None:
        """Appends the jobs of one call."""
        self._lanes[lane].push(jobs)

    def take(
        self, *, max_tokens: int, max_jobs: int, wanted: Callable[[J], bool] = lambda _: True
    ) -> tuple[list[J], list[J]]:
        """Takes the next batch; arguments and result as `FairQueue.take`."""
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
        """Takes everything."""
        return [job for lane in self._lanes.values() for job in lane.drain()]
