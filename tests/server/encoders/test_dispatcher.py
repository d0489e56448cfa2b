"""The dispatcher keeps several runs on their way, answers for every job, and cancels what nobody waits for."""

import asyncio
import math
import time
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.server.encoders.job_endings import EndingJob, ended, watch
from tests.support.examples import example_count

from gradewire_server.domain.items import Failure, Status
from gradewire_server.encoders.batcher import DeadlinePassedError, QueueFullError, RunError
from gradewire_server.encoders.dispatcher import AsyncDispatcher, DispatchLimits

CLOSING = Failure(Status.UNAVAILABLE, "closing")


class Job(EndingJob):
    def __init__(self, length: int, *, deadline_s: float = math.inf) -> None:
        super().__init__(length, length)
        self.deadline_s = deadline_s

    def is_wanted(self, now_s: float) -> bool:
        return not self.cancelled and self.deadline_s > now_s


class Recorder:
    """Another server whose runs wait for `gate`; those with a job of `bad_length` fail."""

    def __init__(self, *, bad_length: int = 0) -> None:
        self.gate = asyncio.Event()
        self.bad_length = bad_length
        self.runs: list[Sequence[Job]] = []
        self.running = self.most_running = self.cancelled = 0
        self.refused: RunError | None = None

    def refusal(self) -> RunError | None:
        return self.refused

    async def run(self, jobs: Sequence[Job], /, *, deadline_s: float) -> list[int]:
        self.runs.append(jobs)
        self.running += 1
        self.most_running = max(self.running, self.most_running)
        try:
            async with asyncio.timeout(None if deadline_s == math.inf else deadline_s - time.monotonic()):
                await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        except TimeoutError as error:
            raise DeadlinePassedError from error
        finally:
            self.running -= 1
        if any(job.length == self.bad_length for job in jobs):
            raise RuntimeError("a broken model")
        return [job.length for job in jobs]


class Watched(AsyncDispatcher[Job, int]):
    """A dispatcher whose jobs note how they end."""

    def give(self, jobs: Sequence[Job]) -> bool:
        """Submits jobs; whether they were taken."""
        try:
            watch(self.submit(jobs))
        except (QueueFullError, RunError):
            return False
        return True


def dispatcher(handler: Recorder, **limits: int) -> Watched:
    given = {
        "max_in_flight": 3,
        "parallel_runs": 2,
        "max_run_tokens": 100,
        "max_run_texts": 16,
        "run_overhead_tokens": 8,
        "max_queue_tokens": 10_000,
    }
    return Watched(handler, DispatchLimits(**given | limits))


async def test_a_call_alone_is_cut_into_as_many_runs_as_are_computed_at_a_time() -> None:
    handler = Recorder()
    working = dispatcher(handler)
    jobs = [Job(20) for _ in range(4)]
    working.give(jobs)
    await asyncio.sleep(0)
    assert [len(run) for run in handler.runs] == [2, 2]
    handler.gate.set()
    await ended(jobs)
    await working.close(CLOSING)


async def test_a_short_call_is_not_cut_below_the_cost_of_a_run() -> None:
    handler = Recorder()
    working = dispatcher(handler, run_overhead_tokens=24)
    jobs = [Job(5) for _ in range(4)]
    working.give(jobs)
    await asyncio.sleep(0)
    assert [len(run) for run in handler.runs] == [4]
    handler.gate.set()
    await ended(jobs)
    await working.close(CLOSING)


@settings(max_examples=example_count(40))
@given(
    st.lists(st.lists(st.integers(1, 120), min_size=1, max_size=8), min_size=1, max_size=8),
    st.sets(st.tuples(st.integers(0, 7), st.integers(0, 7))),
    st.integers(1, 4),
    st.sampled_from([0, 7, 60]),
)
def test_every_job_ends_once_and_limits_hold_whoever_cancels_when(
    calls: list[list[int]], cancels: set[tuple[int, int]], max_in_flight: int, bad_length: int
) -> None:
    # (call, step): the call is cancelled after that many calls have been submitted.
    async def scenario() -> None:
        handler = Recorder(bad_length=bad_length)
        working = dispatcher(handler, max_in_flight=max_in_flight)
        jobs = [[Job(length) for length in lengths] for lengths in calls]
        for step, mine in enumerate(jobs):
            assert working.give(mine)
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
        await working.close(CLOSING)
        assert handler.most_running <= max_in_flight
        for run in handler.runs:
            assert len(run) <= 16
            # Jobs of unequal length are padded to the longest, within the bound; a long one goes alone.
            alike = len({job.length for job in run}) == 1
            assert alike or max(job.length for job in run) * len(run) <= 100
        for job in flat:
            assert len(job.ends) == 1
            assert job.ends != ["dropped"] or job.cancelled
        assert len(working._running) == 0

    asyncio.run(scenario())


