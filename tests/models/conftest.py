"""Tiny packages and a repository built from them."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.models.tiny_models import Package, make_package

from gradewire_models.build.install import build_model


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Package]:
    """Both architectures; the second one is a split archive."""
    root = tmp_path_factory.mktemp("packages")
    return {
        "bert": make_package(root / "bert", "bert"),
        "mpnet": make_package(root / "mpnet", "mpnet", parts=3),
    }


@pytest.fixture(scope="session")
def bert(packages: dict[str, Package]) -> Package:
    return packages["bert"]


@pytest.fixture(scope="session")
def tiny_repository(packages: dict[str, Package], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both tiny models, built; not to be changed."""
    repository = tmp_path_factory.mktemp("repository")
    for package in packages.values():
        build_model(package.model, repository, wheels=package.wheels)
    return repository


@pytest.fixture
def fresh_bert(tiny_repository: Path, bert: Package, tmp_path: Path) -> Callable[[], Path]:
    """Puts the tiny BERT, as built, into a repository of the test's own."""

    def copy() -> Path:
        name = bert.model.name
        shutil.copytree(tiny_repository / name, tmp_path / "repository" / name)
        return tmp_path / "repository"

    return copy
