"""Sessions and digests that tests keep are those of the files as they are now."""

import os
import shutil
from pathlib import Path

import pytest
from tests.support.models.kept_graphs import keep_graphs

from gradewire_models.repository import digest
from gradewire_models.repository.built import load_built
from gradewire_server.encoders import local

MODEL = "all-MiniLM-L6-v2"


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    keep_graphs(monkeypatch, tmp_path)


@pytest.mark.usefixtures("kept")
def test_a_file_that_changes_has_another_digest(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"one")
    first = digest.file_sha256(file)
    file.write_bytes(b"two")
    os.utime(file, ns=(1, 1))  # however coarse the clock of the file system is
    assert digest.file_sha256(file) != first
    file.write_bytes(b"one")
    os.utime(file, ns=(2, 2))
    assert digest.file_sha256(file) == first


@pytest.mark.usefixtures("kept")
def test_a_session_is_kept_for_its_file_and_number_of_threads(minilm: Path, tmp_path: Path) -> None:
    model = load_built(minilm, MODEL)
    session = local._open(model, threads=1)
    assert local._open(model, threads=1) is session
    assert local._open(model, threads=2) is not session
    shutil.copytree(minilm / MODEL, tmp_path / MODEL)
    assert local._open(load_built(tmp_path, MODEL), threads=1) is not session
