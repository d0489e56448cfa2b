"""A dispatcher, which sends one model's runs to a remote server and cancels runs that no caller waits for."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from typing_extensions import override

from gradewire_server.domain.caller import Lane
from gradewire_server.domain.items import Failure
from gradewire_server.encoders.batcher import (
    DeadlinePassedError,
    JobQueue,
    JobT,
    JobT_contra,
    Queued,
    ResultT,
    ResultT_co,
    RunError,
    end,
    finish,
)
from gradewire_server.encoders.token_batches import plan_runs

_log = logging.getLogger(__name__)
_SWEEP_S: Final = 0.05
_CLOSE_WAIT_S: Final = 2.0


class RemoteRuns(Protocol[JobT_contra, ResultT_co]):
    """A remote server that computes runs. For one event loop only."""

    def refusal(self) -> RunError | None:
        """Return the error for queued jobs if runs cannot succeed now; otherwise return None."""

    async def run(self, jobs: Sequence[JobT_contra], /, *, deadline_s: float) -> Sequence[ResultT_co]:
        """Compute one run and return one result per job. You may cancel this call.

        Raises:
            DeadlinePassedError: The run did not finish before `deadline_s`.
        """


@dataclass(frozen=True, slots=True)
class DispatchLimits:
    """The limits of concurrent runs.

    Attributes:
        parallel_runs: The number of runs that the server computes at a time.
        run_overhead_tokens: The fixed cost of a run, in tokens. A batch is split only if the split saves more.
    """

    max_in_flight: int
    parallel_runs: int
    max_run_tokens: int
    max_run_texts: int
    run_overhead_tokens: int
    max_queue_tokens: int


class AsyncDispatcher(JobQueue[JobT, ResultT]):
    """A queue with requests to a remote server. For one event loop only."""

    def __init__(self, remote: RemoteRuns[JobT, ResultT], limits: DispatchLimits) -> None:
        super().__init__(limits.max_queue_tokens)
        self._remote = remote
        self._limits = limits
        self._planned: deque[Sequence[Queued[JobT, ResultT]]] = deque()
        self._running: dict[asyncio.Task[None], Sequence[Queued[JobT, ResultT]]] = {}
        self._sweeping: asyncio.TimerHandle | None = None

    @override
    async def close(self, reason: Failure) -> None:
        """Fail queued jobs with `reason`. Wait briefly for running jobs, then fail the jobs that still run."""
        self._closed = reason
        end(self._drain(), RunError(reason))
        if self._running:
            await asyncio.wait(self._running, timeout=_CLOSE_WAIT_S)
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running)

    @override
    def _refusal(self) -> RunError | None:
        return self._remote.refusal()

    @override
    def _dispatch(self) -> None:
        while len(self._running) < self._limits.max_in_flight and (self._planned or self._queue.jobs):
            if not self._planned:
                self._plan()
                continue
            # Planned runs do not return to the queue, where short texts would wait behind all long texts.
            run = self._still_wanted(self._planned.popleft())
            if run:
                task = self._loop.create_task(self._work(run))
                self._running[task] = run
                task.add_done_callback(self._finished)
        if self._running and self._sweeping is None:
            self._sweeping = self._loop.call_later(_SWEEP_S, self._sweep)

    def _plan(self) -> None:
        limits = self._limits
        idle = max(1, limits.parallel_runs - len(self._running))
        share = max(-(-self._queue.tokens // idle), limits.run_overhead_tokens)
        taken = self._take(max_tokens=min(limits.max_run_tokens, share), max_jobs=limits.max_run_texts)
        if taken:
            self._planned += plan_runs(
                taken, max_tokens=limits.max_run_tokens, overhead_tokens=limits.run_overhead_tokens
            )

    def _still_wanted(self, run: Sequence[Queued[JobT, ResultT]]) -> list[Queued[JobT, ResultT]]:
        now_s = self._loop.time()
        wanted = [each for each in run if each.is_wanted(now_s)]
        if len(wanted) < len(run):
            end([each for each in run if each not in wanted])
        return wanted

    def _drain(self) -> list[Queued[JobT, ResultT]]:
        waiting = [each for run in self._planned for each in run]
        self._planned.clear()
        return waiting + self._queue.drain()

    def _sweep(self) -> None:
        """Cancel runs that cannot succeed or that no caller waits for."""
        refusal = self._remote.refusal()
        if refusal is not None:
            end(self._drain(), refusal)
        now_s = self._loop.time()
        for task, run in self._running.items():
            if refusal is not None or not any(each.is_wanted(now_s) for each in run):
                task.cancel()
        self._sweeping = self._loop.call_later(_SWEEP_S, self._sweep) if self._running else None

    async def _work(self, run: Sequence[Queued[JobT, ResultT]]) -> None:
        start_ns = time.time_ns()
        try:
            jobs = [each.job for each in run]
            results = await self._remote.run(jobs, deadline_s=max(job.deadline_s for job in jobs))
        except (asyncio.CancelledError, DeadlinePassedError):
            # Callers with later deadlines may have joined during the run, so queue their jobs again.
            self._give_back(run)
        except Exception as error:  # noqa: BLE001 - any error becomes these texts' failure
            if not isinstance(error, RunError):
                _log.exception("cannot encode a batch of %d texts", len(run))
            end(run, error)
        else:
            finish(run, results, start_ns, time.time_ns())

    def _finished(self, task: asyncio.Task[None]) -> None:
        run = self._running.pop(task)
        if task.cancelled():  # cancelled before its first step
            self._give_back(run)
        self._dispatch()

    def _give_back(self, run: Sequence[Queued[JobT, ResultT]]) -> None:
        wanted = self._still_wanted(run)
        error = self._remote.refusal() if self._closed is None else RunError(self._closed)
        if error is not None:
            end(wanted, error)
        else:
            for lane in Lane:
                self._queue.push([each for each in wanted if each.submission.lane is lane], lane)
