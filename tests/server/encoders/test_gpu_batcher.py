"""The batcher of a GPU gathers while the GPU is busy, starts at once while it is idle, and answers for every job."""

import asyncio
import math
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.server.encoders.job_endings import EndingJob, ended, watch
from tests.support.examples import example_count

from gradewire_server.domain.caller import Lane, Turn, take_turn
from gradewire_server.domain.items import Failure, Status
from gradewire_server.encoders import gpu_batcher
from gradewire_server.encoders.batcher import QueueFullError, RunError
from gradewire_server.encoders.gpu_batcher import GpuBatcher
from gradewire_server.encoders.gpu_watch import GpuThread
from gradewire_server.settings.engine import ComputeConfig

CLOSING = Failure(Status.UNAVAILABLE, "closing")
AT_ONCE = 4
UNREADABLE = 1 << 30
COMPUTE = ComputeConfig(max_batch_tokens=100, max_batch_texts=50)


class Job(EndingJob):
    def __init__(self, length: int, answer: int = 0) -> None:
        super().__init__(length, answer)
        self.deadline_s = math.inf

    def is_wanted(self, now_s: float) -> bool:
        return not self.cancelled and self.deadline_s > now_s


@dataclass
class Batch:
    """One batch that the GPU received."""

    urgent: bool
    jobs: Sequence[Job]

    @property
    def tokens(self) -> int:
        return sum(job.length for job in self.jobs)


class Card:
    """A GPU with a thread as the real one has it. Runs wait for `gate`, and readers for `reading`."""

    def __init__(self, *, is_open: bool = False) -> None:
        self.thread = GpuThread("GPU 7", hangs_s=20.0)
        self.gate, self.reading, self.began = threading.Event(), threading.Event(), threading.Event()
        self.reading.set()
        if is_open:
            self.gate.set()
        self.given: list[Batch] = []
        self.queued: list[Batch] = []
        self.ran: list[Batch] = []

    def compute(self, jobs: Sequence[Job], /, *, urgent: bool) -> list[int]:
        batch = Batch(urgent, jobs)
        self.given.append(batch)

        def run() -> list[int]:
            self.began.set()
            self.gate.wait(10)
            self.ran.append(batch)
            if any(job.answer < 0 for job in jobs):
                raise RuntimeError("a broken model")
            return [job.answer for job in jobs]

        future = self.thread.submit(run, urgent=urgent)
        self.queued.append(batch)
        return self.thread.wait(future)

    def read(self, jobs: Sequence[Job], output: list[int], /) -> Iterator[list[int]]:
        self.reading.wait(10)
        for start in range(0, len(output), AT_ONCE):
            if any(job.answer == UNREADABLE for job in jobs[start : start + AT_ONCE]):
                raise RuntimeError("a broken model")
            yield output[start : start + AT_ONCE]

    def end_if_hung(self, after_s: float, /) -> None:
        self.thread.end_if_hung(after_s)

    def sizes(self, count: int) -> list[int]:
        """Tokens of the batches given so far; waits until `count` are queued, without a turn of the event loop."""
        give_up_s = time.monotonic() + 10
        while len(self.queued) < count and time.monotonic() < give_up_s:
            time.sleep(0.001)
        return [batch.tokens for batch in self.given]


def batcher_of(card: Card, compute: ComputeConfig = COMPUTE) -> GpuBatcher[Job, int]:
    return GpuBatcher(card, compute, name="t")


def give(batcher: GpuBatcher[Job, int], jobs: Sequence[Job], lane: Lane = Lane.INTERACTIVE) -> bool:
    """Submits jobs and notes how they end; whether they were taken."""
    take_turn(Turn(lane))
    try:
        watch(batcher.submit(jobs))
    except (QueueFullError, RunError):
        return False
    return True


async def until(count: int, card: Card) -> None:
    async with asyncio.timeout(10):
        while len(card.given) < count:  # noqa: ASYNC110 - the card's thread has no event of the loop
            await asyncio.sleep(0.001)


async def test_an_idle_gpu_starts_a_call_at_once_and_whole() -> None:
    card = Card()
    batcher = batcher_of(card)
    give(batcher, [Job(10) for _ in range(6)])
    assert card.sizes(1) == [60]
    card.gate.set()
    await batcher.close(CLOSING)


