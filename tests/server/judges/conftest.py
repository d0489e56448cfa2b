"""What the tests of the judge service share."""

from collections.abc import AsyncIterator

import pytest
from tests.server.judges.bench import Bench


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    """A service over scripted judges, closed at the end."""
    bench = Bench()
    yield bench
    await bench.service.close()
