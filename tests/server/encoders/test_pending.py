"""Pending texts: everyone gets the one answer, nobody can take it away from others."""

import asyncio
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.needs import AnswerSource, Tier
from gradewire_server.encoders.pending import PendingText, PendingTexts, VectorCall
from gradewire_server.storage.codec import SENTENCE


def text_of(name: bytes = b"k") -> PendingText:
    return PendingText(name, "text", Tier.WINDOW)


async def test_the_first_is_computed_and_the_others_joined() -> None:
    table, calls = PendingTexts(), [VectorCall(1, deadline_s=None) for _ in range(3)]
    table.start(text_of(), calls[0], 0, SENTENCE)
    assert all(table.join(b"k", call, 0, SENTENCE, Tier.WINDOW) for call in calls[1:])
    waiting = [asyncio.create_task(call.wait()) for call in calls]
    await asyncio.sleep(0)
    started = table._texts[b"k"]
    table.complete(started, {SENTENCE: b"blob"}, AnswerSource.COMPUTED)
    await asyncio.gather(*waiting)
    assert [call.results for call in calls] == [[b"blob"]] * 3
    assert [call.sources[0] for call in calls] == [AnswerSource.COMPUTED, AnswerSource.JOINED, AnswerSource.JOINED]
    assert not len(table)
    assert not table.join(b"k", calls[0], 0, SENTENCE, Tier.WINDOW)


async def test_the_strongest_tier_counts() -> None:
    table, started = PendingTexts(), text_of()
    table.start(started, VectorCall(1, deadline_s=None), 0, SENTENCE)
    table.join(b"k", VectorCall(1, deadline_s=None), 0, SENTENCE, Tier.REFERENCE)
    table.join(b"k", VectorCall(1, deadline_s=None), 0, SENTENCE, Tier.PREDICTION)
    assert started.tier is Tier.REFERENCE


