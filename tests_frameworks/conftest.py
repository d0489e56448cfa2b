"""What the tests of frameworks share; they run in .venv-frameworks (`make test-frameworks`)."""

import os
from collections.abc import Iterator

import pytest
from tests.client.small_server import SmallServer, run_small_server
from tests.support.processes import (  # noqa: F401 - hooks
    hear_ctrl_c,
    pytest_runtest_call,
    pytest_runtest_setup,
    pytest_runtest_teardown,
    pytest_sessionfinish,
    pytest_timeout_set_timer,
)
from tests.support.servers.server_process import ServerProcess

from gradewire_models.repository.built import default_repository, load_built

hear_ctrl_c()

# Trackers and hubs must not look for anything outside.
os.environ.update(WANDB_MODE="offline", WANDB_SILENT="true", HF_HUB_OFFLINE="1", MLFLOW_ALLOW_FILE_STORE="true")
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")


@pytest.fixture
def small_server() -> Iterator[SmallServer]:
    """A real gRPC server without models, that does what its script says."""
    with run_small_server() as server:
        yield server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A real server with the default encoder."""
    repository = default_repository()
    load_built(repository, "all-MiniLM-L6-v2")
    directory = tmp_path_factory.mktemp("server")
    settings = {"model_repository": repository, "judge_backend": "none", "wordnet_directory": directory / "nowhere"}
    with ServerProcess(directory, **settings) as process:
        yield process
