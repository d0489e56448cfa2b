"""Keeps the workers of one model busy: a batch leaves as soon as a worker is free, never later, never by a timer."""

import asyncio
import logging
import math
import time
from collections.abc import Sequence
from typing import Final, Generic, Protocol, TypeVar

from gradewire_server.domain.result import Failure
from gradewire_server.domain.turn import Lane, current_turn
from gradewire_server.encoders.batching.errors import QueueFullError, RunError
from gradewire_server.encoders.batching.fair_queue import plan_runs
from gradewire_server.encoders.batching.lane_queue import LaneQueue
from gradewire_server.encoders.batching.submission import J, Queued, R, Submission, end, finish, jobs_of, tell_run
from gradewire_server.encoders.batching.workers import worker_pool
from gradewire_server.settings.compute import ComputeConfig

_log = logging.getLogger(__name__)
_QUANTUM_TOKENS: Final = 64
_SMALLEST_SHARE_TOKENS: Final = 12
_PARTS_OF_COMPETING_CALLS: Final = 2
_PARTS_BESIDE_INTERACTIVE: Final = 4
"""Of the largest batch, what bulk work gets at a time while interactive calls come: they wait for what is at work."""
_INTERACTIVE_FOR_S: Final = 1.0
"""Seconds after an interactive call for which another one is expected."""

J_contra = TypeVar("J_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)


class RunJobs(Protocol[J_contra, R_co]):
    """Computes one run; called in a worker thread."""

    def __call__(self, jobs: Sequence[J_contra], /, *, exclusive: bool) -> Sequence[R_co]:
        """One result per job. `exclusive`: no other run was at work or waiting when it left."""


class Batcher(Generic[J, R]):
    """Queue, workers and what runs on them. Lives on one event loop.

    Args:
        run: Computes one run.
        compute: Workers and budgets.
        name: For thread names.
    """

    def __init__(self, run: RunJobs[J, R], compute: ComputeConfig, *, name: str) -> None:
        self._run = run
        self._compute = compute
        self._idle = compute.worker_count
        self._queue: LaneQueue[Queued[J, R]] = LaneQueue(quantum_tokens=_QUANTUM_TOKENS)
        pinned = compute.pin_workers and compute.intra_op_threads == 1
        self._pool = worker_pool(self._idle, name=f"encode-{name}", pinned=pinned, nice=compute.nice)
        self._loop = asyncio.get_running_loop()
        self._interactive_s = -math.inf
        self._closed: Failure | None = None

    def submit(self, jobs: Sequence[J], /) -> Submission[J, R]:
        """Queues the jobs of one call; see `RunQueue.submit`.

        A queue below its bound takes a call whole, so every call can be served when it is alone.
        """
        if self._closed is not None:
            raise RunError(self._closed)
        if self._queue.tokens >= self._compute.max_queue_tokens:
            raise QueueFullError
        submission: Submission[J, R] = Submission(len(jobs), current_turn().lane)
        if submission.lane is Lane.INTERACTIVE:
            self._interactive_s = self._loop.time()
        self._queue.push(submission.queued(jobs), submission.lane)
        self._dispatch()
        return submission

    async def close(self, reason: Failure) -> None:
        """Fails what is queued with `reason`, waits for what is running."""
        self._closed = reason
        end(self._queue.drain(), RunError(reason))
        await asyncio.to_thread(self._pool.shutdown)
        # Results of the last runs were handed to the loop before the pool ended; let them be delivered.
        await asyncio.sleep(0)

    def _dispatch(self) -> None:
        now_s = self._loop.time()
        while self._idle and self._queue.jobs:
            # One call on several idle workers: equal tokens for each, unless a run's overhead would eat the gain.
            share = max(-(-self._queue.tokens // self._idle), _SMALLEST_SHARE_TOKENS)
            taken, dropped = self._queue.take(
                max_tokens=min(self._budget_tokens(now_s), share),
                max_jobs=self._compute.max_batch_texts,
                wanted=lambda queued: queued.wanted(now_s),
            )
            end(dropped)
            if taken:
                runs = plan_runs(
                    taken,
                    max_tokens=self._compute.max_batch_tokens,
                    overhead_tokens=self._compute.run_overhead_tokens,
                    padding_cost=self._compute.padding_cost,
                )
                exclusive = self._idle == self._compute.worker_count and not self._queue.jobs
                self._idle -= 1
                self._pool.submit(self._work, runs, exclusive=exclusive)

    def _budget_tokens(self, now_s: float) -> int:
        # Where calls compete, a smaller batch: it costs some 3 % of throughput and halves what one waits for another.
        parts = 1 if self._queue.calls == 1 else _PARTS_OF_COMPETING_CALLS
        if self._queue.bulk_jobs and now_s - self._interactive_s < _INTERACTIVE_FOR_S:
            parts = _PARTS_BESIDE_INTERACTIVE
        return -(-self._compute.max_batch_tokens // parts)

    def _work(self, runs: Sequence[Sequence[Queued[J, R]]], *, exclusive: bool) -> None:
        # In a worker thread. Each run is delivered at once: a short call in the batch need not wait for the rest.
        for run in runs:
            start_ns = time.time_ns()
            try:
                results = self._run(jobs_of(run), exclusive=exclusive)
            except Exception as error:  # noqa: BLE001 - whatever a backend raises becomes a failure of these texts
                _log.exception("a run of %d texts failed", len(run))
                self._loop.call_soon_threadsafe(end, run, error)
            else:
                self._loop.call_soon_threadsafe(self._finish, run, results, start_ns, time.time_ns())
        self._loop.call_soon_threadsafe(self._freed)

    def _finish(self, run: Sequence[Queued[J, R]], results: Sequence[R], start_ns: int, end_ns: int) -> None:
        tell_run(run, start_ns=start_ns, end_ns=end_ns)
        finish(run, results)

    def _freed(self) -> None:
        self._idle += 1
        self._dispatch()
