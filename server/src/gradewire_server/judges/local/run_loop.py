"""Computes the queued work of a judge, run by run, on whatever worker there is."""

import asyncio
import contextlib
import logging
import time
from typing import Final

from gradewire_proto.conventions.spans import tell_batch
from gradewire_proto.conventions.telemetry_names import JUDGE_RUN, PROCESS_PID, TOKENS
from gradewire_server.domain.result import Failure, Status
from gradewire_server.judges.local.queue import EmbeddedQueue, Planned
from gradewire_server.judges.local.supervisor import WorkerSupervisor
from gradewire_server.judges.local.work import Work
from gradewire_server.judges.local.worker_process import WorkerLostError
from gradewire_server.judges.observers import LocalJudgeObserver, ModelRun
from gradewire_server.judges.worker.messages import RowResult

_log = logging.getLogger(__name__)
_CLOSED: Final = Failure(Status.UNAVAILABLE, "the judge is being closed")
_DEFECT: Final = Failure(Status.INTERNAL, "the judge's scheduling failed; the server's log says why")


class RunLoop:
    """Plans a run, has the worker compute it, hands out the results, and so on. Lives on the event loop it was made on.

    Args:
        supervisor: Of the worker, which is started; closed with this.
        queue: Empty.
        observer: Hears of the runs.
    """

    def __init__(self, supervisor: WorkerSupervisor, queue: EmbeddedQueue, observer: LocalJudgeObserver) -> None:
        self._supervisor = supervisor
        self._queue = queue
        self._observer = observer
        self._loop = asyncio.get_running_loop()
        self._arrived = asyncio.Event()
        self._starts = supervisor.starts
        self._closed = False
        self._computing = self._loop.create_task(self._compute_all())

    @property
    def waiting(self) -> int:
        """How much work has not begun."""
        return self._queue.waiting

    @property
    def worker_pid(self) -> int | None:
        """The process that computes; None while there is none."""
        return self._supervisor.pid

    @property
    def trouble(self) -> str:
        """Why there is no worker now; empty when there is one."""
        return self._supervisor.trouble

    def refusal(self) -> Failure | None:
        """Why work cannot be computed, however long one waits; None when it can."""
        if self._closed:
            return _CLOSED
        if self._supervisor.hopeless:
            return self._lost("the judge cannot be restarted")
        return None

    async def compute(self, work: Work) -> RowResult | Failure:
        """The last result of a piece of work. Cancelled, the work is left out of all later runs."""
        refusal = self.refusal()
        if refusal is not None:
            return refusal
        self._queue.push(work)
        self._arrived.set()
        return await work.done

    async def close(self) -> None:
        """Fails what waits and ends the worker."""
        self._closed = True
        self._queue.fail_all(_CLOSED)
        self._computing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._computing
        await self._supervisor.close()

    async def _compute_all(self) -> None:
        while True:
            if not await self._supervisor.wait():
                self._queue.fail_all(self._lost("the judge cannot be restarted"))
                await self._supervisor.back()
            if self._starts != self._supervisor.starts:
                self._starts = self._supervisor.starts
                self._queue.start_over()
            planned = self._queue.plan()
            if planned is None:
                self._arrived.clear()
                await self._arrived.wait()
                continue
            try:
                await self._run(planned)
            except Exception:  # noqa: BLE001 - a defect of ours must not leave everybody waiting for ever
                _log.exception("the judge's scheduling failed")
                for work in planned.works:
                    work.fail(_DEFECT)
                self._queue.fail_all(_DEFECT)
                self._queue.start_over()  # states that nobody is sure of are never used again

    async def _run(self, planned: Planned) -> None:
        begin_s, begin_ns = self._loop.time(), time.time_ns()
        for work in planned.works:
            work.begun_s = work.begun_s or begin_s
        try:
            results = await self._supervisor.run(planned.run)
        except WorkerLostError:
            self._queue.lost(planned, self._lost("the judge died over a run with this item in it"))
            return
        except asyncio.CancelledError:
            for work in planned.works:
                work.fail(_CLOSED)
            raise
        duration_s = self._loop.time() - begin_s
        self._trace(planned, begin_ns)
        decoded = 0
        for work, row, result in zip(planned.works, planned.run.rows, results, strict=False):
            decoded += work.computed == len(work.item)
            work.inference_s += duration_s
            work.take(row, result)
        self._queue.computed(planned)
        tokens = planned.run.tokens
        reused = len(planned.prefix.ids) * planned.begins if planned.prefix and planned.works else 0
        self._observer.ran(ModelRun(len(planned.run.rows), tokens - decoded, decoded, reused, duration_s))

    def _trace(self, planned: Planned, begin_ns: int) -> None:
        """Tells the traces of all who wait for a run of it; the worker itself exports nothing."""
        tell_batch(
            JUDGE_RUN,
            (work.span for work in planned.works),
            start_ns=begin_ns,
            end_ns=time.time_ns(),
            attributes={TOKENS: planned.run.tokens, PROCESS_PID: self.worker_pid or 0},
        )

    def _lost(self, what: str) -> Failure:
        supervisor = self._supervisor
        return Failure(Status.UNAVAILABLE, f"{what}: {supervisor.trouble}", retry_after_s=supervisor.retry_after_s)
