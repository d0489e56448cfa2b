import asyncio
import gc
from collections.abc import Iterator

import pytest

from gradewire_server import memory
from gradewire_server.memory import collect_and_keep, collect_when_idle


@pytest.fixture(autouse=True)
def as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(memory, "gc", gc)  # tests/conftest.py lets servers of tests thaw nothing
    gc.collect()
    yield
    gc.freeze()


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
    monkeypatch.setattr(memory, "_COLLECT_EVERY_S", 0.01)
    seen: list[int] = []
    usual = memory.collect_and_keep

    def look() -> None:
        usual()
        seen.append(Node.left)

    monkeypatch.setattr(memory, "collect_and_keep", look)
    return seen


async def at_once() -> None:
    pass


async def until(looks: list[int], count: int) -> None:
    async with asyncio.timeout(20):
        while len(looks) < count:  # noqa: ASYNC110 - nothing else tells
            await asyncio.sleep(0.01)


def test_garbage_is_freed_and_what_is_in_use_is_not_looked_at_again() -> None:
    Node()
    assert Node.left == 1
    kept = [[n] for n in range(10)]
    before = gc.get_freeze_count()
    collect_and_keep()
    assert Node.left == 0
    assert gc.get_freeze_count() > before
    assert not [each for each in gc.get_objects() if each is kept]


async def test_old_objects_are_looked_at_seldom_and_not_never_and_afterwards_as_before() -> None:
    before = gc.get_threshold()
    async with collect_when_idle(asyncio.Event().wait):
        collect_and_keep()
        assert gc.get_freeze_count()
        young, middle, old = gc.get_threshold()
        assert (young, middle) == before[:2]
        assert 10 < old < 1000
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0


async def test_it_waits_for_the_end_of_calls(looks: list[int]) -> None:
    idle = asyncio.Event()

    async def wait() -> None:
        await idle.wait()

    async with collect_when_idle(wait):
        await asyncio.sleep(0.1)
        assert looks == []
        idle.set()
        await until(looks, 1)


async def test_what_became_garbage_after_a_look_is_found_in_the_end(
    looks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "_COLLECT_ALL_EVERY_S", 0.1)
    node: Node | None = Node()
    collect_and_keep()
    node = None
    assert node is None
    async with collect_when_idle(at_once):
        await until(looks, 1)
        assert looks[0] == 1, "it is older than the last look"
        async with asyncio.timeout(20):
            while looks[-1]:  # noqa: ASYNC110 - nothing else tells
                await asyncio.sleep(0.01)
