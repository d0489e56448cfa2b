"""Keeps another server busy with one model's runs: several on their way at a time, each cancelled once nobody waits."""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from gradewire_server.encoders.batching.batcher import ClosedError
from gradewire_server.encoders.batching.fair_queue import FairQueue, Job, plan_runs
from gradewire_server.encoders.encoder import RunError

_log = logging.getLogger(__name__)
_QUANTUM_TOKENS: Final = 64
_SWEEP_S: Final = 0.05
_CLOSE_WAIT_S: Final = 2.0


class DeadlinePassedError(Exception):
    """A run was not done when the last of those who waited for it at its start gave up."""


class AwaitedJob(Job, Protocol):
    """What is dispatched."""

    @property
    def deadline_s(self) -> float:
        """When the last who waits for it gives up, `time.monotonic()` seconds; infinity for never."""

    def wanted(self, now_s: float) -> bool:
        """Whether somebody still waits for it."""


J = TypeVar("J", bound=AwaitedJob)
J_contra = TypeVar("J_contra", bound=AwaitedJob, contravariant=True)
R = TypeVar("R")


class RunHandler(Protocol[J_contra, R]):
    """What a dispatcher works for; all on the event loop."""

    def refusal(self) -> RunError | None:
        """Why no run would go well now: what is queued then fails at once, instead of waiting for its turn to."""

    async def run(self, jobs: Sequence[J_contra], /, *, deadline_s: float) -> R:
        """Computes one run; DeadlinePassedError where it is not done by `deadline_s`. May be cancelled."""

    def done(self, jobs: Sequence[J_contra], result: R, /) -> None:
        """A run is computed."""

    def failed(self, jobs: Sequence[J_contra], error: Exception, /) -> None:
        """A run raised, or never came because of `ClosedError`."""

    def dropped(self, job: J_contra, /) -> None:
        """Nobody wanted a job any more, before its run or while it ran."""


@dataclass(frozen=True, slots=True)
class DispatchLimits:
    """How much goes at a time.

    Attributes:
        max_in_flight: Runs on their way at a time.
        parallel_runs: Of these, how many the other side computes at a time; a call alone is cut into so many.
        max_run_tokens: Tokens of one run.
        max_run_texts: Texts of one run.
        run_overhead_tokens: Cost of a run beside its tokens, in tokens: what cutting a batch in two has to gain.
        max_queue_tokens: A call that finds so many waiting is refused.
    """

    max_in_flight: int
    parallel_runs: int
    max_run_tokens: int
    max_run_texts: int
    run_overhead_tokens: int
    max_queue_tokens: int


class AsyncDispatcher(Generic[J, R]):
    """Queue and runs under way. Lives on one event loop.

    Args:
        handler: Computes runs and takes their results.
        limits: How much at a time.
    """

    def __init__(self, handler: RunHandler[J, R], limits: DispatchLimits) -> None:
        self._handler = handler
        self._limits = limits
        self._queue: FairQueue[J] = FairQueue(quantum_tokens=_QUANTUM_TOKENS)
        self._planned: deque[Sequence[J]] = deque()
        self._running: dict[asyncio.Task[None], Sequence[J]] = {}
        self._loop = asyncio.get_running_loop()
        self._sweeping: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def in_flight(self) -> int:
        """Runs on their way."""
        return len(self._running)

    def submit(self, jobs: Sequence[J], /) -> bool:
        """Queues the jobs of one call; False where the queue is full or closed and none was taken."""
        if self._closed or self._queue.tokens >= self._limits.max_queue_tokens:
            return False
        refusal = self._handler.refusal()
        if refusal is not None:
            self._handler.failed(jobs, refusal)
            return True
        self._queue.push(jobs)
        self._dispatch()
        return True

    async def close(self) -> None:
        """Fails what is queued, waits a little for what is running, then fails that too."""
        self._closed = True
        queued = self._drain()
        if queued:
            self._handler.failed(queued, ClosedError("the dispatcher was closed"))
        if self._running:
            await asyncio.wait(self._running, timeout=_CLOSE_WAIT_S)
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running)

    def _dispatch(self) -> None:
        while len(self._running) < self._limits.max_in_flight and (self._planned or self._queue.jobs):
            if not self._planned:
                self._plan()
                continue
            # What was planned goes first: put back into the queue, short texts would wait behind every long one.
            run = self._wanted(self._planned.popleft())
            if run:
                task = self._loop.create_task(self._work(run))
                self._running[task] = run
                task.add_done_callback(self._ended)
        if self._running and self._sweeping is None:
            self._sweeping = self._loop.call_later(_SWEEP_S, self._sweep)

    def _plan(self) -> None:
        limits = self._limits
        now_s = self._loop.time()
        idle = max(1, limits.parallel_runs - len(self._running))
        share = max(-(-self._queue.tokens // idle), limits.run_overhead_tokens)
        taken, dropped = self._queue.take(
            max_tokens=min(limits.max_run_tokens, share),
            max_jobs=limits.max_run_texts,
            wanted=lambda job: job.wanted(now_s),
        )
        for job in dropped:
            self._handler.dropped(job)
        if taken:
            self._planned += plan_runs(
                taken, max_tokens=limits.max_run_tokens, overhead_tokens=limits.run_overhead_tokens
            )

    def _wanted(self, jobs: Sequence[J]) -> list[J]:
        now_s = self._loop.time()
        wanted = [job for job in jobs if job.wanted(now_s)]
        for job in jobs:
            if not job.wanted(now_s):
                self._handler.dropped(job)
        return wanted

    def _drain(self) -> list[J]:
        jobs = [job for run in self._planned for job in run]
        self._planned.clear()
        return jobs + self._queue.drain()

    def _sweep(self) -> None:
        """Cancels runs that nobody waits for any more, one text that is wanted keeps its whole run; and hopeless ones.

        What is cancelled and wanted comes back, and fails by the refusal as the queue does.
        """
        refusal = self._handler.refusal()
        if refusal is not None:
            waiting = self._drain()
            if waiting:
                self._handler.failed(waiting, refusal)
        now_s = self._loop.time()
        for task, jobs in self._running.items():
            if refusal is not None or not any(job.wanted(now_s) for job in jobs):
                task.cancel()
        self._sweeping = self._loop.call_later(_SWEEP_S, self._sweep) if self._running else None

    async def _work(self, jobs: Sequence[J]) -> None:
        try:
            result = await self._handler.run(jobs, deadline_s=max(job.deadline_s for job in jobs))
        except (asyncio.CancelledError, DeadlinePassedError):
            # Whoever joined since waits for longer, and shall not pay for those who went away.
            self._give_back(jobs)
        except Exception as error:  # noqa: BLE001 - whatever a backend raises becomes a failure of these texts
            if not isinstance(error, RunError):
                _log.exception("a run of %d texts failed", len(jobs))
            self._handler.failed(jobs, error)
        else:
            self._handler.done(jobs, result)

    def _ended(self, task: asyncio.Task[None]) -> None:
        jobs = self._running.pop(task)
        if task.cancelled():  # before its first step
            self._give_back(jobs)
        self._dispatch()

    def _give_back(self, jobs: Sequence[J]) -> None:
        wanted = self._wanted(jobs)
        refusal = self._handler.refusal()
        if wanted and self._closed:
            self._handler.failed(wanted, ClosedError("the dispatcher was closed"))
        elif wanted and refusal is not None:
            self._handler.failed(wanted, refusal)
        else:
            self._queue.push(wanted)
