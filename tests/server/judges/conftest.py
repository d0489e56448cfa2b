"""What the tests of the judge service share."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.server.judges.scripted_service import ScriptedService
from tests.server.judges.served_host import ServedHost


@pytest.fixture
async def bench() -> AsyncIterator[ScriptedService]:
    """A service over scripted judges, closed at the end."""
    bench = ScriptedService()
    yield bench
    await bench.service.close()


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[ServedHost]:
    house = ServedHost(tmp_path)
    yield house
    await house.close()
