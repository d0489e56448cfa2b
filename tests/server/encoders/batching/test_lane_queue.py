"""Two lanes: every job once, interactive jobs first, bulk jobs never starved."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st
from tests.support.queues import assert_every_job_comes_once

from gradewire_server.domain.turn import Lane
from gradewire_server.encoders.batching.lane_queue import LaneQueue

_CALLS = st.lists(st.tuples(st.sampled_from(Lane), st.lists(st.integers(2, 300), max_size=12)), max_size=8)


@dataclass(frozen=True, eq=False)
class Job:
    length: int
    lane: Lane


def filled(calls: list[tuple[Lane, list[int]]]) -> tuple[LaneQueue[Job], list[Job]]:
    queue: LaneQueue[Job] = LaneQueue(quantum_tokens=64)
    jobs = []
    for lane, lengths in calls:
        mine = [Job(length, lane) for length in lengths]
        queue.push(mine, lane)
        jobs += mine
    return queue, jobs


@given(_CALLS, st.integers(1, 400), st.integers(1, 10))
def test_every_job_once_and_budgets_kept(calls: list[tuple[Lane, list[int]]], max_tokens: int, max_jobs: int) -> None:
    queue, jobs = filled(calls)
    assert_every_job_comes_once(queue, jobs, max_tokens=max_tokens, max_jobs=max_jobs)


@given(st.lists(st.integers(2, 60), min_size=1, max_size=4))
def test_a_small_call_goes_before_bulk_of_any_size(lengths: list[int]) -> None:
    queue, _ = filled([(Lane.BULK, [40] * 500) for _ in range(33)])
    queue.take(max_tokens=256, max_jobs=128)
    queue.push([Job(length, Lane.INTERACTIVE) for length in lengths], Lane.INTERACTIVE)
    taken, _ = queue.take(max_tokens=256, max_jobs=128)
    assert [job.length for job in taken if job.lane is Lane.INTERACTIVE] == sorted(lengths, reverse=True)


@given(st.integers(10, 250))
def test_bulk_keeps_its_share_beside_small_calls_that_never_end(length: int) -> None:
    queue, _ = filled([(Lane.BULK, [length] * 400)])
    served = dict.fromkeys(Lane, 0)
    while served[Lane.INTERACTIVE] < 20_000:
        queue.push([Job(50, Lane.INTERACTIVE) for _ in range(6)], Lane.INTERACTIVE)
        for job in queue.take(max_tokens=256, max_jobs=128)[0]:
            served[job.lane] += job.length
    assert served[Lane.BULK] >= 20_000 / 8 - 2 * 256


def test_drain_empties_both() -> None:
    queue, jobs = filled([(Lane.BULK, [3, 4]), (Lane.INTERACTIVE, [5])])
    assert queue.calls == 2
    assert set(queue.drain()) == set(jobs)
    assert not queue.jobs
