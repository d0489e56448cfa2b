import asyncio
import gc
from collections.abc import Iterator

import pytest

from gradewire_server import garbage
from gradewire_server.garbage import collect_and_keep, collect_at_rest


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)


class Node:
    """Garbage, once it refers to itself and nobody else does."""

    left = 0

    def __init__(self) -> None:
        self.own = self
        Node.left += 1

    def __del__(self) -> None:
        Node.left -= 1


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Fills with garbage that was left whenever it was looked for."""
    monkeypatch.setattr(garbage, "_EVERY_S", 0.01)
    seen: list[int] = []
    usual = garbage.collect_and_keep

    def look() -> None:
        usual()
        seen.append(Node.left)

    monkeypatch.setattr(garbage, "collect_and_keep", look)
    return seen


def test_what_is_in_use_is_not_looked_at_again_and_garbage_is_freed() -> None:
    Node()
    assert Node.left == 1
    kept = [object() for _ in range(10)]
    before = gc.get_freeze_count()
    collect_and_keep()
    assert Node.left == 0
    assert gc.get_freeze_count() > before
    assert not [each for each in gc.get_objects() if each is kept]


def test_old_objects_are_looked_at_seldom_and_not_never() -> None:
    collect_and_keep()
    young, middle, old = gc.get_threshold()
    assert 10 < old < 10_000
    assert young * middle * old < 2_000_000


async def test_it_waits_for_the_end_of_calls(looks: list[int]) -> None:
    idle = asyncio.Event()

    async def wait() -> None:
        await idle.wait()

    task = asyncio.create_task(collect_at_rest(wait))
    await asyncio.sleep(0.1)
    assert looks == []
    idle.set()
    async with asyncio.timeout(10):
        while not looks:  # noqa: ASYNC110 - nothing else tells
            await asyncio.sleep(0.01)
    task.cancel()


async def test_what_became_garbage_after_a_look_is_found_in_the_end(
    looks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(garbage, "_ALL_EVERY", 4)
    node: Node | None = Node()
    collect_and_keep()
    node = None
    assert node is None

    async def at_once() -> None:
        pass

    task = asyncio.create_task(collect_at_rest(at_once))
    async with asyncio.timeout(10):
        while len(looks) < 4:  # noqa: ASYNC110 - nothing else tells
            await asyncio.sleep(0.01)
    task.cancel()
    assert looks[:4] == [1, 1, 1, 0]


async def test_where_calls_never_end_it_does_not_wait_for_ever(
    looks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(garbage, "_PATIENCE_S", 0.05)
    task = asyncio.create_task(collect_at_rest(asyncio.Event().wait))
    async with asyncio.timeout(10):
        while len(looks) < 2:  # noqa: ASYNC110 - nothing else tells
            await asyncio.sleep(0.01)
    assert not task.done()
    task.cancel()
