"""How a server process watches the judge host."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest

from gradewire_server.judges.shared.client import HostClient
from gradewire_server.judges.shared.messages import SERVICE, STATE, HostState


async def test_a_message_that_cannot_be_read_does_not_end_the_watching(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    messages = [b"not a state", STATE.encode(HostState({}, {}))]

    async def watch(_: bytes, __: object) -> AsyncIterator[bytes]:
        for message in messages:
            yield message
        await asyncio.Event().wait()

    server = grpc.aio.server()
    handlers = {"Watch": grpc.unary_stream_rpc_method_handler(watch)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    address = f"unix:{tmp_path / 'judges'}"
    server.add_insecure_port(address)
    await server.start()
    found = asyncio.Event()
    client = HostClient(address, found.set)
    try:
        async with asyncio.timeout(20):
            await found.wait()
        assert client.state == HostState({}, {})
        assert "Exception deserializing message" in caplog.text
    finally:
        await client.close()
        await server.stop(None)
