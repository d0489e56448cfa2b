"""Single flight: everyone gets the one answer, nobody can take it away from others."""

import asyncio
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.domain.needs import Source, Tier
from gradewire_server.domain.result import Failure, Status
from gradewire_server.encoders.pending import Call, Flight, FlightTable
from gradewire_server.storage.vector_kind import SENTENCE


def flight(name: bytes = b"k") -> Flight:
    return Flight(name, "text", Tier.WINDOW)


async def test_the_first_is_computed_and_the_others_joined() -> None:
    table, calls = FlightTable(), [Call(1, deadline_s=None) for _ in range(3)]
    table.start(flight(), calls[0], 0, SENTENCE)
    assert all(table.join(b"k", call, 0, SENTENCE, Tier.WINDOW) for call in calls[1:])
    waiting = [asyncio.create_task(call.wait()) for call in calls]
    await asyncio.sleep(0)
    started = table._flights[b"k"]
    table.land(started, {SENTENCE: b"body"}, Source.COMPUTED)
    await asyncio.gather(*waiting)
    assert [call.results for call in calls] == [[b"body"]] * 3
    assert [call.sources[0] for call in calls] == [Source.COMPUTED, Source.JOINED, Source.JOINED]
    assert not len(table)
    assert not table.join(b"k", calls[0], 0, SENTENCE, Tier.WINDOW)


async def test_the_strongest_tier_counts() -> None:
    table, started = FlightTable(), flight()
    table.start(started, Call(1, deadline_s=None), 0, SENTENCE)
    table.join(b"k", Call(1, deadline_s=None), 0, SENTENCE, Tier.REFERENCE)
    table.join(b"k", Call(1, deadline_s=None), 0, SENTENCE, Tier.PREDICTION)
    assert started.tier is Tier.REFERENCE


