"""Scheduling: every job once, within budget, fairly, with little padding."""

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st
from tests.support.queues import assert_every_job_comes_once

from gradewire_server.domain.caller import Lane
from gradewire_server.encoders.token_batches import FairQueue, LaneQueue, plan_runs


@dataclass(frozen=True, eq=False)
class Job:
    length: int
    call: int = 0


_CALLS = st.lists(st.lists(st.integers(2, 300), max_size=12), max_size=8)


def filled(calls: list[list[int]], quantum: int = 64) -> tuple[FairQueue[Job], list[Job]]:
    queue: FairQueue[Job] = FairQueue(quantum_tokens=quantum)
    jobs = []
    for call, lengths in enumerate(calls):
        mine = [Job(length, call) for length in lengths]
        queue.push(mine)
        jobs += mine
    return queue, jobs


@given(_CALLS, st.integers(1, 400), st.integers(1, 10), st.integers(1, 200))
def test_every_job_once_and_budgets_kept(calls: list[list[int]], max_tokens: int, max_jobs: int, quantum: int) -> None:
    queue, jobs = filled(calls, quantum)
    assert_every_job_comes_once(queue, jobs, max_tokens=max_tokens, max_jobs=max_jobs)


@given(_CALLS, st.sets(st.integers(0, 7)))
def test_unwanted_jobs_are_handed_out_as_dropped(calls: list[list[int]], gone: set[int]) -> None:
    queue, jobs = filled(calls)
    seen: list[Job] = []
    lost: list[Job] = []
    while queue.jobs:
        taken, dropped = queue.take(max_tokens=256, max_jobs=8, wanted=lambda job: job.call not in gone)
        seen += taken
        lost += dropped
    assert all(job.call not in gone for job in seen)
    assert all(job.call in gone for job in lost)
    assert set(seen) | set(lost) == set(jobs)
    assert queue.tokens == 0


@given(st.lists(st.integers(2, 60), min_size=1, max_size=5), st.integers(2, 40))
def test_a_huge_call_delays_a_small_one_by_its_share_of_a_batch(small: list[int], huge_length: int) -> None:
    queue, _ = filled([[huge_length] * 2000])
    queue.take(max_tokens=256, max_jobs=128)
    mine = [Job(length, 1) for length in small]
    queue.push(mine)
    left = set(mine)
    served_to_huge = 0
    while left:
        taken, _ = queue.take(max_tokens=256, max_jobs=128)
        left -= set(taken)
        served_to_huge += sum(job.length for job in taken if job.call == 0)
    # At equal turns, the huge call gets about what the small one does, beside the rest of the batch they end in.
    assert served_to_huge <= sum(small) + 2 * (64 + 60) + 256


@given(st.integers(2, 6))
def test_equal_calls_get_equal_shares(count: int) -> None:
    queue, _ = filled([[10] * 500 for _ in range(count)])
    served = [0] * count
    for _ in range(6 * count):
        taken, _ = queue.take(max_tokens=256, max_jobs=128)
        for job in taken:
            served[job.call] += job.length
    assert max(served) - min(served) <= 2 * 64 + 256


def test_neighbours_in_length_go_together() -> None:
    queue, _ = filled([[5, 90, 6, 88, 5, 91]])
    taken, _ = queue.take(max_tokens=270, max_jobs=128)
    assert sorted(job.length for job in taken) == [88, 90, 91]


def cost_of(run: Sequence[int], padding_cost: float) -> float:
    """Tokens, and padding to the longest text."""
    return sum(run) + padding_cost * (max(run) * len(run) - sum(run))


PADDING_COSTS = st.sampled_from([0.0, 0.125, 0.5, 1.0])


@given(st.lists(st.integers(1, 300), max_size=40), st.integers(1, 600), PADDING_COSTS)
def test_runs_hold_every_job_once_within_budget(lengths: list[int], max_tokens: int, padding_cost: float) -> None:
    jobs = [Job(length) for length in lengths]
    runs = plan_runs(jobs, max_tokens=max_tokens, overhead_tokens=8, padding_cost=padding_cost)
    assert sorted(map(id, (job for run in runs for job in run))) == sorted(map(id, jobs))
    for run in runs:
        own = [job.length for job in run]
        assert len(set(own)) == 1 or cost_of(own, padding_cost) <= max_tokens


