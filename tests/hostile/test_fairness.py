"""Beside bulk streams nobody's single calls are refused, whatever the streams' number, and everything is right."""

import asyncio
import time
from collections.abc import Sequence
from typing import Final

import numpy as np
import pytest
from benchmarks.load.frames import FramedConnection
from benchmarks.load.generator import SCORE, Tally
from tests.hostile.bulk import Stream, bulk
from tests.hostile.flood import CheckedGenerator, scored
from tests.support.figures import TakeFigure
from tests.support.servers.server_process import ServerProcess

_CALLS_PER_S: Final = 10
_DEADLINE_S: Final = 30.0
_COMPARED: Final = 20
"""Scores of each stream that are asked for once more."""
pytestmark = [pytest.mark.alone, pytest.mark.timeout(300)]


async def wrong(server: ServerProcess, streams: Sequence[Stream]) -> int:
    """Scores of streams that differ by more than 2e-4 from what a quiet server gives."""
    pairs = [
        (each.sent[number], each.scores[number]) for each in streams for number in sorted(each.scores)[-_COMPARED:]
    ]
    found = await scored(server.address, [item for item, _ in pairs])
    return sum(abs(score - again) > 2e-4 for (_, score), again in zip(pairs, found, strict=True))


async def beside(server: ServerProcess, figure: TakeFigure, counts: Sequence[int], duration_s: float) -> None:
    """Makes calls alone and beside so many streams, and asserts what must hold."""
    generator = await CheckedGenerator.open(server.address, connections=1, deadline_s=_DEADLINE_S)
    await generator.closed_loop(1.0, 8)
    latencies("0 streams", await generator.open_loop(duration_s, _CALLS_PER_S), figure)
    for count in counts:
        name = f"{count} stream{'s' * (count > 1)}"
        with bulk(server.address, count) as streams:
            while streams.scored < count:  # noqa: ASYNC110 - it is in another process
                await asyncio.sleep(0.05)
            before, began_s = streams.scored, time.monotonic()
            tally = await generator.open_loop(duration_s, _CALLS_PER_S)
            between, between_s = streams.scored, time.monotonic()
            await asyncio.sleep(duration_s)
            alone = (streams.scored - between) / (time.monotonic() - between_s)
        latencies(name, tally, figure)
        share = (between - before) / (between_s - began_s) / alone
        assert figure(f"{name}: bulk throughput beside calls, of alone", share * 100, "%", bound=">= 90").value > 30
        unscored = tally.sent - tally.ends["STATUS_OK"]
        assert figure(f"{name}: calls that were not scored, of {tally.sent}", unscored, bound="== 0").holds, tally.ends
        sent = sum(len(each.sent) for each in streams.streams)
        ok = sum(each.ends["STATUS_OK"] for each in streams.streams)
        ends = [dict(each.ends) for each in streams.streams]
        assert figure(f"{name}: items of streams without a score, of {sent}", sent - ok, bound="== 0").holds, ends
        least = min(len(each.scores) for each in streams.streams)
        assert figure(f"{name}: items scored of the slowest stream", least, bound="> 0").holds
        differing = await wrong(server, streams.streams) + await generator.wrong(server.address)
        assert figure(f"{name}: scores that a quiet server gives otherwise", differing, bound="== 0").holds
        assert figure(f"{name}: replies about another call's item", generator.foreign, bound="== 0").holds
    generator.close()


def latencies(name: str, tally: Tally, figure: TakeFigure) -> None:
    for percent in (50, 99):
        figure(f"{name}: p{percent} of calls", float(np.percentile(tally.scored_s, percent)) * 1e3, "ms")


@pytest.mark.hostile  # takes three quarters of a minute
async def test_calls_beside_streams_are_scored(server: ServerProcess, figure: TakeFigure) -> None:
    await beside(server, figure, (1, 33), 2.0)


@pytest.mark.hostile
async def test_calls_beside_streams_are_scored_for_long(server: ServerProcess, figure: TakeFigure) -> None:
    await beside(server, figure, (1, 8, 33), 20.0)


@pytest.mark.hostile
async def test_a_caller_within_its_share_is_scored_beside_one_that_floods(
    server: ServerProcess, figure: TakeFigure
) -> None:
    """Without tokens callers are told apart by their hosts."""
    greedy = await CheckedGenerator.open(server.address, connections=8, deadline_s=_DEADLINE_S)
    modest = CheckedGenerator([await FramedConnection.open(SCORE, server.address, _DEADLINE_S, "127.0.0.2")], seed=1)
    await greedy.closed_loop(2.0, 24)
    before = await greedy.closed_loop(2.0, 24)
    async with asyncio.TaskGroup() as both:
        flood = both.create_task(greedy.open_loop(10.0, 3 * len(before.scored_s) / 2.0))
        calls = both.create_task(modest.open_loop(10.0, _CALLS_PER_S))
    tally = calls.result()
    latencies("beside a flood of another caller", tally, figure)
    assert flood.result().ends["RESOURCE_EXHAUSTED"] > 0
    unscored = tally.sent - tally.ends["STATUS_OK"]
    name = f"beside a flood of another caller: calls that were not scored, of {tally.sent}"
    assert figure(name, unscored, bound="== 0").holds, tally.ends
    greedy.close()
    modest.close()
