"""Fixtures that every part of the tests shares."""

from pathlib import Path

import pytest

from gradewire_models.repository import default_repository, load_built


@pytest.fixture(scope="session")
def minilm() -> Path:
    """Repository that holds the default encoder; `make test` builds it before the tests run."""
    repository = default_repository()
    load_built(repository, "all-MiniLM-L6-v2")
    return repository
