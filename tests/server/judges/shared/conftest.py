"""The house of judges that tests of this folder share."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.server.judges.shared.house import House


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    house = House(tmp_path)
    yield house
    await house.close()
