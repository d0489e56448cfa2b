"""Bulk work takes one turn in each round of the event loop, in order."""

import asyncio
from collections.abc import Callable

from tests.support.engines.hash_engine import HashEngine

from gradewire_server.domain.caller import Lane, Turn, take_turn
from gradewire_server.domain.items import Item
from gradewire_server.scoring import MetricRequest, Scorer
from gradewire_server.scoring.program_runner import LoopTurns


async def test_one_turn_a_round_in_order_whoever_goes_away() -> None:
    turns = LoopTurns()
    rounds = 0
    seen: list[tuple[int, int]] = []
    running = True

    async def count() -> None:
        nonlocal rounds
        while running:
            rounds += 1
            await asyncio.sleep(0)

    async def work(number: int) -> None:
        for _ in range(3):
            await turns.next()
            seen.append((rounds, number))

    counting = asyncio.create_task(count())
    tasks = [asyncio.create_task(work(number)) for number in range(5)]
    await asyncio.sleep(0)
    tasks[2].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    running = False
    await counting
    assert [number for _, number in seen] == [0, 1, 3, 4] * 3
    assert len({round_ for round_, _ in seen}) == len(seen), "no two of them in one round"


async def test_parts_of_bulk_work_that_are_let_in_together_begin_one_a_round(
    engine: HashEngine, request_for: Callable[..., MetricRequest]
) -> None:
    scorer, request = Scorer(engine.ports), request_for("exact_match")
    rounds, begun, running = 0, [], True

    async def count() -> None:
        nonlocal rounds
        while running:
            rounds += 1
            await asyncio.sleep(0)

    async def part(number: int) -> None:
        take_turn(Turn(Lane.BULK))
        item = Item(str(number), "", ("a cat",), "a cat")
        await scorer.score([item], [request], emit=lambda *_: begun.append(rounds))

    counting = asyncio.create_task(count())
    await asyncio.gather(*map(part, range(20)))
    running = False
    await counting
    assert len(begun) == 20
    assert len(set(begun)) == 20, "no two of them in one round"
