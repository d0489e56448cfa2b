"""A real server with its HTTP gateway, which most tests of this folder share; callers need a token."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.servers.server_process import ServerProcess

TOKENS = (
    '[own]\ntoken = "right"\nscopes = ["score", "prepare", "judge", "admin"]\n'
    '[narrow]\ntoken = "narrow"\nscopes = ["prepare"]\n'
)


@pytest.fixture(scope="session")
def http_server(tmp_path_factory: pytest.TempPathFactory, minilm: Path) -> Iterator[ServerProcess]:
    """Its tokens file may be rewritten while it runs, by tests that put it back."""
    directory = tmp_path_factory.mktemp("http")
    (directory / "tokens.toml").write_text(TOKENS)
    settings = {
        "model_repository": minilm,
        "judge_backend": "none",
        "wordnet_directory": directory / "nowhere",
        "http_api_port": 0,
        "auth_tokens_file": directory / "tokens.toml",
    }
    with ServerProcess(directory, **settings) as process:
        yield process
