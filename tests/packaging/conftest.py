"""Fixtures: the wheel, and an environment with it."""

from pathlib import Path

import pytest
from tests.packaging.installed import Installed, build_wheel


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Installed:
    """A new environment with a plain install."""
    return Installed.plain(tmp_path_factory.mktemp("installed"), wheel)
