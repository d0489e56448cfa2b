"""Messages of a stream hold memory until their last result is taken; all streams share one budget."""

import asyncio

import pytest

from gradewire_server.requests.admission.permits import Permits
from gradewire_server.rpc.receiving.stream_memory import StreamMemory


@pytest.fixture
def shared() -> Permits:
    return Permits(800, "bytes of streams")


async def test_a_message_leaves_with_its_last_item(shared: Permits) -> None:
    held = StreamMemory(shared, 800)
    await held.take(40, 2)
    await held.take(60, 1)
    held.done(1)
    assert shared.taken == 100
    held.done(1)
    assert shared.taken == 60
    assert held.in_work()
    held.done(1)
    assert shared.taken == 0
    assert not held.in_work()


async def test_a_message_without_items_holds_nothing(shared: Permits) -> None:
    held = StreamMemory(shared, 800)
    await held.take(500, 0)
    assert shared.taken == 0
    assert not held.in_work()


async def test_one_stream_waits_at_an_eighth(shared: Permits) -> None:
    held = StreamMemory(shared, 800)
    await held.take(100, 1)
    waiting = asyncio.create_task(held.take(1, 1))
    await asyncio.sleep(0)
    assert not waiting.done()
    held.done(1)
    await waiting
    assert shared.taken == 1


async def test_all_streams_wait_at_the_limit_and_what_gives_up_holds_nothing(shared: Permits) -> None:
    streams = [StreamMemory(shared, 800) for _ in range(9)]
    for held in streams[:8]:
        await held.take(100, 1)
    waiting = asyncio.create_task(streams[8].take(50, 1))
    await asyncio.sleep(0)
    assert shared.taken == 800
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    streams[0].close()
    await streams[8].take(100, 1)
    assert shared.taken == 800
    for held in streams:
        held.close()
    assert shared.taken == 0
