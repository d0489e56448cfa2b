"""Bulk work takes one turn in each round of the event loop, in order."""

import asyncio

from gradewire_server.scoring.loop_turns import LoopTurns


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
