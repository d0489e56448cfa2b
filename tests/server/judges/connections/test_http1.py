"""Connections that a server closes between two requests, and replies in an odd form."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from gradewire_server.judges.connections.exchange import BodyError, NoReplyError
from gradewire_server.judges.connections.http1 import Http1Connections

OK = b"HTTP/1.1 200 OK\r\n"
GOOD = OK + b"content-length: 2\r\n\r\n{}"
CHUNKED = OK + b"transfer-encoding: chunked\r\n\r\n"


@asynccontextmanager
async def connected(answer: Callable[[int, int], bytes | None]) -> AsyncIterator[tuple[Http1Connections, list[int]]]:
    """Yield connections and the number of requests of each; `answer` gets a connection's and a request's number.

    An answer of b"" closes the connection, and None is no answer.
    """
    heard: list[int] = []
    writers: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        number = len(heard)
        heard.append(0)
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                heard[number] += 1
                content = answer(number, heard[number] - 1)
                if content is None:
                    continue
                if not content:
                    break
                writer.write(content)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    connections = Http1Connections(address, {}, 4, None)
    try:
        yield connections, heard
    finally:
        await connections.close()
        server.close()
        for writer in writers:
            writer.transport.abort()
        await asyncio.sleep(0)


async def ask(connections: Http1Connections) -> bytes:
    async with asyncio.timeout(30):
        return (await connections.exchange("GET", "http://x/", None, {})).content


async def test_a_request_on_a_kept_connection_that_ends_without_a_reply_is_sent_again_on_a_new_one() -> None:
    async with connected(lambda _, request: b"" if request else GOOD) as (connections, heard):
        assert [await ask(connections) for _ in range(4)] == [b"{}"] * 4
    assert heard == [2, 2, 2, 1]


async def test_a_request_is_repeated_only_once_and_not_on_a_new_connection() -> None:
    async with connected(lambda number, request: b"" if number or request else GOOD) as (connections, heard):
        assert await ask(connections) == b"{}"
        for _ in range(2):
            with pytest.raises(NoReplyError):
                await ask(connections)
    assert heard == [2, 1, 1]


async def test_a_reply_that_breaks_off_is_not_asked_for_again_here() -> None:
    cut = OK + b"content-length: 9\r\nconnection: close\r\n\r\n{}"

    async with connected(lambda _, request: (GOOD, cut, b"")[request]) as (connections, heard):
        assert await ask(connections) == b"{}"
        asked = asyncio.create_task(ask(connections))
        while heard != [2]:  # noqa: ASYNC110 - nothing announces it
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.05)
        connections._open.copy().pop().transport.abort()
        with pytest.raises(NoReplyError):
            await asked
    assert heard == [2]


async def test_closing_ends_a_request_on_a_kept_connection_without_a_new_one() -> None:
    waiting = asyncio.Event()

    def answer(_: int, request: int) -> bytes | None:
        if not request:
            return GOOD
        waiting.set()
        return None

    async with connected(answer) as (connections, heard):
        assert await ask(connections) == b"{}"
        asked = asyncio.create_task(ask(connections))
        await waiting.wait()
        await connections.close()
        with pytest.raises(NoReplyError):
            await asked
    assert heard == [2]


async def test_a_body_in_small_chunks_counts_without_their_lines() -> None:
    size = 200_000
    small = CHUNKED + b"1\r\nx\r\n" * size + b"0\r\n\r\n"
    large = CHUNKED + b"1\r\nx\r\n" * ((1 << 20) + 1) + b"0\r\n\r\n"
    padded = CHUNKED + b"1;" + b"a" * (9 << 20)
    async with connected(lambda number, _: (small, large, padded)[number]) as (connections, heard):
        assert await ask(connections) == b"x" * size
        await connections.close()
        for _ in range(2):
            with pytest.raises(BodyError, match="more than 1 MiB"):
                await ask(connections)
    assert heard == [1, 1, 1]


async def test_a_connection_with_a_second_reply_behind_the_first_is_not_used_again() -> None:
    async with connected(lambda _, __: GOOD + OK + b"content-length: 2\r\n\r\n[]") as (connections, heard):
        assert [await ask(connections) for _ in range(3)] == [b"{}"] * 3
    assert heard == [1, 1, 1]
