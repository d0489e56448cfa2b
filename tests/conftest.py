"""Fixtures that every part of the tests shares."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.servers.triton import TritonServer

from gradewire_models.repository.built import default_repository, load_built

# The oracle and a few tests load ONNX Runtime without gradewire; see gradewire_models.runtime.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")


@pytest.fixture(scope="session")
def minilm() -> Path:
    """Repository that holds the default encoder; `make test` builds it before the tests run."""
    repository = default_repository()
    load_built(repository, "all-MiniLM-L6-v2")
    return repository


@pytest.fixture(scope="session")
def triton(tmp_path_factory: pytest.TempPathFactory, minilm: Path) -> Iterator[TritonServer]:
    """The real Triton server over the default encoder, shared by all tests that only talk to it."""
    with TritonServer(tmp_path_factory.mktemp("triton"), minilm, models=("all-MiniLM-L6-v2",)) as server:
        yield server
