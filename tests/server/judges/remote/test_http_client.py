"""Connections to a judge's server, on a thread of their own."""

import asyncio
import threading

import pytest

from gradewire_server.judges.remote import http_client
from gradewire_server.judges.remote.http_client import HttpClient
from gradewire_server.settings.judge import RemoteJudgeConfig


async def test_a_thread_that_a_reply_keeps_busy_does_not_keep_the_server_from_closing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_client, "_CLOSE_S", 0.1)
    client = HttpClient(RemoteJudgeConfig(url="http://127.0.0.1:9/v1"))
    ended = threading.Event()
    client._loop.call_soon_threadsafe(ended.wait)
    try:
        async with asyncio.timeout(30):
            await client.close()
        assert client._thread.is_alive()
    finally:
        ended.set()
    async with asyncio.timeout(30):
        await asyncio.to_thread(client._thread.join)


async def test_closing_ends_the_thread_and_closing_twice_is_allowed() -> None:
    client = HttpClient(RemoteJudgeConfig(url="http://127.0.0.1:9/v1"))
    for _ in range(2):
        async with asyncio.timeout(30):
            await client.close()
        assert not client._thread.is_alive()
