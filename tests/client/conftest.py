"""Fixtures of the client's tests."""

from collections.abc import Iterator

import pytest
from tests.client.small_server import SmallServer, run_small_server
from tests.support.syncs import syncs  # noqa: F401 - a fixture


@pytest.fixture
def small_server() -> Iterator[SmallServer]:
    """A real server that does what its script says."""
    with run_small_server() as server:
        yield server
