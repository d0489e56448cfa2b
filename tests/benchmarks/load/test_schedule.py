"""Arrivals at equal intervals."""

import asyncio

from benchmarks.load.schedule import even_times


async def offsets(calls_per_s: float, duration_s: float) -> list[float]:
    times = list(even_times(calls_per_s, duration_s))
    return [round(each - times[0], 6) for each in times]


def test_arrivals_are_even_and_at_least_one() -> None:
    assert asyncio.run(offsets(4.0, 2.0)) == [0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75]
    assert asyncio.run(offsets(0.01, 1.0)) == [0]


def test_the_first_call_is_due_now() -> None:
    async def first_after_s() -> float:
        began_s = asyncio.get_running_loop().time()
        return next(even_times(1.0, 1.0)) - began_s

    assert 0 <= asyncio.run(first_after_s()) < 1
