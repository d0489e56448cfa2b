"""Sessions and digests that tests keep are those of the files as they are now."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.support.models.kept_graphs import keep_graphs

from gradewire_models.repository import digest
from gradewire_models.repository.built import load_built
from gradewire_server.encoders import local
from gradewire_server.settings.engine import ComputeConfig

MODEL = "all-MiniLM-L6-v2"


class Exact:
    """A session that holds none of ONNX Runtime."""

    def run(self, ids: Any, *, layers: Any, exclusive: bool) -> Any:
        raise NotImplementedError


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


def test_the_error_of_kept_sessions_is_computed_once(
    minilm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed: list[object] = []
    monkeypatch.setattr(local, "_cosine_error", lambda *sessions: computed.append(sessions) or 0.25)
    keep_graphs(monkeypatch, tmp_path)
    model, texts = load_built(minilm, MODEL), ["a cat", "a dog"]
    one, again = (local.EncoderSession(model, ComputeConfig(lone_run_threads=1)) for _ in range(2))
    tokenizer = local.open_tokenizer(model)
    for session in (one, again):
        assert local._cosine_error(session, one, tokenizer, texts) == 0.25
    assert len(computed) == 1
    local._cosine_error(one, one, tokenizer, texts[:1])
    assert len(computed) == 2
    for _ in range(2):  # of whatever is not kept, each
        local._cosine_error(one, Exact(), tokenizer, texts)
    assert len(computed) == 4