def cheapest(lengths: list[int], overhead: int, padding_cost: float) -> float:
    """All ways to cut a sorted list, by brute force."""
    if not lengths:
        return 0
    return min(
        overhead + cost_of(lengths[:size], padding_cost) + cheapest(lengths[size:], overhead, padding_cost)
        for size in range(1, len(lengths) + 1)
    )


@given(st.lists(st.integers(1, 60), min_size=1, max_size=9), st.sampled_from([1, 8, 24, 200]), PADDING_COSTS)
def test_no_other_cut_costs_less(lengths: list[int], overhead: int, padding_cost: float) -> None:
    jobs = [Job(length) for length in lengths]
    runs = plan_runs(jobs, max_tokens=10_000, overhead_tokens=overhead, padding_cost=padding_cost)
    cost = sum(overhead + cost_of([job.length for job in run], padding_cost) for run in runs)
    assert cost == cheapest(sorted(lengths, reverse=True), overhead, padding_cost)


def test_cheap_padding_makes_few_runs() -> None:
    jobs = [Job(length) for length in (30, 24, 17, 9, 5)]
    assert len(plan_runs(jobs, max_tokens=256, overhead_tokens=8)) == 3
    assert len(plan_runs(jobs, max_tokens=256, overhead_tokens=8, padding_cost=0.15)) == 1


def test_drain_empties() -> None:
    queue, jobs = filled([[3, 4], [5]])
    assert set(queue.drain()) == set(jobs)
    assert (queue.jobs, queue.tokens) == (0, 0)


_CALLS_LANE_QUEUE = st.lists(st.tuples(st.sampled_from(Lane), st.lists(st.integers(2, 300), max_size=12)), max_size=8)


@dataclass(frozen=True, eq=False)
class JobLaneQueue:
    length: int
    lane: Lane


def filled_lane_queue(calls: list[tuple[Lane, list[int]]]) -> tuple[LaneQueue[JobLaneQueue], list[JobLaneQueue]]:
    queue: LaneQueue[JobLaneQueue] = LaneQueue(quantum_tokens=64)
    jobs = []
    for lane, lengths in calls:
        mine = [JobLaneQueue(length, lane) for length in lengths]
        queue.push(mine, lane)
        jobs += mine
    return queue, jobs


@given(_CALLS_LANE_QUEUE, st.integers(1, 400), st.integers(1, 10))
def test_every_job_once_and_budgets_kept_lane_queue(
    calls: list[tuple[Lane, list[int]]], max_tokens: int, max_jobs: int
) -> None:
    queue, jobs = filled_lane_queue(calls)
    assert_every_job_comes_once(queue, jobs, max_tokens=max_tokens, max_jobs=max_jobs)


@given(st.lists(st.integers(2, 60), min_size=1, max_size=4))
def test_a_small_call_goes_before_bulk_of_any_size(lengths: list[int]) -> None:
    queue, _ = filled_lane_queue([(Lane.BULK, [40] * 500) for _ in range(33)])
    queue.take(max_tokens=256, max_jobs=128)
    queue.push([JobLaneQueue(length, Lane.INTERACTIVE) for length in lengths], Lane.INTERACTIVE)
    taken, _ = queue.take(max_tokens=256, max_jobs=128)
    assert [job.length for job in taken if job.lane is Lane.INTERACTIVE] == sorted(lengths, reverse=True)


@given(st.integers(10, 250))
def test_bulk_keeps_its_share_beside_small_calls_that_never_end(length: int) -> None:
    queue, _ = filled_lane_queue([(Lane.BULK, [length] * 400)])
    served = dict.fromkeys(Lane, 0)
    while served[Lane.INTERACTIVE] < 20_000:
        queue.push([JobLaneQueue(50, Lane.INTERACTIVE) for _ in range(6)], Lane.INTERACTIVE)
        for job in queue.take(max_tokens=256, max_jobs=128)[0]:
            served[job.lane] += job.length
    assert served[Lane.BULK] >= 20_000 / 8 - 2 * 256


def test_drain_empties_both() -> None:
    queue, jobs = filled_lane_queue([(Lane.BULK, [3, 4]), (Lane.INTERACTIVE, [5])])
    assert queue.calls == 2
    assert set(queue.drain()) == set(jobs)
    assert not queue.jobs
