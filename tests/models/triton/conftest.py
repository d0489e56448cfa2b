"""The real server over tiny models."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.triton import TritonServer


@pytest.fixture(scope="module")
def tiny_triton(tmp_path_factory: pytest.TempPathFactory, tiny_repository: Path) -> Iterator[TritonServer]:
    with TritonServer(tmp_path_factory.mktemp("triton"), tiny_repository) as server:
        yield server
