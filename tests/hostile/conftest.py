"""The server that is attacked."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.servers.server_process import ServerProcess


@pytest.fixture
def server(tmp_path: Path, minilm: Path) -> Iterator[ServerProcess]:
    """Without a disk cache, so that what is sent again is not free."""
    with ServerProcess(tmp_path, model_repository=minilm, disk_directory="") as running:
        yield running
