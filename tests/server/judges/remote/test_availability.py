"""Whatever a probe meets, the next one follows."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tests.server.judges.remote.remote import eventually

from gradewire_server.concurrency.backoff import Backoff
from gradewire_server.judges.remote.availability import ServerAvailability
from gradewire_server.judges.remote.errors import unreachable
from gradewire_server.judges.remote.http_client import HttpClient
from gradewire_server.settings.judge import RemoteJudgeConfig


async def recovers(probe: Callable[[], Awaitable[None]]) -> None:
    availability = ServerAvailability("m", probe, backoff=Backoff(base_s=0.01, cap_s=0.01), probe_timeout_s=0.05)
    try:
        availability.failed(unreachable("http://h/v1"), sent_s=0.0)
        assert availability.trouble
        await eventually(lambda: not availability.trouble)
        assert availability.refusal() is None
    finally:
        await availability.close()


async def test_a_server_that_takes_a_probe_and_is_silent_is_probed_again() -> None:
    connections: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        if len(connections) > 1:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    client = HttpClient(RemoteJudgeConfig(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", "m"))

    async def probe() -> None:
        assert (await client.get("models")).status == 200

    try:
        await recovers(probe)
        assert len(connections) == 2
    finally:
        await client.close()
        for writer in connections:
            writer.close()
        server.close()


@pytest.mark.parametrize("error", [unreachable("http://h/v1"), RuntimeError("a user's text"), OSError()])
async def test_no_error_of_a_probe_ends_the_watch(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    errors = [error, error]

    async def probe() -> None:
        if errors:
            raise errors.pop()

    await recovers(probe)
    assert errors == []
    assert "a user's text" not in caplog.text
