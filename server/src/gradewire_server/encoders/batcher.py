"""A batcher for one model, which starts a batch as soon as a worker is free."""

import asyncio
import logging
import math
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Final, Generic, NamedTuple, Protocol, Self, TypeVar

from typing_extensions import override

from gradewire_proto.tracing.spans import BATCH, TEXTS, TOKENS, current_span, record_batch
from gradewire_server.domain.caller import Lane, current_turn
from gradewire_server.domain.items import Failure
from gradewire_server.encoders.token_batches import HasLength, LaneQueue, plan_runs
from gradewire_server.settings.engine import ComputeConfig, allowed_cores

_log = logging.getLogger(__name__)

_QUANTUM_TOKENS: Final = 64
_SMALLEST_SHARE_TOKENS: Final = 12
ENCODER_NICE: Final = 4
"""The nice level of encoder threads on Linux, so that the event loop's thread runs first."""
_PARTS_OF_COMPETING_CALLS: Final = 2
_PARTS_BESIDE_INTERACTIVE: Final = 4
"""The divisor for a batch's token limit while bulk work is queued and interactive calls arrive."""
_INTERACTIVE_FOR_S: Final = 1.0
"""Seconds for which an interactive call keeps batches small while bulk work is queued."""


class RunError(Exception):
    """Raised when a run failed or cannot start.

    Attributes:
        failure: The failure for waiting callers, without server internals.
    """

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class QueueFullError(Exception):
    """Raised when the queue is full. No job was queued."""


class DeadlinePassedError(Exception):
    """Raised when a run did not finish before its callers' latest deadline."""


class WantedJob(HasLength, Protocol):
    """A queued job."""

    @property
    def deadline_s(self) -> float:
        """The callers' latest deadline in `time.monotonic()` seconds, or infinity if a caller has no deadline."""

    def is_wanted(self, now_s: float) -> bool:
        """Return True if a caller still waits for the job."""


JobT = TypeVar("JobT", bound=WantedJob)
ResultT = TypeVar("ResultT")
JobT_contra = TypeVar("JobT_contra", contravariant=True)
ResultT_co = TypeVar("ResultT_co", covariant=True)


class FinishedJobs(NamedTuple, Generic[JobT, ResultT]):
    """Jobs of one call that finished in one run.

    Attributes:
        results: One result per job if the run succeeded.
        error: The exception if the run failed. If both `results` and `error` are None, no caller waited for the jobs
            any more.
    """

    jobs: Sequence[JobT]
    results: Sequence[ResultT] | None = None
    error: Exception | None = None


class Submission(Generic[JobT, ResultT]):
    """One call's jobs. Iterate over a submission to receive each job once. For one event loop only."""

    def __init__(self, count: int, lane: Lane = Lane.INTERACTIVE) -> None:
        self.lane = lane
        self.span = current_span()
        self._left = count
        self._parts: list[FinishedJobs[JobT, ResultT]] = []
        self._waiting: asyncio.Future[None] | None = None

    def put(self, part: FinishedJobs[JobT, ResultT]) -> None:
        """Add jobs that have finished."""
        self._parts.append(part)
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> FinishedJobs[JobT, ResultT]:
        if not self._parts:
            if not self._left:
                raise StopAsyncIteration
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting
        part = self._parts.pop(0)
        self._left -= len(part.jobs)
        return part


class Queued(Generic[JobT, ResultT]):
    """A queued job and its submission."""

    __slots__ = ("job", "length", "submission")

    def __init__(self, job: JobT, submission: Submission[JobT, ResultT]) -> None:
        self.job = job
        self.length = job.length
        self.submission = submission

    def is_wanted(self, now_s: float) -> bool:
        """Return True if a caller still waits for the job."""
        return self.job.is_wanted(now_s)


