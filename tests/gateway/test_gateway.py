"""The law of what callers may take of a gateway: none keeps another one out, and what ends is given back."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from google.protobuf import json_format
from tests.gateway.test_serving import HUGE
from tests.support.servers.gateway import SCORE, SCORE_STREAM, RunningGateway, connections, gateway_over
from tests.support.servers.wire import EXACT, Wire, item, request, wire_server

ASKED = json.dumps(json_format.MessageToDict(request(item(), metrics=(EXACT,)))).encode()
HUGE_LINES = "\n".join(
    json.dumps(line)
    for line in (
        {"config": {"metrics": json.loads(HUGE)["metrics"]}},
        {"items": {"items": json.loads(HUGE)["items"]}},
    )
).encode()
RIGHT = "authorization: Bearer right"


@pytest.fixture
async def guarded() -> AsyncIterator[RunningGateway]:
    """A gateway that takes 8 requests, in front of a server that asks for a token."""
    async with (
        wire_server(tokens=("right", "good")) as wire,
        gateway_over(f"127.0.0.1:{wire.port}", max_requests=8) as gateway,
    ):
        yield gateway


@asynccontextmanager
async def half_bodies(gateway: RunningGateway, *headers: str) -> AsyncIterator[int]:
    """Sends eight requests of which a byte is missing, with numbered headers; gives how many are refused."""
    refused = 0
    async with connections(gateway.port) as connect:
        for number in range(8):
            before = await gateway.in_flight()
            connection = await connect()
            await connection.post(SCORE, b"{", *(header.format(number) for header in headers), length=2)
            reply = asyncio.create_task(connection.status())
            while not reply.done() and await gateway.in_flight() == before:
                await asyncio.wait((reply,), timeout=0.01)
            await asyncio.wait((reply,), timeout=0.1)  # one that is refused is in flight for a moment too
            refused += reply.done()
            reply.cancel()
        yield refused


async def score(port: int, *headers: str, host: str = "127.0.0.1") -> int:
    async with connections(port) as connect:
        connection = await connect(host)
        await connection.post(SCORE, ASKED, *headers)
        return await connection.status()


async def test_half_a_body_without_a_token_keeps_nobody_else_out(guarded: RunningGateway) -> None:
    async with half_bodies(guarded) as refused:
        assert refused == 4
        assert await score(guarded.port) == 429
        assert await score(guarded.port, RIGHT) == 200
        assert await score(guarded.port, host="127.0.0.2") == 401, "it has a place, and the server refuses it"


async def test_tokens_that_are_made_up_keep_out_nobody_whose_token_is_known(guarded: RunningGateway) -> None:
    assert await score(guarded.port, "authorization: Bearer wrong") == 401
    assert await score(guarded.port, RIGHT) == 200
    async with half_bodies(guarded, "authorization: Bearer made-up-{}") as refused:
        assert refused == 4
        assert await score(guarded.port, "authorization: Bearer good") == 429, "nothing tells it from those"
        assert await score(guarded.port, RIGHT) == 200
        password = base64.b64encode(b"any:right").decode()
        assert await score(guarded.port, f"authorization: Basic {password}") == 401, "it has the place of its token"


async def test_a_token_that_a_server_takes_which_asks_for_none_is_no_caller(wire: Wire) -> None:
    async with gateway_over(f"127.0.0.1:{wire.port}", max_requests=8) as gateway:
        for number in range(8):
            assert await score(gateway.port, f"authorization: Bearer {number}") == 200
        async with half_bodies(gateway, "authorization: Bearer {}") as refused:
            assert refused == 4
            assert await score(gateway.port, host="127.0.0.2") == 200


async def test_a_stream_that_nobody_reads_gives_its_place_back() -> None:
    async with (
        wire_server() as wire,
        gateway_over(f"127.0.0.1:{wire.port}", write_s=1) as gateway,
        connections(gateway.port) as connect,
    ):
        connection = await connect()
        await connection.post(SCORE_STREAM, HUGE_LINES)
        await gateway.until_in_flight(1)
        await gateway.until_in_flight(0)
        await asyncio.wait_for(wire.calls.idle(), 10)
        assert await connection.ended()


async def test_half_a_line_ends_its_stream(wire: Wire) -> None:
    async with gateway_over(f"127.0.0.1:{wire.port}", body_s=0.3) as gateway, connections(gateway.port) as connect:
        connection = await connect()
        await connection.post(SCORE_STREAM, b"{", length=2)
        assert await connection.status() == 408
        await asyncio.wait_for(wire.calls.idle(), 10)


async def test_replies_that_nobody_reads_are_counted(wire: Wire) -> None:
    async with (
        gateway_over(f"127.0.0.1:{wire.port}", max_bytes_in_flight=26_000_000) as gateway,
        connections(gateway.port) as connect,
    ):
        unread = [await connect() for _ in range(4)]
        for connection in unread:
            await connection.post(SCORE, HUGE.encode())
            await connection.begun()
        await gateway.until_in_flight(2)  # each holds 6 MB of the 13 that one caller may hold
        assert await score(gateway.port) == 200
        assert await score(gateway.port, host="127.0.0.2") == 200
        reply = await gateway.post(SCORE, HUGE)
        assert (reply.status_code, reply.json()["code"]) == (429, "resource_exhausted")
