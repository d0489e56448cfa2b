"""Under overload a server scores what it can, refuses the rest at once with a time to come back, and recovers."""

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
import pytest
from benchmarks.load.overload import Generator, Tally, Texts
from tests.support.figures import Figure
from tests.support.servers.server_process import ServerProcess

import gradewire
from gradewire_proto.v1 import scoring_pb2

_IN_FLIGHT: Final = 24
_DEADLINE_S: Final = 5.0
_CONNECTIONS: Final = 8
pytestmark = [pytest.mark.alone, pytest.mark.timeout(300)]


@pytest.fixture
def server(tmp_path: Path, minilm: Path) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path, model_repository=minilm, log_request_share=0, http=False) as running:
        yield running


def milliseconds(seconds: list[float]) -> str:
    return " / ".join(f"{np.percentile(seconds, q) * 1e3:.0f}" for q in (50, 99)) if seconds else "-"


async def flooded(server: ServerProcess, figure: Figure, *, multiple: float, seconds: float) -> Tally:
    """Offers a multiple of what the server gets done, and asserts that each call has a right end."""
    generator = await Generator.open(server.address, _CONNECTIONS, _DEADLINE_S)
    try:
        await generator.closed_loop(2.0, _IN_FLIGHT)
        usual = await generator.closed_loop(1.0, 1)
        closed_s = max(3.0, seconds / 6)
        capacity = len((await generator.closed_loop(closed_s, _IN_FLIGHT)).scored_s) / closed_s
        tally = await generator.open_loop(seconds, multiple * capacity)
        recovery_s = await generator.recovery_s(float(np.median(usual.scored_s)))
    finally:
        generator.close()
    figure(
        f"{multiple:g} x {capacity:.0f} items/s for {seconds:.0f} s: {len(tally.scored_s) / seconds / capacity:.0%} of "
        f"capacity scored, p50 / p99 {milliseconds(tally.scored_s)} ms, refused after {milliseconds(tally.refused_s)} "
        f"ms; {dict(tally.ends)}; recovered after {recovery_s:.2f} s; load {os.getloadavg()[0]:.1f}"
    )
    assert tally.hinted == len(tally.refused_s), "each refusal says when to come back"
    assert tally.ends.keys() <= {"STATUS_OK", "RESOURCE_EXHAUSTED", "CANCELLED"}
    assert sum(tally.ends.values()) == tally.sent
    assert len(tally.scored_s) > capacity
    assert recovery_s < float("inf")
    return tally


async def test_twice_the_capacity_is_scored_or_refused(server: ServerProcess, figure: Figure) -> None:
    tally = await flooded(server, figure, multiple=2, seconds=6)
    assert tally.ends["RESOURCE_EXHAUSTED"] > 0
    assert tally.ends["CANCELLED"] == 0


@pytest.mark.hostile
@pytest.mark.parametrize("multiple", [2, 5])
async def test_a_minute_of_overload_is_scored_or_refused(
    server: ServerProcess, figure: Figure, multiple: float
) -> None:
    tally = await flooded(server, figure, multiple=multiple, seconds=60)
    # What gRPC drops unread has no hint; it may while the event loop gets no time at all.
    assert tally.ends["CANCELLED"] < 0.05 * tally.sent


@pytest.mark.hostile
async def test_clients_that_try_again_outlast_a_burst(server: ServerProcess, figure: Figure) -> None:
    generator = await Generator.open(server.address, _CONNECTIONS, _DEADLINE_S)
    await generator.closed_loop(2.0, _IN_FLIGHT)
    capacity = len((await generator.closed_loop(5.0, _IN_FLIGHT)).scored_s) / 5
    generator.close()
    texts, calls = Texts(seed=7), []
    began_s = time.monotonic()
    async with gradewire.AsyncClient(server.address, deadline_s=120) as client:

        async def score(data: bytes) -> bool:
            item = scoring_pb2.ScoreRequest.FromString(data).items[0]
            row = {"question": item.question, "references": list(item.references), "prediction": item.prediction}
            try:
                report = await client.score([row])
            except gradewire.GradewireError:
                return False
            return report[0].scores["smile"].status is gradewire.Status.OK

        while (ahead_s := time.monotonic() - began_s) < 10:
            while len(calls) < 2 * capacity * ahead_s:
                calls.append(asyncio.create_task(score(texts.next())))
            await asyncio.sleep(0.005)
        scored = sum(await asyncio.gather(*calls))
    took_s = time.monotonic() - began_s
    figure(
        f"a burst of 10 s at 2 x {capacity:.0f} items/s, with retries: {scored} of {len(calls)} scored, the last after "
        f"{took_s:.0f} s"
    )
    assert scored >= 0.99 * len(calls)