async def test_a_cancelled_waiter_leaves_the_others() -> None:
    table, gone, stays = FlightTable(), Call(1, deadline_s=None), Call(1, deadline_s=None)
    started = flight()
    table.start(started, gone, 0, SENTENCE)
    table.join(b"k", stays, 0, SENTENCE, Tier.WINDOW)
    tasks = [asyncio.create_task(call.wait()) for call in (gone, stays)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    await asyncio.wait(tasks[:1])
    assert started.wanted(time.monotonic())
    table.land(started, {SENTENCE: b"body"}, Source.COMPUTED)
    await tasks[1]
    assert stays.results == [b"body"]


async def test_with_no_waiter_left_it_is_dropped_as_cancelled() -> None:
    table, call, started = FlightTable(), Call(1, deadline_s=None), flight()
    table.start(started, call, 0, SENTENCE)
    task = asyncio.create_task(call.wait())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert not started.wanted(time.monotonic())
    assert not table.drop(started)
    assert not len(table)


async def test_a_dropped_flight_can_be_revived_before_its_turn() -> None:
    table, started = FlightTable(), flight()
    call = Call(1, deadline_s=None)
    table.start(started, call, 0, SENTENCE)
    call.open = False
    assert not started.wanted(time.monotonic())
    table.join(b"k", Call(1, deadline_s=None), 0, SENTENCE, Tier.WINDOW)
    assert started.wanted(time.monotonic())


async def test_its_deadline_is_the_latest_of_its_waiters() -> None:
    table, started = FlightTable(), flight()
    table.start(started, Call(1, deadline_s=100.0), 0, SENTENCE)
    table.join(b"k", Call(1, deadline_s=200.0), 0, SENTENCE, Tier.WINDOW)
    assert started.wanted(150.0)
    assert not started.wanted(200.0)


async def test_at_its_deadline_a_call_returns_what_it_has() -> None:
    table, call, late = FlightTable(), Call(2, deadline_s=time.monotonic()), flight(b"late")
    early = flight(b"early")
    table.start(early, call, 0, SENTENCE)
    table.start(late, call, 1, SENTENCE)
    table.land(early, {SENTENCE: b"body"}, Source.COMPUTED)
    await call.wait()
    assert call.results[0] == b"body"
    assert isinstance(call.results[1], Failure)
    assert call.results[1].status is Status.TIMEOUT
    table.land(late, {SENTENCE: b"too late"}, Source.COMPUTED)
    assert isinstance(call.results[1], Failure)
    assert table.drop(flight(b"late")) is False


@given(st.lists(st.integers(0, 4), min_size=1, max_size=12), st.randoms(), st.sets(st.integers(0, 11)))
def test_every_open_call_gets_every_answer_whatever_the_order(
    texts: list[int], random: "st.random_module", cancelled: set[int]
) -> None:
    async def scenario() -> None:
        table, calls, flights = FlightTable(), [], {}
        for text in texts:
            call = Call(2, deadline_s=None)
            for position, name in enumerate((b"%d" % text, b"%d" % (text + 1))):
                if not table.join(name, call, position, SENTENCE, Tier.WINDOW):
                    flights[name] = flight(name)
                    table.start(flights[name], call, position, SENTENCE)
            calls.append(call)
        tasks = [asyncio.create_task(call.wait()) for call in calls]
        await asyncio.sleep(0)
        for place in cancelled & set(range(len(tasks))):
            tasks[place].cancel()
        names = sorted(flights)
        random.shuffle(names)
        for name in names:
            table.land(flights[name], {SENTENCE: b"body of " + name}, Source.COMPUTED)
        await asyncio.gather(*tasks, return_exceptions=True)
        for place, (text, call) in enumerate(zip(texts, calls, strict=True)):
            if place not in cancelled:
                assert call.results == [b"body of %d" % text, b"body of %d" % (text + 1)]
        assert not len(table)

    asyncio.run(scenario())


@pytest.mark.parametrize("results", [0, 3])
async def test_nothing_open_needs_no_wait(results: int) -> None:
    await asyncio.wait_for(Call(results, deadline_s=None).wait(), 1)


async def test_queueing_ends_with_the_first_run_and_inference_with_the_last() -> None:
    call, now_s = Call(3, deadline_s=None), time.monotonic()
    call.ran(now_s - 1.0, queued_s=now_s - 4.0)
    call.ran(now_s - 3.0, queued_s=now_s - 4.0)  # began first, ends second
    call.ran(now_s - 0.5, queued_s=now_s - 4.0)
    assert call.timing.queue_s == pytest.approx(1.0)
    assert call.timing.inference_s == pytest.approx(3.0, abs=0.5)


async def test_who_wants_what_a_run_did_not_give_goes_on_waiting() -> None:
    table, early, late = FlightTable(), Call(1, deadline_s=None), Call(1, deadline_s=None)
    started = flight()
    table.start(started, early, 0, SENTENCE)
    assert started.take() == frozenset()
    table.join(b"k", late, 0, 5, Tier.WINDOW)
    assert not table.land(started, {SENTENCE: b"body"}, Source.COMPUTED)
    await early.wait()
    assert late.results == [None]
    assert started.parts == {5}
    assert started.taken is None
    assert table.join(b"k", Call(1, deadline_s=None), 0, SENTENCE, Tier.WINDOW), "it is still under way"
    assert table.land(started, {SENTENCE: b"body", 5: b"tokens"}, Source.COMPUTED)
    assert late.results == [b"tokens"]
    assert late.sources[0] == Source.COMPUTED
    assert not len(table)


@pytest.mark.parametrize(
    ("tier", "parts", "storable"),
    [
        (Tier.WINDOW, {SENTENCE}, False),
        (Tier.PREDICTION, {SENTENCE}, True),
        (Tier.PREDICTION, {SENTENCE, 5}, False),
        (Tier.REFERENCE, {SENTENCE, 5}, True),
    ],
)
def test_token_vectors_are_stored_of_references_alone(tier: Tier, parts: set[int], *, storable: bool) -> None:
    started = Flight(b"k", "text", tier)
    started.parts = frozenset(parts)
    assert started.storable is storable
