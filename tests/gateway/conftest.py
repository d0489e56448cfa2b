"""A gateway in front of a server over the hash engine, both on real sockets in the test's event loop."""

from collections.abc import AsyncIterator

import pytest
from tests.support.servers.gateway import RunningGateway, gateway_over
from tests.support.servers.wire import Wire, wire_server


@pytest.fixture
async def wire() -> AsyncIterator[Wire]:
    async with wire_server() as running:
        yield running


@pytest.fixture
async def gateway(wire: Wire) -> AsyncIterator[RunningGateway]:
    async with gateway_over(f"127.0.0.1:{wire.port}", max_body_bytes=100_000) as running:
        yield running
