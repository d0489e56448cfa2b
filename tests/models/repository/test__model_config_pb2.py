import shutil
import sys
from pathlib import Path

import pytest

from gradewire_models.repository import _model_config_pb2

ROOT = Path(__file__).parents[3]


def test_generated_code_is_that_of_the_proto(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "model_repo")
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    assert shutil.which("protoc-gen-mypy")
    from generate import generate  # type: ignore[import-not-found]  # noqa: PLC0415 - a script beside its package

    generate(tmp_path)
    package = Path(_model_config_pb2.__file__).parent
    for made in (tmp_path / "gradewire_models" / "repository").iterdir():
        assert made.read_text() == (package / made.name).read_text()