async def test_while_the_gpu_is_busy_calls_gather_into_one_batch() -> None:
    card = Card()
    batcher = batcher_of(card)
    jobs = [Job(5, name) for name in range(12)]
    for job in jobs:
        give(batcher, [job])
    assert card.sizes(1) == [5]
    card.gate.set()
    await ended(jobs)
    assert card.sizes(2) == [5, 55]
    await batcher.close(CLOSING)


@pytest.mark.parametrize("jobs", [[Job(10) for _ in range(30)], [Job(1) for _ in range(120)]])
async def test_a_full_batch_is_prepared_while_the_gpu_computes_but_no_third_one(jobs: list[Job]) -> None:
    card = Card()
    batcher = batcher_of(card)
    first = Job(3)
    give(batcher, [first])
    give(batcher, jobs)
    full = min(100, 50 * jobs[0].length)
    assert card.sizes(2) == [3, full]
    await asyncio.sleep(0.05)
    assert card.sizes(2) == [3, full]
    card.gate.set()
    await ended([first, *jobs])
    await batcher.close(CLOSING)


async def test_the_next_batch_does_not_wait_until_the_output_of_the_last_one_is_read() -> None:
    card = Card(is_open=True)
    card.reading.clear()
    batcher = batcher_of(card)
    first, second = Job(5), Job(6)
    give(batcher, [first])
    give(batcher, [second])
    await until(2, card)
    assert not first.ends
    card.reading.set()
    await ended([first, second])
    await batcher.close(CLOSING)


async def test_unread_output_is_bounded() -> None:
    card = Card(is_open=True)
    card.reading.clear()
    batcher = batcher_of(card)
    jobs = [Job(100) for _ in range(9)]
    for job in jobs:
        give(batcher, [job])
    await until(4, card)
    await asyncio.sleep(0.05)
    assert len(card.given) == 4
    card.reading.set()
    await ended(jobs)
    await batcher.close(CLOSING)


async def test_an_interactive_call_goes_before_waiting_bulk_batches() -> None:
    card = Card()
    batcher = batcher_of(card)
    bulk, single = [Job(10) for _ in range(60)], Job(4)
    give(batcher, bulk, Lane.BULK)
    assert card.sizes(2) == [100, 100]
    assert card.began.wait(10)
    give(batcher, [single])
    assert card.sizes(3) == [100, 100, 4]
    card.gate.set()
    await ended([*bulk, single])
    assert [batch.urgent for batch in card.ran[:2]] == [False, True], "only the run under way came first"
    await batcher.close(CLOSING)


async def test_calls_of_a_lane_take_turns() -> None:
    card = Card()
    batcher = batcher_of(card)
    first, large, small = Job(1), [Job(10) for _ in range(100)], Job(10)
    give(batcher, [first], Lane.BULK)
    give(batcher, large, Lane.BULK)  # its first batch is prepared at once
    give(batcher, [small], Lane.BULK)
    card.gate.set()
    await ended([first, *large, small])
    place = next(at for at, batch in enumerate(card.given) if small in batch.jobs)
    assert place <= 3
    await batcher.close(CLOSING)


async def test_a_failed_batch_fails_its_own_jobs_only(caplog: pytest.LogCaptureFixture) -> None:
    card = Card(is_open=True)
    batcher = batcher_of(card)
    bad, good = Job(5, -1), Job(5, 1)
    give(batcher, [bad])
    await ended([bad])
    give(batcher, [good])
    await ended([good])
    assert (bad.ends, good.ends) == (["failed"], ["done"])
    assert "cannot encode a batch of 1 texts" in caplog.text
    await batcher.close(CLOSING)


async def test_what_was_read_before_an_error_is_delivered() -> None:
    card = Card(is_open=True)
    batcher = batcher_of(card)
    jobs = [Job(1 + number, UNREADABLE if number == 2 else number) for number in range(10)]
    give(batcher, jobs)  # the longest jobs come first
    await ended(jobs)
    assert [job.ends for job in jobs] == [["failed"]] * 6 + [["done"]] * 4
    await batcher.close(CLOSING)


