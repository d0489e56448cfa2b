"""The batcher keeps workers busy, survives failures and answers for every job, whoever cancels when."""

import asyncio
import gc
import math
import os
import sys
import threading
import time
import weakref
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.server.encoders.job_endings import EndingJob, ended, watch
from tests.support.examples import example_count

from gradewire_server.domain.caller import Lane, Turn, take_turn
from gradewire_server.domain.items import Failure, Status
from gradewire_server.encoders.batcher import Batcher, Queued, QueueFullError, RunError, worker_pool
from gradewire_server.settings.engine import ComputeConfig, allowed_cores

CLOSING = Failure(Status.UNAVAILABLE, "closing")


class Job(EndingJob):
    def __init__(self, length: int, name: int = 0) -> None:
        super().__init__(length, name)
        self.deadline_s = math.inf

    def is_wanted(self, now_s: float) -> bool:
        del now_s
        return not self.cancelled


class Recorder:
    """Runs that wait for `gate` and answer with the names of their jobs."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.running = 0
        self.most_running = 0
        self.exclusive: list[bool] = []
        self._lock = threading.Lock()

    def __call__(self, jobs: Sequence[Job], /, *, exclusive: bool) -> list[int]:
        with self._lock:
            self.exclusive.append(exclusive)
            self.running += 1
            self.most_running = max(self.most_running, self.running)
        self.gate.wait(10)
        with self._lock:
            self.running -= 1
        if any(job.answer < 0 for job in jobs):
            raise RuntimeError("a broken model")
        return [job.answer for job in jobs]


class Watched(Batcher[Job, int]):
    """A batcher that remembers what each worker was given."""

    def __init__(self, handler: Recorder, compute: ComputeConfig) -> None:
        super().__init__(handler, compute, name="t")
        self.batches: list[list[Job]] = []

    def give(self, jobs: Sequence[Job]) -> bool:
        """Submits jobs and notes how they end; whether they were taken."""
        try:
            watch(self.submit(jobs))
        except (QueueFullError, RunError):
            return False
        return True

    def _work(self, runs: Sequence[Sequence[Queued[Job, int]]], *, exclusive: bool) -> None:
        self.batches.append([each.job for run in runs for each in run])
        super()._work(runs, exclusive=exclusive)

    def sizes(self, count: int) -> list[int]:
        """Tokens of the first `count` batches; waits for workers to wake, without a turn of the event loop."""
        give_up_s = time.monotonic() + 10
        while len(self.batches) < count and time.monotonic() < give_up_s:
            time.sleep(0.001)
        return [sum(job.length for job in batch) for batch in self.batches]


async def test_a_batch_leaves_at_once_when_a_worker_is_free() -> None:
    handler = Recorder()
    batcher = Watched(handler, ComputeConfig(workers=1))
    batcher.give([Job(5)])
    assert batcher.sizes(1) == [5]
    handler.gate.set()
    await batcher.close(CLOSING)


async def test_one_call_is_split_over_idle_workers() -> None:
    handler = Recorder()
    batcher = Watched(handler, ComputeConfig(workers=2))
    jobs = [Job(10) for _ in range(6)]
    batcher.give(jobs)
    assert batcher.sizes(2) == [30, 30]
    handler.gate.set()
    await ended(jobs)
    assert handler.most_running == 2
    await batcher.close(CLOSING)


async def test_a_call_too_small_to_gain_by_it_is_not_split() -> None:
    handler = Recorder()
    batcher = Watched(handler, ComputeConfig(workers=2))
    batcher.give([Job(5), Job(6)])
    assert batcher.sizes(1) == [11]
    handler.gate.set()
    await batcher.close(CLOSING)


async def test_only_a_run_that_has_all_workers_to_itself_is_exclusive() -> None:
    handler = Recorder()
    batcher = Watched(handler, ComputeConfig(workers=2))
    batcher.give([Job(5)])  # alone
    assert batcher.sizes(1) == [5]
    batcher.give([Job(5)])  # beside the first
    assert batcher.sizes(2) == [5, 5]
    handler.gate.set()
    await batcher.close(CLOSING)
    assert sorted(handler.exclusive) == [False, True]
    split = Recorder()
    split.gate.set()
    batcher = Watched(split, ComputeConfig(workers=2))
    jobs = [Job(50), Job(50)]
    batcher.give(jobs)
    await ended(jobs)
    await batcher.close(CLOSING)
    assert split.exclusive == [False, False]


async def test_while_workers_are_busy_calls_gather_into_one_batch() -> None:
    handler = Recorder()
    batcher = Watched(handler, ComputeConfig(workers=1))
    jobs = [Job(5, name) for name in range(8)]
    for job in jobs:
        batcher.give([job])
    handler.gate.set()
    await ended(jobs)
    assert batcher.sizes(2) == [5, 35]
    await batcher.close(CLOSING)


async def test_where_calls_compete_batches_are_half_as_large() -> None:
    handler = Recorder()
    batcher = Watched(handler, ComputeConfig(workers=1, max_batch_tokens=100))
    huge, small = [Job(10) for _ in range(100)], [Job(10)]
    batcher.give(huge)
    batcher.give(small)
    handler.gate.set()
    await ended([*huge, *small])
    assert len(batcher.batches[0]) == 10
    assert len(batcher.batches[1]) == 5
    assert small[0] in batcher.batches[1] + batcher.batches[2]
    assert len(batcher.batches[3]) == 10
    await batcher.close(CLOSING)


async def test_beside_interactive_calls_batches_of_bulk_ones_are_a_quarter_as_large() -> None:
    handler = Recorder()
    batcher = Watched(handler, ComputeConfig(workers=1, max_batch_tokens=100))
    small, huge = Job(10), [Job(10) for _ in range(20)]
    batcher.give([small])
    take_turn(Turn(Lane.BULK))
    batcher.give(huge)
    handler.gate.set()
    await ended([small, *huge])
    assert [len(batch) for batch in batcher.batches] == [1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]
    await batcher.close(CLOSING)


async def test_budgets_hold_for_every_batch() -> None:
    handler = Recorder()
    handler.gate.set()
    compute = ComputeConfig(workers=2, max_batch_tokens=100, max_batch_texts=7)
    batcher = Watched(handler, compute)
    jobs = [Job(1 + number % 40) for number in range(200)] + [Job(150)]
    batcher.give(jobs)
    await ended(jobs)
    for members in batcher.batches:
        assert len(members) <= 7
        assert len(members) == 1 or sum(job.length for job in members) <= 100
    await batcher.close(CLOSING)


async def test_a_failed_run_fails_its_own_jobs_only() -> None:
    handler = Recorder()
    handler.gate.set()
    batcher = Watched(handler, ComputeConfig(workers=1))
    bad, good = Job(5, -1), Job(5, 1)
    batcher.give([bad])
    batcher.give([good])
    await ended([bad, good])
    assert bad.ends == ["failed"]
    assert good.ends == ["done"]
    await batcher.close(CLOSING)


async def test_a_full_queue_refuses_and_takes_again_when_there_is_room() -> None:
    handler = Recorder()
    compute = ComputeConfig(workers=1, max_queue_tokens=10)
    batcher = Watched(handler, compute)
    first, large, refused = Job(5), [Job(100), Job(100)], Job(1)
    assert batcher.give([first])
    assert batcher.give(large)  # taken whole, though it is larger than the bound
    assert not batcher.give([refused])
    handler.gate.set()
    await ended([first, *large])
    assert batcher.give([refused])
    await ended([refused])
    await batcher.close(CLOSING)


async def test_closing_fails_what_waits_and_finishes_what_runs() -> None:
    handler = Recorder()
    batcher = Watched(handler, ComputeConfig(workers=1))
    running, waiting = Job(5), Job(5)
    batcher.give([running])
    batcher.give([waiting])
    handler.gate.set()
    await batcher.close(CLOSING)
    await ended([running, waiting])
    assert waiting.ends == ["failed"]
    assert running.ends == ["done"]
    assert not batcher.give([Job(5)])


@settings(max_examples=example_count(30))
@given(
    st.lists(st.lists(st.integers(2, 120), min_size=1, max_size=6), min_size=1, max_size=8),
    st.sets(st.tuples(st.integers(0, 7), st.integers(0, 7))),
    st.integers(1, 3),
)
def test_every_job_ends_once_whoever_cancels_when(
    calls: list[list[int]], cancels: set[tuple[int, int]], workers: int
) -> None:
    # (call, step): the call is cancelled after that many calls have been submitted.
    async def scenario() -> None:
        handler = Recorder()
        compute = ComputeConfig(workers=workers, max_batch_tokens=128)
        batcher = Watched(handler, compute)
        jobs = [[Job(length, 100 * call + n) for n, length in enumerate(lengths)] for call, lengths in enumerate(calls)]
        for step, mine in enumerate(jobs):
            batcher.give(mine)
            for call, at in cancels:
                if at == step and call < len(jobs):
                    for job in jobs[call]:
                        job.cancelled = True
            if step == len(jobs) // 2:
                handler.gate.set()
                await asyncio.sleep(0)
        handler.gate.set()
        flat = [job for mine in jobs for job in mine]
        await ended(flat)
        await batcher.close(CLOSING)
        for job in flat:
            assert len(job.ends) == 1
            assert job.ends == ["done"] or job.cancelled
        assert batcher._queue.tokens == 0

    asyncio.run(scenario())


async def test_jobs_that_have_ended_are_freed_without_pythons_collector() -> None:
    handler = Recorder()
    handler.gate.set()
    batcher = Watched(handler, ComputeConfig(workers=1))
    jobs = [Job(5) for _ in range(3)]
    kept = [weakref.ref(job) for job in jobs]
    gc.disable()
    try:
        batcher.give(jobs)
        await ended(jobs)
        await batcher.close(CLOSING)
        batcher.batches.clear()
        del jobs
        assert [each() for each in kept] == [None] * 3
    finally:
        gc.enable()


def affinities(count: int, *, pinned: bool) -> list[set[int]]:
    together = threading.Barrier(count)

    def look() -> set[int]:
        together.wait(10)  # so that every thread has one
        return os.sched_getaffinity(threading.get_native_id())

    with worker_pool(count, name="t", pinned=pinned) as pool:
        return [future.result() for future in [pool.submit(look) for _ in range(count)]]


def test_as_many_workers_as_cores_have_one_each() -> None:
    cores = allowed_cores()
    assert sorted(map(tuple, affinities(len(cores), pinned=True))) == [(core,) for core in cores]
    assert os.sched_getaffinity(0) == set(cores)  # nobody else is moved


def test_otherwise_nobody_is_pinned() -> None:
    cores = set(allowed_cores())
    assert affinities(len(cores) + 1, pinned=True) == [cores] * (len(cores) + 1)
    assert affinities(len(cores), pinned=False) == [cores] * len(cores)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives each thread a priority of its own")
@pytest.mark.parametrize("pinned", [True, False])
def test_workers_go_behind_and_nobody_else_does(*, pinned: bool) -> None:
    own = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    def level() -> tuple[int, int]:
        started: list[int] = []
        child = threading.Thread(target=lambda: started.append(os.getpriority(os.PRIO_PROCESS, 0)))
        child.start()
        child.join()
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id()), started[0]

    with worker_pool(len(allowed_cores()), name="t", pinned=pinned, nice=own + 3) as pool:
        assert pool.submit(level).result() == (own + 3, own + 3)
    with worker_pool(1, name="t", pinned=False, nice=0) as pool:
        assert pool.submit(level).result() == (own, own), "a priority that was lowered before is kept"
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == own
