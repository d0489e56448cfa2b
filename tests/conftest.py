"""Fixtures that every part of the tests shares."""

import os
from pathlib import Path

import pytest

from gradewire_models.repository import default_repository, load_built

# The oracle and a few tests load ONNX Runtime without gradewire; see gradewire_models.runtime.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")


@pytest.fixture(scope="session")
def minilm() -> Path:
    """Repository that holds the default encoder; `make test` builds it before the tests run."""
    repository = default_repository()
    load_built(repository, "all-MiniLM-L6-v2")
    return repository