async def test_other_work_of_the_loop_has_turns_while_a_batch_is_delivered() -> None:
    card = Card(is_open=True)
    batcher = batcher_of(card)
    jobs = [Job(1, number) for number in range(50)]
    seen: set[int] = set()

    async def other() -> None:
        while not all(job.ends for job in jobs):
            seen.add(sum(map(bool, (job.ends for job in jobs))))
            await asyncio.sleep(0)

    read = card.read

    def read_slowly(jobs: Sequence[Job], output: list[int], /) -> Iterator[list[int]]:
        for part in read(jobs, output):
            time.sleep(0.002)
            yield part

    card.read = read_slowly  # type: ignore[method-assign]
    give(batcher, jobs)
    await other()
    assert len(seen) > 2
    await batcher.close(CLOSING)


async def test_jobs_that_nobody_waits_for_are_dropped() -> None:
    card = Card()
    batcher = batcher_of(card)
    first, late, gone, wanted = Job(5), Job(5), Job(5), Job(5)
    give(batcher, [first])
    give(batcher, [late, gone, wanted])
    late.deadline_s = 0.0
    gone.cancelled = True
    card.gate.set()
    await ended([first, late, gone, wanted])
    assert [job.ends for job in (first, late, gone, wanted)] == [["done"], ["dropped"], ["dropped"], ["done"]]
    assert [len(batch.jobs) for batch in card.given] == [1, 1]
    await batcher.close(CLOSING)


async def test_a_full_queue_refuses() -> None:
    card = Card()
    batcher = batcher_of(card, ComputeConfig(max_batch_tokens=10, max_queue_tokens=10))
    jobs = [[Job(5)], [Job(5)], [Job(100)]]
    assert all(give(batcher, each) for each in jobs)
    assert not give(batcher, [Job(1)])
    card.gate.set()
    await ended([job for each in jobs for job in each])
    await batcher.close(CLOSING)


async def test_closing_fails_what_waits_and_finishes_what_runs() -> None:
    card = Card()
    batcher = batcher_of(card)
    running, waiting = Job(5), Job(5)
    give(batcher, [running])
    give(batcher, [waiting])
    card.sizes(1)
    card.gate.set()
    await batcher.close(CLOSING)
    await ended([running, waiting])
    assert (running.ends, waiting.ends) == (["done"], ["failed"])
    assert not give(batcher, [Job(5)])


async def test_closing_ends_although_a_run_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_batcher, "CLOSE_S", 0.05)
    card = Card()
    batcher = batcher_of(card)
    running = Job(5)
    give(batcher, [running])
    card.sizes(1)
    async with asyncio.timeout(10):
        await batcher.close(CLOSING)
    await ended([running])
    assert running.ends == ["failed"]
    assert "has not ended for" in card.thread.lost
    card.gate.set()


@settings(max_examples=example_count(30), deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(Lane), st.lists(st.integers(1, 120), min_size=1, max_size=30)),
        min_size=1,
        max_size=12,
    ),
    st.sets(st.tuples(st.integers(0, 11), st.integers(0, 11))),
)
def test_every_job_ends_once_at_any_time_of_a_cancellation(
    calls: list[tuple[Lane, list[int]]], cancels: set[tuple[int, int]]
) -> None:
    # (call, step): the call is cancelled after that many calls have been submitted.
    async def scenario() -> None:
        card = Card()
        batcher = batcher_of(card)
        jobs = [
            [Job(length, 100 * call + number) for number, length in enumerate(lengths)]
            for call, (_, lengths) in enumerate(calls)
        ]
        for step, mine in enumerate(jobs):
            assert give(batcher, mine, calls[step][0])
            for call, at in cancels:
                if at == step and call < len(jobs):
                    for job in jobs[call]:
                        job.cancelled = True
            if step == len(jobs) // 2:
                card.gate.set()
                await asyncio.sleep(0)
        card.gate.set()
        flat = [job for mine in jobs for job in mine]
        await ended(flat)
        await batcher.close(CLOSING)
        for job in flat:
            assert len(job.ends) == 1
            assert job.ends == ["done"] or job.cancelled
        for batch in card.given:
            assert len(batch.jobs) == 1 or batch.tokens <= 100
            assert len(batch.jobs) <= 50

    asyncio.run(scenario())
