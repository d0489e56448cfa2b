"""The window of a stream."""

import asyncio

import pytest

from gradewire_server.requests.stream.window import Window


async def test_waits_for_room() -> None:
    window = Window(4)
    await window.acquire(3)
    waiting = asyncio.create_task(window.acquire(2))
    await asyncio.sleep(0)
    assert not waiting.done()
    window.release(1)
    await asyncio.wait_for(waiting, timeout=1)


async def test_a_message_larger_than_the_window_is_taken_alone() -> None:
    window = Window(4)
    await asyncio.wait_for(window.acquire(9), timeout=1)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(window.acquire(1), timeout=0.01)
