"""Within every other limit, nobody makes the server take more than `memory_limit`, and others are scored meanwhile."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from grpc import aio
from tests.hostile.memory_attacks import ATTACKS, SMILE
from tests.support.figures import TakeFigure
from tests.support.servers.server_process import FreshServerProcess, ServerProcess

from gradewire_proto.v1 import scoring_pb2, scoring_pb2_grpc, types_pb2

_LIMIT_MIB: Final = 1024
_STALL: Final = "<= 50"
_LATE: Final = "gradewire_event_loop_late_seconds"
_QUICK: Final = ("four long texts", "empty items", "empty metrics", "empty references")
pytestmark = [pytest.mark.alone, pytest.mark.timeout(300)]


@dataclass
class Others:
    """What became of somebody else's calls.

    Attributes:
        scored: Calls that gave a score.
        refused: Codes of those that did not.
        longest_s: The slowest.
    """

    scored: int = 0
    refused: list[str] = field(default_factory=list)
    longest_s: float = 0.0


@pytest.fixture
def server(tmp_path: Path, minilm: Path) -> Iterator[ServerProcess]:
    settings = {"memory_limit": f"{_LIMIT_MIB}MiB", "model_repository": minilm}
    with FreshServerProcess(tmp_path, **settings) as running:
        yield running


@asynccontextmanager
async def somebody_else(port: int) -> AsyncIterator[Others]:
    """Scores one small item after the other on a connection of its own."""
    others = Others()

    async def call() -> None:
        options = [("grpc.enable_retries", 0), ("grpc.use_local_subchannel_pool", 1)]
        async with aio.insecure_channel(f"127.0.0.1:{port}", options=options) as channel:
            stub: Any = scoring_pb2_grpc.ScoringStub(channel)
            while True:
                item = types_pb2.Item(references=["a cat"], prediction=f"cat number {others.scored}")
                started_s = time.perf_counter()
                try:
                    await stub.Score(scoring_pb2.ScoreRequest(items=[item], metrics=[SMILE]), timeout=60)
                    others.scored += 1
                except aio.AioRpcError as error:
                    others.refused.append(error.code().name)
                others.longest_s = max(others.longest_s, time.perf_counter() - started_s)
                await asyncio.sleep(0.05)

    calling = asyncio.create_task(call())
    try:
        yield others
        before = others.scored
        async with asyncio.timeout(60):
            while others.scored == before:  # noqa: ASYNC110 - somebody else scores on afterwards, whenever that is
                await asyncio.sleep(0.05)
    finally:
        calling.cancel()
        await asyncio.gather(calling, return_exceptions=True)


def peak_mib(server: ServerProcess) -> int:
    text = Path(f"/proc/{server.pid}/status").read_text()
    return next(int(line.split()[1]) >> 10 for line in text.splitlines() if line.startswith("VmHWM"))


def late_by_bound(server: ServerProcess) -> Mapping[float, float]:
    """How often the event loop was late by at most so many seconds."""
    samples = server.samples().items()
    return {float(name.split('"')[1]): count for name, count in samples if name.startswith(f"{_LATE}_bucket{{")}


def longest_late_s(before: Mapping[float, float], after: Mapping[float, float]) -> float:
    """The least bound that all delays since `before` keep to."""
    since = {bound: count - before[bound] for bound, count in after.items()}
    return min(bound for bound, count in since.items() if count == max(since.values()))


async def attacked(server: ServerProcess, names: tuple[str, ...], figure: TakeFigure, *, stall: str = "") -> None:
    """Runs attacks at the same time and asserts what must hold; `stall` is what is promised in ms, for the figure."""
    late = late_by_bound(server)
    async with somebody_else(server.port) as others:
        said = await asyncio.gather(*(ATTACKS[name](server.port) for name in names), return_exceptions=True)
    name = names[0] if len(names) == 1 else f"{len(names)} attacks at once"
    peak = figure(f"{name}, peak", peak_mib(server), "MiB", bound=f"< {_LIMIT_MIB}")
    figure(f"{name}, others' slowest call", others.longest_s * 1000, "ms")
    figure(
        f"{name}, longest stall of the event loop, at most",
        longest_late_s(late, late_by_bound(server)) * 1000,
        "ms",
        bound=stall,
    )
    assert peak.holds, said
    assert figure(f"{name}, others scored", others.scored, "calls", bound="> 0").holds, others
    assert not any(isinstance(each, asyncio.CancelledError | TimeoutError) for each in said)
    assert sum(len(str(line)) for line in server.log()) < 4 << 20


async def test_quick_attacks_stay_inside_the_limit(server: ServerProcess, figure: TakeFigure) -> None:
    for name in _QUICK:
        await attacked(server, (name,), figure)


@pytest.mark.hostile
@pytest.mark.parametrize("name", ATTACKS)
async def test_an_attack_stays_inside_the_limit(server: ServerProcess, name: str, figure: TakeFigure) -> None:
    await attacked(server, (name,), figure, stall=_STALL)


@pytest.mark.hostile
async def test_all_attacks_at_once_stay_inside_the_limit(server: ServerProcess, figure: TakeFigure) -> None:
    await attacked(server, tuple(ATTACKS), figure, stall=_STALL)
