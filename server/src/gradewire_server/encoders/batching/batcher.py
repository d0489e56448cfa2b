"""Keeps the workers of one model busy: a batch leaves as soon as a worker is free, never later, never by a timer."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from gradewire_server.encoders.batching.fair_queue import FairQueue, Job, plan_runs
from gradewire_server.encoders.batching.workers import worker_pool
from gradewire_server.settings.compute import ComputeConfig

_log = logging.getLogger(__name__)
_QUANTUM_TOKENS = 64
_SMALLEST_SHARE_TOKENS = 12


class ClosedError(Exception):
    """Why a job that was queued is not run any more."""


class QueuedJob(Job, Protocol):
    """What is batched."""

    def wanted(self, now_s: float) -> bool:
        """Whether somebody still waits for it."""


J = TypeVar("J", bound=QueuedJob)
J_contra = TypeVar("J_contra", bound=QueuedJob, contravariant=True)
R = TypeVar("R")


class BatchHandler(Protocol[J_contra, R]):
    """What a batcher works for."""

    def run(self, jobs: Sequence[J_contra], *, lone: bool) -> R:
        """Computes one run; called in a worker thread. `lone`: no other run was at work or waiting when it left."""

    def done(self, jobs: Sequence[J_contra], result: R) -> None:
        """A run is computed; called on the event loop, as all that follow."""

    def failed(self, jobs: Sequence[J_contra], error: Exception) -> None:
        """A run raised, or never came because of `ClosedError`."""

    def dropped(self, job: J_contra) -> None:
        """A job's turn came and nobody wanted it any more."""


class Batcher(Generic[J, R]):
    """Queue, workers and what runs on them. Lives on one event loop.

    Args:
        handler: Computes runs and takes their results.
        compute: Workers and budgets.
        name: For thread names.
    """

    def __init__(self, handler: BatchHandler[J, R], compute: ComputeConfig, *, name: str) -> None:
        self._handler = handler
        self._compute = compute
        self._idle = compute.worker_count
        self._queue: FairQueue[J] = FairQueue(quantum_tokens=_QUANTUM_TOKENS)
        pinned = compute.pin_workers and compute.intra_op_threads == 1
        self._pool = worker_pool(self._idle, name=f"encode-{name}", pinned=pinned)
        self._loop = asyncio.get_running_loop()
        self._closed = False

    @property
    def queued_tokens(self) -> int:
        """Tokens that wait."""
        return self._queue.tokens

    def submit(self, jobs: Sequence[J]) -> bool:
        """Queues the jobs of one call; False where the queue is full or closed and none was taken.

        A queue below its bound takes a call whole, so every call can be served when it is alone.
        """
        if self._closed or self._queue.tokens >= self._compute.max_queue_tokens:
            return False
        self._queue.push(jobs)
        self._dispatch()
        return True

    async def close(self) -> None:
        """Fails what is queued, waits for what is running."""
        self._closed = True
        queued = self._queue.drain()
        if queued:
            self._handler.failed(queued, ClosedError("the batcher was closed"))
        await asyncio.to_thread(self._pool.shutdown)
        # Results of the last runs were handed to the loop before the pool ended; let them be delivered.
        await asyncio.sleep(0)

    def _dispatch(self) -> None:
        now_s = self._loop.time()
        while self._idle and self._queue.jobs:
            # One call on several idle workers: equal tokens for each, unless a run's overhead would eat the gain.
            share = max(-(-self._queue.tokens // self._idle), _SMALLEST_SHARE_TOKENS)
            taken, dropped = self._queue.take(
                max_tokens=min(self._budget_tokens(), share),
                max_jobs=self._compute.max_batch_texts,
                wanted=lambda job: job.wanted(now_s),
            )
            for job in dropped:
                self._handler.dropped(job)
            if taken:
                runs = plan_runs(taken, max_tokens=self._compute.max_batch_tokens)
                lone = self._idle == self._compute.worker_count and not self._queue.jobs
                self._idle -= 1
                self._pool.submit(self._work, runs, lone=lone)

    def _budget_tokens(self) -> int:
        # Where calls compete, a smaller batch: it costs some 3 % of throughput and halves what one waits for another.
        return self._compute.max_batch_tokens if self._queue.calls == 1 else -(-self._compute.max_batch_tokens // 2)

    def _work(self, runs: Sequence[Sequence[J]], *, lone: bool) -> None:
        # In a worker thread. Each run is delivered at once: a short call in the batch need not wait for the rest.
        for run in runs:
            try:
                result = self._handler.run(run, lone=lone)
            except Exception as error:  # noqa: BLE001 - whatever a backend raises becomes a failure of these texts
                _log.exception("a run of %d texts failed", len(run))
                self._loop.call_soon_threadsafe(self._handler.failed, run, error)
            else:
                self._loop.call_soon_threadsafe(self._handler.done, run, result)
        self._loop.call_soon_threadsafe(self._freed)

    def _freed(self) -> None:
        self._idle += 1
        self._dispatch()
