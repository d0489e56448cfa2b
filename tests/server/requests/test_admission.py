"""Small requests are let in while they can soon be done; bulk work waits for its turn; nothing is lost."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.server.requests.clock import Clock

from gradewire_server.domain.caller import Caller, Lane, current_turn
from gradewire_server.requests.admission import Admission, Work
from gradewire_server.requests.errors import OverloadedError
from gradewire_server.settings.limits import Capacity

TOKENS = 100
"""What a request of these tests costs."""
PER_S = 2000.0
"""Tokens that the server of these tests gets through in a second."""


def work(caller: str = "a", kind: str = "cold") -> Work:
    return Work(Caller(caller), kind, 100, 1)


async def measured() -> Admission:
    """Admission that has seen cold and warm requests, and knows how fast cold ones are done."""
    admission = Admission(Capacity())
    ends_s = asyncio.get_running_loop().time() + 0.4
    while asyncio.get_running_loop().time() < ends_s:
        with admission.interactive(work(), left_s=10):
            current_turn().queued(TOKENS)
            current_turn().computed(TOKENS)
            await asyncio.sleep(TOKENS / PER_S)
        with admission.interactive(work(kind="warm"), left_s=10):
            pass
    return admission


@contextlib.asynccontextmanager
async def in_work(admission: Admission, count: int) -> AsyncIterator[None]:
    """That many cold requests in work."""
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(admission.interactive(work(), left_s=1000))
        yield


async def test_a_request_that_would_wait_too_long_is_refused_with_a_time_to_come_back() -> None:
    admission = await measured()
    taken = 0
    refusal = None
    with contextlib.ExitStack() as stack:
        while refusal is None and taken < 1000:
            try:
                stack.enter_context(admission.interactive(work(), left_s=1000))
                taken += 1
            except OverloadedError as error:
                refusal = error
    # Eight requests of this kind, and those beside them by which the measured rate is off.
    assert 8 <= taken < 30
    assert refusal is not None
    assert "of work queued" in str(refusal)
    assert refusal.retry_after_s > 0
    assert admission.items.taken == 0


async def test_those_who_are_refused_are_not_all_told_to_come_back_at_once() -> None:
    admission = await measured()
    told = []
    async with in_work(admission, 8):
        while len(told) < 20:
            try:
                with admission.interactive(work(), left_s=0.001):
                    pass
            except OverloadedError as error:
                told.append(error.retry_after_s)
    assert told == sorted(told)
    assert told[-1] - told[0] > 0.5


async def test_a_request_that_has_too_little_time_is_refused_where_others_are_not() -> None:
    admission = await measured()
    async with in_work(admission, 8):
        with pytest.raises(OverloadedError), admission.interactive(work(), left_s=0.05):
            pass
        with pytest.raises(OverloadedError):
            admission.arrive(Caller("a"), 0.05)


async def test_what_is_in_the_cache_is_let_in_however_much_is_in_work() -> None:
    admission = await measured()
    async with in_work(admission, 8):
        assert admission.wait_s > 0.3
        with contextlib.ExitStack() as stack:
            for _ in range(200):
                stack.enter_context(admission.interactive(work(kind="warm"), left_s=100))
            assert admission.items.taken == 208


async def test_bulk_goes_in_its_lane_and_leaves_room_for_small_requests() -> None:
    admission = await measured()
    large = Work(Caller("bulk"), "cold", 100_000, 64)
    lanes = []

    async def part(gate: asyncio.Event) -> None:
        async with admission.bulk(large, source="stream"):
            lanes.append(current_turn().lane)
            await gate.wait()

    gate = asyncio.Event()
    parts = [asyncio.create_task(part(gate)) for _ in range(33)]
    await asyncio.sleep(0.01)
    assert lanes == [Lane.BULK] * 2, "the others wait"
    with admission.interactive(work(), left_s=1):
        assert current_turn().lane is Lane.INTERACTIVE
    gate.set()
    await asyncio.gather(*parts)
    assert len(lanes) == 33
    assert admission.items.taken == 0


async def test_a_large_request_that_cannot_be_done_in_time_is_refused() -> None:
    admission = await measured()
    large = Work(Caller("a"), "cold", 100_000, 1000)
    assert not admission.is_interactive(large)
    async with in_work(admission, 1):
        with pytest.raises(OverloadedError, match="allow more time"), admission.large(large, left_s=1):
            pass
        with admission.large(large, left_s=1000):
            pass


@given(
    st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 2)), min_size=1, max_size=12),
    st.sets(st.integers(0, 11)),
    st.lists(st.integers(0, 3), min_size=12, max_size=12),
)
def test_no_turn_is_lost_by_cancelling(asked: list[tuple[int, int]], cancelled: set[int], pauses: list[int]) -> None:
    async def run() -> None:
        admission = Admission(Capacity(max_items=3))
        done = []

        async def part(number: int, size_bytes: int, caller: int) -> None:
            async with admission.bulk(Work(Caller(str(caller)), "x", size_bytes, 1), source=number % 3):
                assert admission.items.taken <= 3
                for _ in range(pauses[number]):
                    await asyncio.sleep(0)
                done.append(number)

        tasks = [asyncio.create_task(part(number, *each)) for number, each in enumerate(asked)]
        for number in sorted(cancelled & set(range(len(tasks)))):
            await asyncio.sleep(0)
            tasks[number].cancel()
        await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), timeout=5)
        assert set(done) >= set(range(len(tasks))) - cancelled
        assert admission.items.taken == 0
        async with admission.bulk(Work(Caller("last"), "x", 1, 1), source=0):
            pass

    asyncio.run(run())


async def test_a_large_request_that_is_alone_or_of_a_new_kind_is_let_in_whatever_it_seems_to_cost() -> None:
    admission = await measured()
    with admission.large(Work(Caller("a"), "cold", 10**9, 4096), left_s=60):
        pass
    async with in_work(admission, 1):
        with admission.large(Work(Caller("a"), "never seen", 10**9, 4096), left_s=60):
            pass
        with pytest.raises(OverloadedError), admission.large(Work(Caller("a"), "cold", 10**9, 4096), left_s=60):
            pass


async def test_a_deadline_is_asked_for_however_little_is_in_work() -> None:
    admission = await measured()
    with admission.interactive(work(), left_s=0.001):
        pass  # alone: nobody would be served sooner without it
    async with in_work(admission, 2):
        with pytest.raises(OverloadedError), admission.interactive(work(), left_s=0.05):
            pass


async def test_work_that_is_cut_off_does_not_make_the_server_seem_faster() -> None:
    admission = await measured()
    before = admission.tokens_per_s
    ends_s = asyncio.get_running_loop().time() + 0.4
    while asyncio.get_running_loop().time() < ends_s:
        with admission.interactive(work(), left_s=10):
            current_turn().queued(100 * TOKENS)
            await asyncio.sleep(0.01)
    assert admission.tokens_per_s <= before


async def test_a_request_that_costs_more_than_was_thought_counts_for_what_it_costs() -> None:
    admission = await measured()
    with admission.interactive(work(kind="warm"), left_s=10):
        assert admission.wait_s == pytest.approx(0, abs=1e-3)
        current_turn().queued(20 * TOKENS)
        assert admission.wait_s == pytest.approx(20 * TOKENS / admission.tokens_per_s)
        late = current_turn()
    assert admission.wait_s == 0
    late.queued(20 * TOKENS)
    assert admission.wait_s == 0, "it has left"


async def test_many_items_are_bulk_work_however_little_those_before_cost() -> None:
    admission = await measured()
    assert admission.is_interactive(Work(Caller("a"), "warm", 100, 256))
    assert not admission.is_interactive(Work(Caller("a"), "warm", 100, 257))


@pytest.mark.parametrize(("size_bytes", "is_interactive"), [(2000, True), (2100, False)])
async def test_new_texts_are_bulk_work_from_some_number_on_however_fast_the_encoders_are(
    size_bytes: int, *, is_interactive: bool
) -> None:
    admission = await measured()
    admission._encoders.rate.tokens_per_s = 1e7  # a GPU's; a token of these tests is a byte
    assert admission.is_interactive(Work(Caller("a"), "cold", size_bytes, 100)) is is_interactive


async def test_a_caller_is_let_in_beside_one_that_asks_for_more_than_its_share() -> None:
    admission = await measured()
    greedy, modest = work("a"), work("b")
    for _ in range(30):
        with admission.interactive(modest, left_s=10):
            current_turn().queued(TOKENS)
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OverloadedError):
            for _ in range(100):
                stack.enter_context(admission.interactive(greedy, left_s=1000))
        admission.arrive(modest.caller, 1000)
        stack.enter_context(admission.interactive(modest, left_s=1000))
        with pytest.raises(OverloadedError):
            admission.arrive(greedy.caller, 1000)


async def test_at_arrival_a_caller_is_judged_by_what_its_calls_cost_in_the_mean() -> None:
    admission = await measured()
    for _ in range(30):
        with admission.interactive(work("cached", kind="warm"), left_s=10):
            pass
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OverloadedError):
            for _ in range(100):
                stack.enter_context(admission.interactive(work(), left_s=1000))
        for _ in range(200):
            admission.arrive(Caller("cached"), 1000)
        with pytest.raises(OverloadedError):  # half of its calls were in the cache
            admission.arrive(Caller("a"), 1000)


def behind(admission: Admission, clock: Clock, caller: str) -> contextlib.ExitStack:
    """Calls of a caller, each of which waits for long, until they are refused; all are answered from the cache."""
    for _ in range(10):
        with admission.interactive(work(caller, kind="warm"), left_s=10):
            pass
    in_work = contextlib.ExitStack()
    for _ in range(1000):
        clock.now_s += 0.001
        try:
            admission.arrive(Caller(caller), 10, waited_s=0.05)
        except OverloadedError:
            return in_work
        in_work.enter_context(admission.interactive(work(caller, kind="warm"), left_s=10))
    pytest.fail("the loop is behind and nobody was refused")


def test_calls_that_are_in_the_cache_are_refused_with_a_hint_while_the_loop_is_behind() -> None:
    clock = Clock()
    admission = Admission(Capacity(), clock)
    in_work = behind(admission, clock, "greedy")
    told = []
    for _ in range(100):
        clock.now_s += 0.001
        with pytest.raises(OverloadedError, match=r"calls wait .* for a CPU") as refused:
            admission.arrive(Caller("greedy"), 10, waited_s=0.05)
        told.append(refused.value.retry_after_s)
    assert told == sorted(told)
    assert told[-1] > told[0] > 0
    assert admission.overload_s > 0
    admission.arrive(Caller("greedy"), 10, waited_s=0.001)
    in_work.close()


def test_while_the_loop_is_behind_a_caller_that_asks_for_little_is_let_in() -> None:
    clock = Clock()
    admission = Admission(Capacity(), clock)
    in_work = behind(admission, clock, "greedy")
    admission.arrive(Caller("modest"), 10, waited_s=0.05)
    with pytest.raises(OverloadedError):
        admission.arrive(Caller("modest"), 0.1, waited_s=0.05)  # it would not be done in time
    with pytest.raises(OverloadedError):
        admission.arrive(Caller("greedy"), 10, waited_s=0.05)
    in_work.close()


def test_callers_that_come_once_are_forgotten_while_there_is_no_overload() -> None:
    clock = Clock()
    admission = Admission(Capacity(), clock)
    most = 0
    for number in range(10_000):
        clock.now_s += 0.001
        with admission.interactive(work(str(number)), left_s=10):
            pass
        most = max(most, len(admission._shares._shares))
    assert most <= 1101, "those of a second, and of the tenth in which nobody looked"


async def test_while_the_loop_is_behind_one_part_of_bulk_work_is_in_work() -> None:
    clock = Clock()
    admission = Admission(Capacity(), clock)
    in_work = behind(admission, clock, "greedy")
    parts, done = 0, asyncio.Event()

    async def part() -> None:
        nonlocal parts
        async with admission.bulk(Work(Caller("bulk"), "cold", 100, 1), source="stream"):
            parts += 1
            await done.wait()

    tasks = [asyncio.create_task(part()) for _ in range(3)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert parts == 1
    done.set()
    await asyncio.gather(*tasks)
    assert parts == 3
    in_work.close()


@given(
    st.lists(st.tuples(st.integers(5, 3000), st.floats(0, 0.3), st.booleans()), min_size=1, max_size=60),
    st.floats(0.05, 3),
)
def test_nobody_waits_longer_than_is_allowed(asked: list[tuple[int, float, bool]], max_wait_s: float) -> None:
    clock = Clock()
    admission = Admission(Capacity(max_wait_s=max_wait_s), clock)
    for _ in range(3):  # a request of 1000 tokens a quarter of a second
        with admission.interactive(work(), left_s=10):
            current_turn().queued(1000)
            current_turn().computed(1000)
            clock.now_s += 0.3
    assert admission.tokens_per_s > 0
    refused: list[tuple[float, float]] = []
    entered: list[contextlib.ExitStack] = []
    for number, (tokens, pause_s, one_leaves) in enumerate(asked):
        clock.now_s += pause_s
        if one_leaves and entered:
            entered.pop(0).close()
        wait_s, stack = admission.wait_s, contextlib.ExitStack()
        try:
            # Of its kind nothing is known, so it is thought to cost a token for each byte.
            stack.enter_context(admission.interactive(Work(Caller("a"), number, tokens, 1), left_s=5))
        except OverloadedError as error:
            refused.append((wait_s, error.retry_after_s))
        else:
            entered.append(stack)
            assert wait_s <= max_wait_s * 1.001
    assert all(wait_s > 0 and retry_after_s > 0 for wait_s, retry_after_s in refused), "what is alone is let in"
    for each in entered:
        each.close()
    assert admission.items.taken == 0


async def test_work_for_a_judge_takes_nothing_from_work_for_encoders() -> None:
    admission = await measured()
    judged = Work(Caller("judge"), "lave", 10_000, 512, judged=True)
    large = Work(Caller("bulk"), "cold", 100_000, 64)
    gate = asyncio.Event()
    judging = 0

    async def judge() -> None:
        nonlocal judging
        async with admission.bulk(judged, source=object()):
            judging += 1
            await gate.wait()

    parts = [asyncio.create_task(judge()) for _ in range(33)]
    await asyncio.sleep(0.01)
    assert 8 < judging < 33
    with admission.interactive(work(), left_s=1):
        pass
    async with asyncio.timeout(1), admission.bulk(large, source="stream"):
        pass
    with pytest.raises(OverloadedError, match="items for a judge are in flight"), admission.interactive(judged, 1):
        pass
    gate.set()
    await asyncio.gather(*parts)
    with admission.interactive(judged, left_s=1):
        assert admission.wait_s == 0
    assert admission.items.taken == 0


async def test_parts_that_are_cancelled_together_leave_nothing_behind() -> None:
    admission = await measured()
    large = Work(Caller("bulk"), "cold", 100_000, 64)
    gate = asyncio.Event()

    async def part(source: int) -> None:
        async with admission.bulk(large, source=source):
            await gate.wait()

    parts = [asyncio.create_task(part(number)) for number in range(2000)]
    await asyncio.sleep(0)
    for each in parts[2:]:
        each.cancel()
    gate.set()
    ends = await asyncio.gather(*parts, return_exceptions=True)
    assert sum(isinstance(end, asyncio.CancelledError) for end in ends) == 1998
    assert admission.waiting_tokens == 0
    assert admission.items.taken == 0