async def test_a_cancelled_waiter_leaves_the_others() -> None:
    table, gone, stays = PendingTexts(), VectorCall(1, deadline_s=None), VectorCall(1, deadline_s=None)
    started = text_of()
    table.start(started, gone, 0, SENTENCE)
    table.join(b"k", stays, 0, SENTENCE, Tier.WINDOW)
    tasks = [asyncio.create_task(call.wait()) for call in (gone, stays)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    await asyncio.wait(tasks[:1])
    assert started.is_wanted(time.monotonic())
    table.complete(started, {SENTENCE: b"blob"}, AnswerSource.COMPUTED)
    await tasks[1]
    assert stays.results == [b"blob"]


async def test_with_no_waiter_left_it_is_dropped_as_cancelled() -> None:
    table, call, started = PendingTexts(), VectorCall(1, deadline_s=None), text_of()
    table.start(started, call, 0, SENTENCE)
    task = asyncio.create_task(call.wait())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert not started.is_wanted(time.monotonic())
    assert not table.drop(started)
    assert not len(table)


async def test_a_text_that_nobody_wants_can_be_revived_before_its_turn() -> None:
    table, started = PendingTexts(), text_of()
    call = VectorCall(1, deadline_s=None)
    table.start(started, call, 0, SENTENCE)
    call.open = False
    assert not started.is_wanted(time.monotonic())
    table.join(b"k", VectorCall(1, deadline_s=None), 0, SENTENCE, Tier.WINDOW)
    assert started.is_wanted(time.monotonic())


async def test_its_deadline_is_the_latest_of_its_waiters() -> None:
    table, started = PendingTexts(), text_of()
    table.start(started, VectorCall(1, deadline_s=100.0), 0, SENTENCE)
    table.join(b"k", VectorCall(1, deadline_s=200.0), 0, SENTENCE, Tier.WINDOW)
    assert started.is_wanted(150.0)
    assert not started.is_wanted(200.0)


async def test_at_its_deadline_a_call_returns_what_it_has() -> None:
    table, call, late = PendingTexts(), VectorCall(2, deadline_s=time.monotonic()), text_of(b"late")
    early = text_of(b"early")
    table.start(early, call, 0, SENTENCE)
    table.start(late, call, 1, SENTENCE)
    table.complete(early, {SENTENCE: b"blob"}, AnswerSource.COMPUTED)
    await call.wait()
    assert call.results[0] == b"blob"
    assert isinstance(call.results[1], Failure)
    assert call.results[1].status is Status.TIMEOUT
    table.complete(late, {SENTENCE: b"too late"}, AnswerSource.COMPUTED)
    assert isinstance(call.results[1], Failure)
    assert table.drop(text_of(b"late")) is False


@given(st.lists(st.integers(0, 4), min_size=1, max_size=12), st.randoms(), st.sets(st.integers(0, 11)))
def test_every_open_call_gets_every_answer_whatever_the_order(
    texts: list[int], random: "st.random_module", cancelled: set[int]
) -> None:
    async def scenario() -> None:
        table, calls, pending = PendingTexts(), [], {}
        for text in texts:
            call = VectorCall(2, deadline_s=None)
            for position, name in enumerate((b"%d" % text, b"%d" % (text + 1))):
                if not table.join(name, call, position, SENTENCE, Tier.WINDOW):
                    pending[name] = text_of(name)
                    table.start(pending[name], call, position, SENTENCE)
            calls.append(call)
        tasks = [asyncio.create_task(call.wait()) for call in calls]
        await asyncio.sleep(0)
        for place in cancelled & set(range(len(tasks))):
            tasks[place].cancel()
        names = sorted(pending)
        random.shuffle(names)
        for name in names:
            table.complete(pending[name], {SENTENCE: b"blob of " + name}, AnswerSource.COMPUTED)
        await asyncio.gather(*tasks, return_exceptions=True)
        for place, (text, call) in enumerate(zip(texts, calls, strict=True)):
            if place not in cancelled:
                assert call.results == [b"blob of %d" % text, b"blob of %d" % (text + 1)]
        assert not len(table)

    asyncio.run(scenario())


@pytest.mark.parametrize("results", [0, 3])
async def test_nothing_open_needs_no_wait(results: int) -> None:
    await asyncio.wait_for(VectorCall(results, deadline_s=None).wait(), 1)


async def test_queueing_ends_with_the_first_run_and_inference_with_the_last() -> None:
    call, now_s = VectorCall(3, deadline_s=None), time.monotonic()
    call.ran(now_s - 1.0, queued_s=now_s - 4.0)
    call.ran(now_s - 3.0, queued_s=now_s - 4.0)  # began first, ends second
    call.ran(now_s - 0.5, queued_s=now_s - 4.0)
    assert call.timing.queue_s == pytest.approx(1.0)
    assert call.timing.inference_s == pytest.approx(3.0, abs=0.5)


async def test_who_wants_what_a_run_did_not_give_goes_on_waiting() -> None:
    table, early, late = PendingTexts(), VectorCall(1, deadline_s=None), VectorCall(1, deadline_s=None)
    started = text_of()
    table.start(started, early, 0, SENTENCE)
    assert started.take() == frozenset()
    table.join(b"k", late, 0, 5, Tier.WINDOW)
    assert not table.complete(started, {SENTENCE: b"blob"}, AnswerSource.COMPUTED)
    await early.wait()
    assert late.results == [None]
    assert started.token_kinds == {5}
    assert started.taken is None
    assert table.join(b"k", VectorCall(1, deadline_s=None), 0, SENTENCE, Tier.WINDOW), "it is still under way"
    assert table.complete(started, {SENTENCE: b"blob", 5: b"tokens"}, AnswerSource.COMPUTED)
    assert late.results == [b"tokens"]
    assert late.sources[0] == AnswerSource.COMPUTED
    assert not len(table)


@pytest.mark.parametrize(
    ("tier", "kinds", "storable"),
    [
        (Tier.WINDOW, set(), False),
        (Tier.PREDICTION, set(), True),
        (Tier.PREDICTION, {5}, False),
        (Tier.REFERENCE, {5}, True),
    ],
)
def test_token_vectors_are_stored_of_references_alone(tier: Tier, kinds: set[int], *, storable: bool) -> None:
    started = PendingText(b"k", "text", tier)
    started.token_kinds = frozenset(kinds)
    assert started.storable is storable
