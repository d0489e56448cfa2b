"""Pending texts: everyone gets the one answer, nobody can take it away from others."""

import asyncio
import time
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.needs import AnswerSource, Tier
from gradewire_server.encoders.pending import PendingText, PendingTexts, VectorCall
from gradewire_server.storage.codec import SENTENCE

_SOURCES: Final = [AnswerSource.COMPUTED, AnswerSource.DISK, AnswerSource.COMPUTED, AnswerSource.REDIS]


def start(table: PendingTexts, call: VectorCall, position: int = 0, name: bytes = b"k") -> PendingText:
    """Subscribe a call to a text that is not yet pending."""
    texts, tiers = ["text"] * (position + 1), [Tier.WINDOW] * (position + 1)
    (started,) = table.subscribe(call, SENTENCE, [(name, position)], texts, tiers)
    return started


async def test_the_first_is_computed_and_the_others_joined() -> None:
    table, calls = PendingTexts(), [VectorCall(1, deadline_s=None) for _ in range(3)]
    started = start(table, calls[0])
    assert all(table.join(b"k", call, 0, SENTENCE, Tier.WINDOW) for call in calls[1:])
    waiting = [asyncio.create_task(call.wait()) for call in calls]
    await asyncio.sleep(0)
    table.complete(started, {SENTENCE: b"blob"}, AnswerSource.COMPUTED)
    await asyncio.gather(*waiting)
    assert [call.results for call in calls] == [[b"blob"]] * 3
    assert [call.sources[0] for call in calls] == [AnswerSource.COMPUTED, AnswerSource.JOINED, AnswerSource.JOINED]
    assert not len(table)
    assert not table.join(b"k", calls[0], 0, SENTENCE, Tier.WINDOW)


async def test_the_strongest_tier_counts() -> None:
    table = PendingTexts()
    started = start(table, VectorCall(1, deadline_s=None))
    table.join(b"k", VectorCall(1, deadline_s=None), 0, SENTENCE, Tier.REFERENCE)
    table.join(b"k", VectorCall(1, deadline_s=None), 0, SENTENCE, Tier.PREDICTION)
    assert started.tier is Tier.REFERENCE


async def test_a_cancelled_waiter_leaves_the_others() -> None:
    table, gone, stays = PendingTexts(), VectorCall(1, deadline_s=None), VectorCall(1, deadline_s=None)
    started = start(table, gone)
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
    table, call = PendingTexts(), VectorCall(1, deadline_s=None)
    started = start(table, call)
    task = asyncio.create_task(call.wait())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert not started.is_wanted(time.monotonic())
    assert not table.drop(started)
    assert not len(table)


async def test_a_text_that_nobody_wants_can_be_revived_before_its_turn() -> None:
    table, call = PendingTexts(), VectorCall(1, deadline_s=None)
    started = start(table, call)
    call.open = False
    assert not started.is_wanted(time.monotonic())
    table.join(b"k", VectorCall(1, deadline_s=None), 0, SENTENCE, Tier.WINDOW)
    assert started.is_wanted(time.monotonic())


async def test_its_deadline_is_the_latest_of_its_waiters() -> None:
    table = PendingTexts()
    started = start(table, VectorCall(1, deadline_s=100.0))
    table.join(b"k", VectorCall(1, deadline_s=200.0), 0, SENTENCE, Tier.WINDOW)
    assert started.is_wanted(150.0)
    assert not started.is_wanted(200.0)


async def test_at_its_deadline_a_call_returns_what_it_has() -> None:
    table, call = PendingTexts(), VectorCall(2, deadline_s=time.monotonic())
    early, late = start(table, call, 0, b"early"), start(table, call, 1, b"late")
    table.complete(early, {SENTENCE: b"blob"}, AnswerSource.COMPUTED)
    await call.wait()
    assert call.results[0] == b"blob"
    assert isinstance(call.results[1], Failure)
    assert call.results[1].status is Status.TIMEOUT
    table.complete(late, {SENTENCE: b"too late"}, AnswerSource.COMPUTED)
    assert isinstance(call.results[1], Failure)
    assert table.drop(PendingText(b"late", "text", Tier.WINDOW)) is False


@given(st.lists(st.integers(0, 4), min_size=1, max_size=12), st.randoms(), st.sets(st.integers(0, 11)))
def test_every_open_call_gets_every_answer_whatever_the_order(
    texts: list[int], random: "st.random_module", cancelled: set[int]
) -> None:
    async def scenario() -> None:
        table, calls, pending = PendingTexts(), [], {}
        for text in texts:
            call = VectorCall(2, deadline_s=None)
            names = [b"%d" % text, b"%d" % (text + 1)]
            missing = zip(names, range(2), strict=True)
            started = table.subscribe(call, SENTENCE, missing, ["text"] * 2, [Tier.WINDOW] * 2)
            pending |= {each.name: each for each in started}
            calls.append(call)
        tasks = [asyncio.create_task(call.wait()) for call in calls]
        await asyncio.sleep(0)
        for place in cancelled & set(range(len(tasks))):
            tasks[place].cancel()
        names = sorted(pending)
        random.shuffle(names)
        half = random.randint(0, len(names))
        for name in names[:half]:
            table.complete(pending[name], {SENTENCE: b"blob of " + name}, AnswerSource.COMPUTED)
        run = [pending[name] for name in names[half:]]
        blobs = [{SENTENCE: b"blob of " + each.name} for each in run]
        assert not table.complete_all(run, blobs, [AnswerSource.COMPUTED] * len(run))
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


async def test_a_run_s_texts_are_completed_together_as_one_by_one() -> None:
    table, call, other = PendingTexts(), VectorCall(4, deadline_s=None), VectorCall(2, deadline_s=None)
    texts = [start(table, call, position, b"%d" % position) for position in range(4)]
    table.join(b"1", other, 0, SENTENCE, Tier.WINDOW)
    table.join(b"2", other, 1, 5, Tier.WINDOW)
    failure = Failure(Status.UNAVAILABLE, "gone")
    again = table.complete_all(texts, [{SENTENCE: b"0"}, {SENTENCE: b"1"}, {SENTENCE: b"2"}, failure], _SOURCES)
    await call.wait()
    assert again == [texts[2]], "its second caller wants token vectors"
    assert len(table) == 1
    assert call.results == [b"0", b"1", b"2", failure]
    assert list(call.sources) == _SOURCES
    assert other.results == [b"1", None]
    assert other.sources[0] == AnswerSource.JOINED
    assert not any(text.is_wanted(time.monotonic()) for text in (texts[0], texts[1], texts[3]))


async def test_who_wants_what_a_run_did_not_give_goes_on_waiting() -> None:
    table, early, late = PendingTexts(), VectorCall(1, deadline_s=None), VectorCall(1, deadline_s=None)
    started = start(table, early)
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
