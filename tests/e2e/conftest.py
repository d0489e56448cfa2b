"""A real server with the default encoder, shared by all tests that only talk to it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.servers.server_process import ServerProcess


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, minilm: Path) -> Iterator[ServerProcess]:
    """Running, with an empty store of its own, without a judge and WordNet, whatever is on this machine."""
    directory = tmp_path_factory.mktemp("server")
    settings = {"model_repository": minilm, "judge_backend": "none", "wordnet_directory": directory / "nowhere"}
    with ServerProcess(directory, **settings) as process:
        yield process