def finish(run: Sequence[Queued[JobT, ResultT]], results: Sequence[ResultT], start_ns: int, end_ns: int) -> None:
    """Deliver a successful run's results to the calls and trace the run. Times are nanoseconds since 1970."""
    if any(each.submission.span is not None for each in run):
        attributes = {TEXTS: len(run), TOKENS: sum(each.length for each in run)}
        waiting = (each.submission.span for each in run)
        record_batch(BATCH, waiting, start_ns=start_ns, end_ns=end_ns, attributes=attributes)
    start = 0
    for submission, jobs in _by_submission(run):
        submission.put(FinishedJobs(jobs, results[start : start + len(jobs)]))
        start += len(jobs)


def end(run: Sequence[Queued[JobT, ResultT]], error: Exception | None = None) -> None:
    """End a run's jobs with `error`, or with None if no caller waits for the jobs any more."""
    for submission, jobs in _by_submission(run):
        submission.put(FinishedJobs(jobs, error=error))


def _by_submission(run: Sequence[Queued[JobT, ResultT]]) -> Iterator[tuple[Submission[JobT, ResultT], list[JobT]]]:
    # If one call's jobs are not neighbours, the call receives several parts.
    for submission, group in groupby(run, key=attrgetter("submission")):
        yield submission, [each.job for each in group]


def lower_priority(nice: int) -> None:
    """Lower the priority of the calling thread, and of threads that it starts, to `nice` (0 to 19) on Linux.

    At equal priority, calls would wait during encoder runs, because all threads of a busy process get equal time, and
    only one thread handles calls.
    """
    if sys.platform != "linux":
        return
    try:
        own = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, own, max(nice, os.getpriority(os.PRIO_PROCESS, own)))
    except OSError as error:
        _log.warning("cannot lower the priority of an encoder thread: %s", error)


def worker_pool(count: int, *, name: str, pinned: bool, nice: int = 0) -> ThreadPoolExecutor:
    """Return a pool of threads for single-threaded runs.

    If `pinned` is True and there are exactly `count` cores, each thread runs only on one core. If threads are not
    pinned, two threads that wake at the same moment share a core for longer than a short run takes.
    """
    cores = allowed_cores()
    if not pinned or len(cores) != count or not hasattr(os, "sched_setaffinity"):
        return ThreadPoolExecutor(count, thread_name_prefix=name, initializer=lower_priority, initargs=(nice,))
    free: queue.SimpleQueue[int] = queue.SimpleQueue()
    for core in cores:
        free.put(core)

    def pin() -> None:
        lower_priority(nice)
        try:
            os.sched_setaffinity(threading.get_native_id(), {free.get_nowait()})
        except OSError as error:
            _log.warning("cannot pin an encoder thread to a core: %s", error)

    return ThreadPoolExecutor(count, thread_name_prefix=name, initializer=pin)


class RunJobs(Protocol[JobT_contra, ResultT_co]):
    """A function that computes one run in a worker thread."""

    def __call__(self, jobs: Sequence[JobT_contra], /, *, exclusive: bool) -> Sequence[ResultT_co]:
        """Return one result per job. `exclusive` is True if no other run was active or queued at the start."""


class JobQueue(Generic[JobT, ResultT]):
    """A queue of jobs from many calls. For one event loop only."""

    def __init__(self, max_queue_tokens: int) -> None:
        self._max_queue_tokens = max_queue_tokens
        self._queue: LaneQueue[Queued[JobT, ResultT]] = LaneQueue(quantum_tokens=_QUANTUM_TOKENS)
        self._loop = asyncio.get_running_loop()
        self._interactive_s = -math.inf
        self._closed: Failure | None = None

    def submit(self, jobs: Sequence[JobT], /) -> Submission[JobT, ResultT]:
        """Queue one call's jobs and return their submission.

        A queue below its limit accepts a call of any size.

        Raises:
            QueueFullError: The queue is full.
            RunError: The queue is closed, or runs cannot succeed now.
        """
        if self._closed is not None:
            raise RunError(self._closed)
        if self._queue.tokens >= self._max_queue_tokens:
            raise QueueFullError
        refusal = self._refusal()
        if refusal is not None:
            raise refusal
        submission: Submission[JobT, ResultT] = Submission(len(jobs), current_turn().lane)
        if submission.lane is Lane.INTERACTIVE:
            self._interactive_s = self._loop.time()
        # The submission does not refer to its jobs, because that reference would make a cycle.
        self._queue.push([Queued(job, submission) for job in jobs], submission.lane)
        self._dispatch()
        return submission

    async def close(self, reason: Failure) -> None:
        """Fail queued jobs with `reason` and wait for running jobs."""
        raise NotImplementedError

    def _refusal(self) -> RunError | None:
        return None

    def _dispatch(self) -> None:
        raise NotImplementedError

    def _take(self, *, max_tokens: int, max_jobs: int) -> list[Queued[JobT, ResultT]]:
        now_s = self._loop.time()
        taken, dropped = self._queue.take(
            max_tokens=max_tokens, max_jobs=max_jobs, wanted=lambda queued: queued.job.is_wanted(now_s)
        )
        end(dropped)
        return taken


