"""Fixtures: the wheels, and an environment with that of gradewire."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.client.small_server import SmallServer, run_small_server
from tests.packaging.installed import ROOT, TRAIN, Installed, build_wheel


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of gradewire."""
    return build_wheel(ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def train_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of gradewire-train."""
    return build_wheel(TRAIN, tmp_path_factory.mktemp("train_wheel"))


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Installed:
    """A new environment with a plain install."""
    return Installed.plain(tmp_path_factory.mktemp("installed"), wheel)


@pytest.fixture
def small_server() -> Iterator[SmallServer]:
    """A real server, without models behind it."""
    with run_small_server() as server:
        yield server
