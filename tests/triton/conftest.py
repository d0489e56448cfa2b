"""The real server over tiny models."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.models.conftest import bert, packages, tiny_repository
from tests.support.servers.triton import TritonServer

__all__ = ["bert", "packages", "tiny_repository", "tiny_triton"]  # fixtures, also those of the models' own tests


@pytest.fixture(scope="module")
def tiny_triton(tmp_path_factory: pytest.TempPathFactory, tiny_repository: Path) -> Iterator[TritonServer]:
    with TritonServer(tmp_path_factory.mktemp("triton"), tiny_repository) as server:
        yield server
