"""A directory is found by its plain name alone, whatever else a caller writes."""

from pathlib import Path

import pytest

from gradewire_models.repository.listing import find_directory


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for name in ("models/encoder", "models", "models/.building"):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
        (tmp_path / name / "config").write_text("")
    return tmp_path / "models"


def test_a_plain_name_is_found(repository: Path) -> None:
    assert find_directory(repository, "encoder", "config") == repository / "encoder"


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "../models",
        "encoder/",
        "/",
        ".building",
        "a\0b",
        "*",
        "x" * 255,
        "x" * 256,
        "é" * 128,
        "x" * 5000,
        "\ud800",
    ],
)
def test_anything_else_is_not_there(repository: Path, name: str) -> None:
    assert find_directory(repository, name, "config") is None
