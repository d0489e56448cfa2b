"""A server over the hash engine: what concerns the wire is tested on a real socket."""

from collections.abc import AsyncIterator

import pytest
from tests.support.wire import Wire, wire_server


@pytest.fixture
async def wire() -> AsyncIterator[Wire]:
    async with wire_server() as running:
        yield running
