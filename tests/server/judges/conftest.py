"""What the tests of the judge service share."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.server.judges.bench import Bench
from tests.server.judges.house import House


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    """A service over scripted judges, closed at the end."""
    bench = Bench()
    yield bench
    await bench.service.close()


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    house = House(tmp_path)
    yield house
    await house.close()
