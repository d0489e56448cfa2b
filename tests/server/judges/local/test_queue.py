"""Which work goes next, without any model: a run is answered by hand."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import example_count

from gradewire_models.judges.cores.rows import CoreLimits, RowResult
from gradewire_server.domain.items import Failure, Status
from gradewire_server.judges.local.queue import EmbeddedQueue, Planned, Work
from gradewire_server.settings.judge import EmbeddedJudgeConfig

A, B = (1, 2, 3), (7, 8)
LOST = Failure(Status.UNAVAILABLE, "lost", retry_after_s=1.0)
END = 99


def queue_of(
    *,
    run_tokens: int = 10,
    growing: int = 4,
    row_tokens: int = 8,
    rows: int = 64,
    core_growing: int = 64,
    kept: int = 8,
    core_kept: int = 64,
) -> EmbeddedQueue:
    config = EmbeddedJudgeConfig(
        Path(), max_batch_tokens=run_tokens, max_sequences=growing, max_prefix_states=kept, max_prefix_tokens=1000
    )
    return EmbeddedQueue(config, CoreLimits(row_tokens, rows, core_growing, core_kept), 1000)


def choice(fixed: tuple[int, ...], tokens: int) -> Work:
    done: asyncio.Future[RowResult | Failure] = asyncio.get_running_loop().create_future()
    return Work(fixed, tuple(range(100, 100 + tokens)), done, 0.0, labels=(1, 2))


def text(fixed: tuple[int, ...], tokens: int, max_tokens: int) -> Work:
    def ended(ids: Sequence[int]) -> bool:
        return bool(ids) and ids[-1] == END

    done: asyncio.Future[RowResult | Failure] = asyncio.get_running_loop().create_future()
    return Work(fixed, tuple(range(100, 100 + tokens)), done, 0.0, max_tokens=max_tokens, ended=ended)


def step(queue: EmbeddedQueue, token: int = 5) -> Planned | None:
    """Plans and answers one run."""
    planned = queue.plan()
    if planned is not None:
        for work, row in zip(planned.works, planned.run.rows, strict=False):
            work.take(row, RowResult((0.5, 0.5), 1.0, token))
        queue.computed(planned)
    return planned


def runs(queue: EmbeddedQueue) -> list[Planned]:
    found = []
    while (planned := step(queue)) is not None:
        found.append(planned)
    return found


async def test_fixed_turns_are_computed_once_and_stand_before_all_items() -> None:
    queue = queue_of()
    works = [choice(A, 4) for _ in range(3)]
    for work in works:
        queue.push(work)
    prefix, first, second = runs(queue)
    assert prefix.works == ()
    assert prefix.run.rows[0].ids == A
    assert prefix.run.rows[0].keep
    assert first.works == (works[0], works[1])  # 4 + 4 tokens; a third would be 12, beyond 10
    assert second.works == (works[2],)
    assert first.run.prefix == second.run.prefix == prefix.run.rows[0].state
    assert all(work.done.done() for work in works)
    queue.push(choice(A, 4))
    assert len(runs(queue)) == 1


async def test_prompts_take_turns_so_none_starves() -> None:
    queue = queue_of()
    many = [choice(A, 8) for _ in range(5)]
    one = choice(B, 8)
    for work in (*many, one):
        queue.push(work)
    served = [planned.group for planned in runs(queue) if planned.works]
    assert served.index(B) == 1
    assert served.count(A) == 5


def asked_by(caller: str, work: Work) -> Work:
    work.caller = caller
    return work


async def test_callers_take_turns_so_none_starves() -> None:
    queue = queue_of()
    many = [asked_by("many", choice(A, 8)) for _ in range(5)]
    few = [asked_by("few", choice(A, 8)) for _ in range(2)]
    for work in (*many, *few):
        queue.push(work)
    served = [planned.works[0] for planned in runs(queue) if planned.works]
    assert served == [many[0], few[0], many[1], few[1], *many[2:]]


async def test_work_of_a_lost_worker_comes_first_again() -> None:
    queue = queue_of()
    begun = asked_by("many", text(A, 4, 3))
    queue.push(begun)
    step(queue), step(queue)
    assert begun.written
    waiting = asked_by("few", choice(A, 8))
    queue.push(waiting)
    queue.start_over()
    served = [work for planned in runs(queue) for work in planned.works]
    assert served.index(begun) < served.index(waiting)
    assert begun.done.done()


async def test_a_group_keeps_its_turn_until_its_fixed_turns_have_paid() -> None:
    queue = queue_of(row_tokens=30, run_tokens=10)
    dear = tuple(range(25))
    for _ in range(4):
        queue.push(choice(dear, 10))
    queue.push(choice(B, 10))
    assert [planned.group for planned in runs(queue) if planned.works] == [dear, dear, dear, B, dear]


async def test_a_long_item_is_cut_at_places_of_its_own() -> None:
    queue = queue_of(row_tokens=8, run_tokens=4)
    work = choice((), 20)
    queue.push(work)
    rows = [planned.run.rows[0] for planned in runs(queue)]
    assert [len(row.ids) for row in rows] == [8, 8, 4]
    assert [row.labels for row in rows] == [(), (), (1, 2)]
    assert [row.keep for row in rows] == [True, True, True]
    assert sum((row.ids for row in rows), ()) == work.item


async def test_texts_grow_together_and_the_place_of_one_that_ended_is_taken() -> None:
    queue = queue_of(growing=2, run_tokens=100)
    works = [text(A, 4, 3) for _ in range(3)]
    for work in works:
        queue.push(work)
    step(queue)
    first = step(queue)
    assert first is not None
    assert first.works == (works[0], works[1])
    second = step(queue, token=END)
    assert second is not None
    assert [row.ids for row in second.run.rows] == [(5,), (5,)]
    third = step(queue)
    assert third is not None
    assert third.works == (works[2],)
    assert set(third.run.drop) == {works[0].state, works[1].state}
    assert works[0].written == [5, END]
    runs(queue)
    assert works[2].written == [5, 5, 5]


async def test_choices_go_along_with_texts_that_grow() -> None:
    queue = queue_of()
    queue.push(text(A, 4, 5))
    step(queue), step(queue)
    queue.push(work := choice(A, 4))
    planned = step(queue)
    assert planned is not None
    assert [len(row.ids) for row in planned.run.rows] == [1, 4]
    assert work.done.done()


async def test_nothing_comes_between_where_the_core_can_grow_only_one() -> None:
    queue = queue_of(rows=1, core_growing=1)
    queue.push(text(A, 4, 3))
    queue.push(choice(B, 4))
    queue.push(choice(A, 4))
    order = [planned.group for planned in runs(queue) if planned.works]
    assert order[:3] == [A, A, A]


async def test_what_nobody_waits_for_is_never_computed() -> None:
    queue = queue_of()
    works = [choice(A, 4) for _ in range(3)]
    for work in works:
        queue.push(work)
    works[0].done.cancel()
    works[2].done.cancel()
    assert [planned.works for planned in runs(queue) if planned.works] == [(works[1],)]


async def test_a_text_that_nobody_waits_for_any_more_is_dropped_and_its_mates_go_on() -> None:
    queue = queue_of(run_tokens=100)
    works = [text(A, 4, 4) for _ in range(2)]
    for work in works:
        queue.push(work)
    step(queue), step(queue)
    works[0].done.cancel()
    planned = step(queue)
    assert planned is not None
    assert planned.works == (works[1],)
    assert planned.run.drop == (works[0].state,)


async def test_a_lost_run_fails_its_works_and_the_others_start_over() -> None:
    queue = queue_of(run_tokens=4)
    growing, lost, waiting = text(B, 4, 4), choice(A, 4), choice(A, 4)
    queue.push(growing)
    step(queue), step(queue)
    queue.push(lost)
    queue.push(waiting)
    planned = queue.plan()
    while planned is not None and lost not in planned.works:
        step_answers(queue, planned)
        planned = queue.plan()
    assert planned is not None
    queue.lost(planned, LOST)
    queue.start_over()
    assert lost.done.result() == LOST
    assert not waiting.done.done()
    assert not growing.done.done()
    assert growing.written == []
    after = runs(queue)
    assert {planned.group for planned in after if not planned.works} == {A, B}  # fixed turns are computed again
    assert waiting.done.done()
    assert growing.written == [5, 5, 5, 5]


def step_answers(queue: EmbeddedQueue, planned: Planned) -> None:
    for work, row in zip(planned.works, planned.run.rows, strict=False):
        work.take(row, RowResult((0.5, 0.5), 1.0, 5))
    queue.computed(planned)


async def test_fixed_turns_that_take_the_worker_down_take_those_who_wait_for_them() -> None:
    queue = queue_of()
    poison, other = choice(A, 4), choice(B, 4)
    queue.push(poison)
    queue.push(other)
    planned = queue.plan()
    assert planned is not None
    assert planned.works == ()
    queue.lost(planned, LOST)
    queue.start_over()
    assert poison.done.result() == LOST
    assert not other.done.done()
    assert [each.group for each in runs(queue)] == [B, B]


async def test_states_of_a_worker_that_is_gone_are_never_named_again() -> None:
    queue = queue_of()
    queue.push(text(A, 4, 3))
    before = {row.state for planned in (step(queue), step(queue)) if planned for row in planned.run.rows}
    queue.start_over()
    after = runs(queue)
    named = {row.state for planned in after for row in planned.run.rows} | {planned.run.prefix for planned in after}
    assert not before & named
    assert all(not planned.run.drop for planned in after)


async def test_the_least_recently_used_prompt_makes_room() -> None:
    queue = queue_of(kept=2)
    prompts = [(1,), (2,), (3,)]
    states = {}
    for fixed in prompts:
        queue.push(choice(fixed, 4))
        states[fixed] = runs(queue)[0].run.rows[0].state
    queue.push(choice((3,), 4))
    queue.push(choice((1,), 4))
    dropped = [state for planned in runs(queue) for state in planned.run.drop]
    assert states[(1,)] not in dropped  # it went when (3,) came
    assert states[(2,)] in dropped


async def test_no_more_is_kept_than_the_core_can_keep() -> None:
    queue = queue_of(core_kept=2)
    prompts = [(1,), (2,), ()]
    for fixed in prompts:
        queue.push(choice(fixed, 4))
        runs(queue)
    # Items without fixed turns need room in the core as well: (1,) went for them, and goes for itself again.
    for fixed, steps in [((2,), 1), ((1,), 2), ((2,), 1), ((), 1), ((1,), 2)]:
        queue.push(choice(fixed, 4))
        assert len(runs(queue)) == steps, fixed


async def test_a_crowd_of_prompts_shares_out_what_the_core_can_keep() -> None:
    queue = queue_of(rows=1, core_kept=2)
    for _ in range(3):
        for fixed in range(5):
            queue.push(choice((fixed,) * 8, 4))
    planned = runs(queue)
    # 8 tokens of fixed turns are paid off by two items of 4: each prompt is computed for two and for the third.
    assert sum(not each.works for each in planned) == 10
    assert [each.group[0] for each in planned if each.works][:6] == [0, 0, 1, 1, 2, 2]


async def test_fixed_turns_of_what_has_ended_make_room() -> None:
    queue = queue_of(kept=1)
    queue.push(grown := text(A, 4, 3))
    state = runs(queue)[0].run.rows[0].state
    assert grown.done.done()
    queue.push(choice(B, 4))
    assert state in [each for planned in runs(queue) for each in planned.run.drop]


@settings(max_examples=example_count(50), deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([A, B, ()]), st.integers(1, 30), st.integers(0, 6)), max_size=12),
    st.sampled_from([4, 10, 40]),
    st.sampled_from([2, 3, 64]),
)
async def test_what_has_begun_is_in_every_run_of_its_group(
    asked: list[tuple[tuple[int, ...], int, int]], run_tokens: int, rows: int
) -> None:
    """Rows of one state never get longer, so what fits once fits again: nobody waits behind those who began with it."""
    queue = queue_of(run_tokens=run_tokens, rows=rows)
    works = [
        text(fixed, tokens, max_tokens) if max_tokens else choice(fixed, tokens) for fixed, tokens, max_tokens in asked
    ]
    for work in works:
        queue.push(work)
    begun: set[Work] = set()
    while (planned := step(queue)) is not None:
        if planned.works:
            unfinished = {work for work in begun if work.fixed == planned.group}
            assert unfinished <= set(planned.works)
            begun = {work for work in begun | set(planned.works) if not work.done.done()}
    assert all(work.done.done() for work in works)


async def test_without_fixed_turns_there_is_no_prefix() -> None:
    queue = queue_of()
    queue.push(choice((), 4))
    (planned,) = runs(queue)
    assert planned.run.prefix is None


async def test_everything_can_be_failed_at_once() -> None:
    queue = queue_of()
    works = [choice(A, 4), text(B, 4, 4)]
    for work in works:
        queue.push(work)
    queue.fail_all(LOST)
    assert [work.done.result() for work in works] == [LOST, LOST]
    assert queue.plan() is None
