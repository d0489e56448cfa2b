"""The checked-in code of the wire format is what proto/ says."""

import importlib.util
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHECKED_IN = ROOT / "proto" / "src" / "gradewire_proto" / "v1"


def test_regenerating_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "proto" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    # protoc looks its mypy plugins up on PATH; they lie beside the interpreter.
    monkeypatch.setenv("PATH", f"{ROOT / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}")

    generate.generate(tmp_path)

    made = {path.name: path.read_text() for path in (tmp_path / "gradewire_proto" / "v1").iterdir()}
    kept = {path.name: path.read_text() for path in [*CHECKED_IN.glob("*_pb2*"), CHECKED_IN / "comments.json"]}
    assert len(made) == 25
    assert made == kept