async def test_no_more_runs_than_allowed_are_on_their_way() -> None:
    handler = Recorder()
    working = dispatcher(handler)
    jobs = [Job(90) for _ in range(8)]
    for job in jobs:
        working.give([job])
    await asyncio.sleep(0.01)
    assert handler.most_running == 3
    handler.gate.set()
    await ended(jobs)
    assert handler.most_running == 3
    await working.close(CLOSING)


async def test_a_run_that_nobody_waits_for_is_cancelled_and_one_with_a_mate_that_is_wanted_is_not() -> None:
    handler = Recorder()
    working = dispatcher(handler, parallel_runs=1)
    alone, cancelled, wanted = Job(100), Job(40), Job(40)
    working.give([alone])
    working.give([cancelled, wanted])
    await asyncio.sleep(0)
    assert [set(run) for run in handler.runs] == [{alone}, {cancelled, wanted}]
    alone.cancelled = cancelled.cancelled = True
    await ended([alone])
    assert alone.ends == ["dropped"]
    assert handler.cancelled == 1
    handler.gate.set()
    await ended([wanted])
    assert wanted.ends == ["done"]
    await working.close(CLOSING)


async def test_who_joins_late_does_not_pay_for_the_deadline_of_those_before() -> None:
    handler = Recorder()
    working = dispatcher(handler)
    job = Job(10, deadline_s=time.monotonic() + 0.02)
    working.give([job])
    await asyncio.sleep(0)
    job.deadline_s = math.inf
    async with asyncio.timeout(10):
        while len(handler.runs) < 2:  # noqa: ASYNC110 - runs have no event
            await asyncio.sleep(0.001)
    handler.gate.set()
    await ended([job])
    assert job.ends == ["done"]
    await working.close(CLOSING)


async def test_a_passed_deadline_drops_the_job() -> None:
    handler = Recorder()
    working = dispatcher(handler)
    job = Job(10, deadline_s=time.monotonic() + 0.02)
    working.give([job])
    await ended([job])
    assert job.ends == ["dropped"]
    await working.close(CLOSING)


async def test_a_full_queue_refuses_and_a_closed_dispatcher_too() -> None:
    handler = Recorder()
    working = dispatcher(handler, max_in_flight=1, max_queue_tokens=10)
    first, waiting = Job(50), Job(50)
    assert working.give([first])
    assert working.give([waiting])
    assert not working.give([Job(1)])
    handler.gate.set()
    await ended([first, waiting])
    await working.close(CLOSING)
    assert not working.give([Job(1)])


async def test_closing_fails_what_waits_and_what_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradewire_server.encoders.dispatcher._CLOSE_WAIT_S", 0.01)
    handler = Recorder()
    working = dispatcher(handler, max_in_flight=1)
    running, waiting = Job(50), Job(50)
    working.give([running])
    working.give([waiting])
    await asyncio.sleep(0)
    await working.close(CLOSING)
    await ended([running, waiting])
    assert (running.ends, waiting.ends) == (["failed"], ["failed"])


async def test_a_refusal_ends_what_waits_and_what_hangs() -> None:
    handler = Recorder()
    working = dispatcher(handler, max_in_flight=1)
    hanging, waiting, late = Job(50), Job(50), Job(50)
    working.give([hanging])
    working.give([waiting])
    await asyncio.sleep(0)
    handler.refused = RunError(Failure(Status.UNAVAILABLE, "gone"))
    with pytest.raises(RunError, match="gone"):
        working.submit([late])
    await ended([waiting, hanging])
    assert (waiting.ends, hanging.ends, handler.cancelled) == (["failed"], ["failed"], 1)
    handler.refused = None
    handler.gate.set()
    again = Job(50)
    assert working.give([again])
    await ended([again])
    assert again.ends == ["done"]
    await working.close(CLOSING)


async def test_texts_of_unequal_lengths_are_no_way_around_the_limit_and_short_ones_do_not_wait_for_all_long_ones() -> (
    None
):
    handler = Recorder()
    working = dispatcher(handler, max_in_flight=2, max_run_tokens=60)
    jobs = [[Job(length) for length in (50, 4, 4)] for _ in range(6)]
    for mine in jobs:
        working.give(mine)
    await asyncio.sleep(0)
    assert (handler.running, len(working._running)) == (2, 2)
    handler.gate.set()
    await ended([job for mine in jobs for job in mine])
    assert handler.most_running == 2
    lengths = [run[0].length for run in handler.runs]
    assert 4 in lengths[: len(lengths) // 2]
    await working.close(CLOSING)
