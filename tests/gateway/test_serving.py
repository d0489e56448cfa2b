"""Connections to a gateway: each head and each write has a clock, and hosts share them."""

import asyncio
import json
import os
import selectors
import socket
import sys
import time
from contextlib import ExitStack
from itertools import pairwise
from typing import Any

import pytest
from tests.support.servers.gateway import SCORE, connections, gateway_over
from tests.support.servers.wire import Wire, wire_server

from gradewire_gateway.serving import new_event_loop

GET = b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n"
SMALL = json.dumps({"items": [{"references": ["a"], "prediction": "a"}], "metrics": [{"exactMatch": {}}]}).encode()
HUGE = json.dumps({"items": [{"references": ["a"], "prediction": "a"}] * 1500, "metrics": [{"exactMatch": {}}] * 32})
"""A small request with a reply of 6 MB, which no kernel takes unread."""


async def test_a_later_head_has_a_clock_too(wire: Wire) -> None:
    async with gateway_over(f"127.0.0.1:{wire.port}", head_s=0.3) as gateway, connections(gateway.port) as connect:
        connection = await connect()
        for _ in range(2):
            await connection.send(GET + b"\r\n")
            assert await connection.status() == 200
            await asyncio.sleep(0.5)  # a connection that is kept and on which nothing is sent waits longer
        await connection.send(GET)
        assert await connection.status() == 0


async def test_half_a_head_that_came_with_a_whole_one_has_a_clock(wire: Wire) -> None:
    async with gateway_over(f"127.0.0.1:{wire.port}", head_s=0.3) as gateway, connections(gateway.port) as connect:
        connection = await connect()
        await connection.send(GET + b"\r\n" + GET)
        assert await connection.status() == 200
        assert await connection.status() == 0


async def test_the_rest_of_a_body_that_was_refused_has_a_clock(wire: Wire) -> None:
    async with gateway_over(f"127.0.0.1:{wire.port}", head_s=0.3) as gateway, connections(gateway.port) as connect:
        connection = await connect()
        await connection.post("/nope", b"{", length=1000)
        assert await connection.status() == 404

        async def trickle() -> None:
            while True:
                await connection.send(b" ")
                await asyncio.sleep(0.05)

        trickling = asyncio.create_task(trickle())
        assert await connection.status() == 0
        trickling.cancel()
        await asyncio.wait((trickling,))


@pytest.mark.parametrize("tail", [b"", b"connection: close\r\n"])
async def test_a_reply_that_is_not_read_ends_its_connection(wire: Wire, tail: bytes) -> None:
    async with gateway_over(f"127.0.0.1:{wire.port}", write_s=0.3) as gateway, connections(gateway.port) as connect:
        connection = await connect()
        await connection.post(SCORE, HUGE.encode(), *tail.decode().split("\r\n")[:-1])
        await gateway.until_in_flight(1)
        await gateway.until_in_flight(0)
        assert await connection.ended()


async def test_a_reply_that_is_read_slowly_is_not_cut_off(wire: Wire) -> None:
    async with gateway_over(f"127.0.0.1:{wire.port}", write_s=2) as gateway, connections(gateway.port) as connect:
        connection = await connect()
        await connection.post(SCORE, HUGE.encode())
        assert await connection.status() == 200


async def test_requests_on_a_kept_connection_are_answered_at_once(wire: Wire) -> None:
    """Not only when the caller's machine has said that it has the head of the reply, which takes it 40 ms."""
    async with gateway_over(f"127.0.0.1:{wire.port}") as gateway:

        async def taken_s(**headers: str) -> float:
            begun_s = time.perf_counter()
            for _ in range(20):
                assert (await gateway.post(SCORE, SMALL, **headers)).status_code == 200
            return time.perf_counter() - begun_s

        assert await taken_s() < 4 * await taken_s(connection="close")


async def test_of_many_new_connections_a_turn_of_the_event_loop_takes_in_a_few(wire: Wire) -> None:
    async with gateway_over(f"127.0.0.1:{wire.port}") as gateway:
        with ExitStack() as stack:
            for _ in range(200):  # none of them is turned away before the loop has its turn
                stack.enter_context(socket.create_connection(("127.0.0.1", gateway.port), timeout=5))
            counts = [_descriptors()]
            async with asyncio.timeout(30):
                while counts[-1] < counts[0] + 200:
                    await asyncio.sleep(0)
                    counts.append(_descriptors())
    assert max(after - before for before, after in pairwise(counts)) <= 8


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - numbers, not paths


async def test_a_host_leaves_connections_to_others(wire: Wire) -> None:
    async with (
        gateway_over(f"127.0.0.1:{wire.port}", max_connections=5, head_s=30) as gateway,
        connections(gateway.port) as connect,
    ):
        busy = [await connect() for _ in range(3)]
        for connection in busy:
            await connection.post(SCORE, b"{", length=2)
        await asyncio.sleep(0.1)  # it has seen the heads
        refused = await connect()
        assert await refused.ended()
        other = await connect("127.0.0.2")
        await other.send(GET + b"\r\n")
        assert await other.status() == 200


async def test_the_longest_idle_connection_of_a_host_makes_room(wire: Wire) -> None:
    async with (
        gateway_over(f"127.0.0.1:{wire.port}", max_connections=5, head_s=30) as gateway,
        connections(gateway.port) as connect,
    ):
        first, *others = [await connect() for _ in range(3)]
        for connection in (first, *others):
            await connection.send(GET)
        for _ in range(2):
            await others[0].send(b"\r\n" + GET)
            assert await others[0].status() == 200
        new = await connect()
        assert await first.ended()
        newer = await connect()
        assert await others[1].ended(), "the one that was answered is idle since then"
        for connection in (others[0], new, newer):
            await connection.send(b"\r\n" if connection is others[0] else GET + b"\r\n")
            assert await connection.status() == 200


async def test_an_idle_connection_with_an_accepted_token_makes_room_last() -> None:
    async with (
        wire_server(tokens=("right",)) as wire,
        gateway_over(f"127.0.0.1:{wire.port}", max_connections=5, head_s=30) as gateway,
        connections(gateway.port) as connect,
    ):
        known, *others = [await connect() for _ in range(3)]
        # The gateway learns that the server checks tokens, then that it accepts this one.
        for token, status in (("wrong", 401), ("right", 200), ("right", 200)):
            await known.post(SCORE, b"{}", f"authorization: Bearer {token}")
            assert await known.status() == status
        for connection in others:
            await connection.send(GET + b"\r\n")
            assert await connection.status() == 200
        for connection in others:
            await connect()
            assert await connection.ended()
        await known.post(SCORE, b"{}", "authorization: Bearer right")
        assert await known.status() == 200


async def test_threads_change_often_while_a_gateway_serves(wire: Wire) -> None:
    async with gateway_over(f"127.0.0.1:{wire.port}"):
        assert sys.getswitchinterval() == pytest.approx(0.0005)


async def test_one_turn_of_the_loop_has_few_events_and_every_one_gets_its_turn() -> None:
    loop: Any = new_event_loop()
    pairs = [socket.socketpair() for _ in range(100)]
    selector = loop._selector
    try:
        for reader, writer in pairs:
            writer.send(b"x")
            selector.register(reader, selectors.EVENT_READ)
        turns = [{key.fileobj for key, _ in selector.select(0)} for _ in range(8)]
        assert {len(turn) for turn in turns} == {32}
        assert set.union(*turns) == {reader for reader, _ in pairs}, "although none is ever read"
    finally:
        for reader, writer in pairs:
            selector.unregister(reader)
            reader.close()
            writer.close()
        loop.close()
