"""Nobody who holds connections, requests or replies of the HTTP gateway keeps others out, and all of it comes back."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import httpx2
import pytest
from tests.support.figures import TakeFigure
from tests.support.servers.gateway import LINES, SCORE, SCORE_STREAM, RawConnection, RunningGateway, connections
from tests.support.servers.server_process import FreshServerProcess, ServerProcess

_ITEM: Final = {"references": ["a"], "prediction": "a"}
_METRICS: Final = [{"exactMatch": {}}] * 32
_ASKED: Final = json.dumps({"items": [_ITEM], "metrics": _METRICS[:1]}).encode()
_HUGE_ITEMS: Final = [_ITEM] * 2200
# Of 100 kB, with replies of 9 MB.
_HUGE: Final = json.dumps({"items": _HUGE_ITEMS, "metrics": _METRICS}).encode()
_HUGE_LINES: Final = b"\n".join(
    json.dumps(line).encode() for line in ({"config": {"metrics": _METRICS}}, {"items": {"items": _HUGE_ITEMS}})
)
_ATTACKER: Final = "authorization: Bearer attacker"
_OTHER: Final = "authorization: Bearer other"
_OTHER_HOST: Final = "127.0.0.2"
_CALLS: Final = 20
_MIB: Final = 1 << 20


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[RunningGateway]:
    async with _serving(tmp_path) as running:
        yield running


@asynccontextmanager
async def _serving(directory: Path, kind: type[ServerProcess] = ServerProcess) -> AsyncIterator[RunningGateway]:
    settings = {"http_api_port": 0, "auth_tokens": "attacker,other", "disk_directory": ""}
    with kind(directory, **settings) as server:
        async with httpx2.AsyncClient(base_url=server.api, timeout=60, trust_env=False) as client:
            await client.get("/healthz")  # the gateway comes up after the server
            yield RunningGateway(server.api_port, client)


@asynccontextmanager
async def many(port: int, count: int) -> AsyncIterator[list[RawConnection]]:
    """Opens so many connections; some may be closed by the gateway."""
    async with connections(port) as connect:
        yield [await connect() for _ in range(count)]


async def unserved(port: int, *headers: str, host: str = "127.0.0.1") -> int:
    """Calls of somebody else that are not scored, of twenty."""
    failed = 0
    for _ in range(_CALLS):
        async with connections(port) as connect:
            connection = await connect(host)
            await connection.post(SCORE, _ASKED, *headers)
            failed += await connection.status() != 200
    return failed


async def test_half_bodies_keep_nobody_out(gateway: RunningGateway, figure: TakeFigure) -> None:
    async with many(gateway.port, 128) as attackers:
        for connection in attackers:
            await connection.post(SCORE, b"{", length=2)
        refused = await unserved(gateway.port, _OTHER)
        assert figure(f"128 half bodies: calls with a token not scored, of {_CALLS}", refused, bound="== 0").holds
        refused = await unserved(gateway.port, _OTHER, host=_OTHER_HOST)
        assert figure(f"128 half bodies: calls of another host not scored, of {_CALLS}", refused, bound="== 0").holds


async def test_half_bodies_with_many_tokens_keep_no_known_token_out(
    gateway: RunningGateway, figure: TakeFigure
) -> None:
    assert await unserved(gateway.port, _OTHER) == 0
    async with many(gateway.port, 128) as attackers:
        for number, connection in enumerate(attackers):
            await connection.post(SCORE, b"{", f"authorization: Bearer made-up-{number}", length=2)
        refused = await unserved(gateway.port, _OTHER)
        assert figure(f"128 made-up tokens: calls with a token not scored, of {_CALLS}", refused, bound="== 0").holds


@pytest.mark.hostile
@pytest.mark.timeout(300)
async def test_half_heads_keep_no_host_out_and_are_closed(gateway: RunningGateway, figure: TakeFigure) -> None:
    async with many(gateway.port, 1000) as attackers:
        for connection in attackers:
            await connection.send_if_open(b"GET /nope HTTP/1.1\r\nhost: localhost\r\n\r\nGET /nope HTTP/1.1\r\n")
        refused = await unserved(gateway.port, _OTHER, host=_OTHER_HOST)
        assert figure(f"1000 half heads: calls of another host not scored, of {_CALLS}", refused, bound="== 0").holds
        ended = await asyncio.wait_for(asyncio.gather(*(each.ended() for each in attackers)), 60)
        assert figure("1000 half heads: connections that stay open", 1000 - sum(ended), bound="== 0").holds
    assert await unserved(gateway.port, _OTHER) == 0


@pytest.mark.hostile
@pytest.mark.timeout(400)
async def test_streams_that_nobody_reads_give_their_places_back(gateway: RunningGateway, figure: TakeFigure) -> None:
    async with connections(gateway.port) as connect:
        await _ask_and_read_nothing(connect, 128, SCORE_STREAM, _HUGE_LINES)
        refused = await unserved(gateway.port, _OTHER)
        assert figure(f"128 unread streams: calls with a token not scored, of {_CALLS}", refused, bound="== 0").holds
        await gateway.until_in_flight(0, within_s=180)
        assert figure("128 unread streams: places that are held in the end", await gateway.in_flight()).value == 0


@pytest.mark.hostile
@pytest.mark.timeout(400)
async def test_replies_that_nobody_reads_take_bounded_memory(tmp_path: Path, figure: TakeFigure) -> None:
    async with _serving(tmp_path, FreshServerProcess) as gateway, connections(gateway.port) as connect:
        await _ask_and_read_nothing(connect, 60, SCORE, _HUGE)
        refused = await unserved(gateway.port, _OTHER)
        assert figure(f"60 unread replies: calls with a token not scored, of {_CALLS}", refused, bound="== 0").holds
        peak = _peak_mib(tmp_path)
        assert figure("60 unread replies of 9 MB: peak of the gateway", peak, "MiB", bound="<= 384").holds
        await gateway.until_in_flight(0, within_s=180)
        reply = await gateway.client.post(
            SCORE_STREAM, content=_HUGE_LINES, headers=LINES | {"authorization": "Bearer other"}
        )
        assert len(reply.content) > 9_000_000, "and there is memory for others again"


async def _ask_and_read_nothing(
    connect: Callable[..., Awaitable[RawConnection]], count: int, path: str, body: bytes
) -> None:
    """Sends one request after the other, each on a connection of its own, and reads one byte of each reply."""
    for _ in range(count):
        connection = await connect()
        await connection.post(path, body, _ATTACKER)
        await connection.begun()


def _peak_mib(directory: Path) -> int:
    log = (directory / "server.log").read_text()
    pid = log.partition("the HTTP gateway runs as process ")[2].partition('"')[0]
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024 // _MIB
