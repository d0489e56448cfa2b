"""Calls beside bulk streams are answered, none is refused, and the streams go on."""

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from benchmarks.load.fairness import streaming
from benchmarks.load.overload import Generator
from tests.support.figures import Figure
from tests.support.servers.server_process import ServerProcess

pytestmark = [pytest.mark.alone, pytest.mark.timeout(300)]


@pytest.fixture
def server(tmp_path: Path, minilm: Path) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path, model_repository=minilm, log_request_share=0, http=False) as running:
        yield running


async def beside(server: ServerProcess, figure: Figure, *, streams: int, seconds: float, calls_per_s: float) -> None:
    """Single calls beside streams, and asserts that all are scored."""
    generator = await Generator.open(server.address, 1, 20.0)
    await generator.closed_loop(2.0, 8)
    alone = await generator.open_loop(seconds, calls_per_s)
    with streaming(server.address, streams) as scored:
        give_up_s = time.monotonic() + 60
        while not scored.value and time.monotonic() < give_up_s:  # noqa: ASYNC110 - another process counts
            await asyncio.sleep(0.1)
        before = scored.value
        tally = await generator.open_loop(seconds, calls_per_s)
        bulk = scored.value - before
        await asyncio.sleep(seconds)
        bulk_alone = scored.value - before - bulk
    generator.close()
    p99 = [float(np.percentile(each.scored_s, 99)) for each in (alone, tally)]
    figure(
        f"beside {streams} streams: calls p50 {np.median(tally.scored_s) * 1e3:.0f} ms, p99 {p99[1] * 1e3:.0f} ms, "
        f"{p99[1] / p99[0]:.1f} x alone; streams {bulk / max(1, bulk_alone):.2f} x as without calls; "
        f"load {os.getloadavg()[0]:.1f}"
    )
    assert tally.ends == {"STATUS_OK": tally.sent}
    assert bulk > 0


async def test_calls_beside_33_streams_are_all_scored(server: ServerProcess, figure: Figure) -> None:
    await beside(server, figure, streams=33, seconds=3, calls_per_s=10)


@pytest.mark.hostile
@pytest.mark.parametrize("streams", [1, 8, 33])
async def test_calls_beside_streams_are_all_scored(server: ServerProcess, figure: Figure, streams: int) -> None:
    await beside(server, figure, streams=streams, seconds=20, calls_per_s=10)
