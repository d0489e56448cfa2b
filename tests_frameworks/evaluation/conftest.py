"""A real gradewire server out of `.venv`, rows to grade, and frameworks that send nothing home."""

import os
import socket
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests_frameworks.evaluation.rows import ITEMS
from tests_frameworks.evaluation.serving import serving

from gradewire import Client
from gradewire.integrations.evaluation import close_connections

# `make test-frameworks` runs what lies beside this folder in an environment of its own, without these frameworks.
_INSTALLED = find_spec("inspect_ai") is not None
collect_ignore_glob = [] if _INSTALLED else ["test_*.py"]

_CACHES = tempfile.TemporaryDirectory()
_OFFLINE = {
    "DEEPEVAL_DISABLE_DOTENV": "1",
    "DEEPEVAL_TELEMETRY_OPT_OUT": "YES",
    "DO_NOT_TRACK": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_EVALUATE_OFFLINE": "1",
    "HF_HOME": _CACHES.name,
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_OFFLINE": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "RAGAS_DO_NOT_TRACK": "true",
    "TRANSFORMERS_OFFLINE": "1",
    "WANDB_ERROR_REPORTING": "false",
    "WEAVE_DISABLED": "true",
}
if _INSTALLED:
    # Before any framework is imported: each reads its own then.
    os.environ.update(_OFFLINE)


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """HOST:PORT of a server in a process of its own, over the default encoder."""
    with serving(tmp_path_factory.mktemp("server")) as server:
        yield server.address
        close_connections()


@pytest.fixture
def nobody() -> str:
    """An address that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


@pytest.fixture
def expected(address: str) -> list[float | None]:
    """What the server itself says of the rows: a framework must show the same."""
    with Client(address) as client:
        return [item.scores["correctness"].score for item in client.score(ITEMS, "correctness")]


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """Frameworks write into the folder that they run in; scorers find the server by the variable."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRADEWIRE_SERVER", address)