class Batcher(JobQueue[JobT, ResultT]):
    """A queue with worker threads, which run the batches. For one event loop only."""

    def __init__(self, run: RunJobs[JobT, ResultT], compute: ComputeConfig, *, name: str) -> None:
        super().__init__(compute.max_queue_tokens)
        self._run = run
        self._compute = compute
        self._idle = self._workers = compute.worker_count
        self._pool = worker_pool(self._idle, name=f"encode-{name}", pinned=compute.pin_workers, nice=ENCODER_NICE)

    @override
    async def close(self, reason: Failure) -> None:
        self._closed = reason
        end(self._queue.drain(), RunError(reason))
        await asyncio.to_thread(self._pool.shutdown)
        # Let the event loop deliver the last runs' results.
        await asyncio.sleep(0)

    @override
    def _dispatch(self) -> None:
        while self._idle and self._queue.jobs:
            # Share the queue equally among idle workers, but not in tiny batches, whose overhead outweighs the gain.
            share = max(-(-self._queue.tokens // self._idle), _SMALLEST_SHARE_TOKENS)
            taken = self._take(max_tokens=min(self._budget_tokens(), share), max_jobs=self._compute.max_batch_texts)
            if taken:
                runs = plan_runs(
                    taken,
                    max_tokens=self._compute.max_batch_tokens,
                    overhead_tokens=self._compute.run_overhead_tokens,
                    padding_cost=self._compute.padding_cost,
                )
                exclusive = self._idle == self._workers and not self._queue.jobs
                self._idle -= 1
                self._pool.submit(self._work, runs, exclusive=exclusive)

    def _budget_tokens(self) -> int:
        # Competing calls get smaller batches. This costs about 3 % of throughput and halves a call's wait.
        parts = 1 if self._queue.calls == 1 else _PARTS_OF_COMPETING_CALLS
        if self._queue.bulk_jobs and self._loop.time() - self._interactive_s < _INTERACTIVE_FOR_S:
            parts = _PARTS_BESIDE_INTERACTIVE
        return -(-self._compute.max_batch_tokens // parts)

    def _work(self, runs: Sequence[Sequence[Queued[JobT, ResultT]]], *, exclusive: bool) -> None:
        # Deliver each run immediately, so that a short call need not wait for the whole batch. The last run's delivery
        # also frees the worker, because each message to the event loop may wake it up.
        last = len(runs) - 1
        for index, run in enumerate(runs):
            start_ns = time.time_ns()
            try:
                results = self._run([each.job for each in run], exclusive=exclusive)
            except Exception as error:  # noqa: BLE001 - any error becomes these texts' failure
                _log.exception("cannot encode a batch of %d texts", len(run))
                deliver = partial(end, run, error)
            else:
                deliver = partial(finish, run, results, start_ns, time.time_ns())
            if index == last:
                self._loop.call_soon_threadsafe(self._freed, deliver)
            else:
                self._loop.call_soon_threadsafe(deliver)

    def _freed(self, deliver: Callable[[], None]) -> None:
        self._idle += 1
        self._dispatch()  # first, so that the worker has work again
        deliver()
