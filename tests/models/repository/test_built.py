import logging
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gradewire_models.errors import ModelBrokenError, ModelNotBuiltError
from gradewire_models.repository.built import default_repository, find_directory, list_built, load_built


def test_a_built_model_is_described(tiny_repository: Path) -> None:
    model = load_built(tiny_repository, "tiny-mpnet")
    assert (model.name, model.dims, model.layers, model.max_tokens) == ("tiny-mpnet", 24, 3, 150)
    assert (model.pooling, model.prefix, model.numeric_class, model.licence) == ("mean", "", "fp32-cpu", "Apache-2.0")
    assert model.earlier_layers == (1, 2)
    assert model.fingerprint != 0
    assert model.onnx_path.is_file()
    assert model.tokenizer_path.is_file()
    assert model.calibrations == ()


def test_listing_is_by_name_and_agrees_with_loading(tiny_repository: Path) -> None:
    models = list_built(tiny_repository)
    assert [model.name for model in models] == ["tiny-bert", "tiny-mpnet"]
    assert models == [load_built(tiny_repository, model.name) for model in models]
    assert models[0].digest != models[1].digest


def test_a_repository_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert list_built(tmp_path / "nowhere") == []


@pytest.mark.parametrize("name", ["all-MiniLM-L6-v2", "", "..", "a/b", "tiny-bert/../tiny-bert"])
def test_what_is_not_built_says_how_to_build(tmp_path: Path, tiny_repository: Path, name: str) -> None:
    for repository in (tmp_path, tiny_repository):
        with pytest.raises(ModelNotBuiltError, match="gradewire models build"):
            load_built(repository, name)


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _replace(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


SIZE_HIDES = {
    "flipped graph": lambda at: _flip(at / "1/model.onnx"),
    "flipped tokenizer": lambda at: _flip(at / "tokenizer.json"),
}
SEEN_AT_ONCE = {
    "cut graph": lambda at: _cut(at / "1/model.onnx"),
    "no graph": lambda at: (at / "1/model.onnx").unlink(),
    "no tokenizer": lambda at: (at / "tokenizer.json").unlink(),
    "other length": lambda at: _replace(at / "config.pbtxt", '"150"', '"149"'),
    "other pooling": lambda at: _replace(at / "config.pbtxt", '"mean"', '"max"'),
    "other numeric class": lambda at: _replace(at / "config.pbtxt", '"fp32-cpu"', '"fp16-gpu"'),
    "no fingerprint": lambda at: _replace(at / "config.pbtxt", "gradewire.fingerprint", "fingerprint"),
    "no digest": lambda at: _replace(at / "config.pbtxt", "gradewire.digest", "digest"),
    "no number": lambda at: _replace(at / "config.pbtxt", '"24"', '"many"'),
    "no such output": lambda at: _replace(at / "config.pbtxt", "sentence_embedding", "pooled"),
    "other name": lambda at: _replace(at / "config.pbtxt", 'name: "tiny-bert"', 'name: "other"'),
    "no text": lambda at: (at / "config.pbtxt").write_bytes(b"\xff\x00"),
}


@pytest.mark.parametrize("damage", [*SIZE_HIDES, *SEEN_AT_ONCE])
def test_a_damaged_model_is_never_loaded(fresh_bert: Callable[[], Path], damage: str) -> None:
    repository = fresh_bert()
    {**SIZE_HIDES, **SEEN_AT_ONCE}[damage](repository / "tiny-bert")
    with pytest.raises(ModelBrokenError, match="tiny-bert"):
        load_built(repository, "tiny-bert")


def test_a_broken_model_says_how_it_was_made(fresh_bert: Callable[[], Path]) -> None:
    repository = fresh_bert()
    _cut(repository / "tiny-bert/tokenizer.json")
    with pytest.raises(ModelBrokenError, match="Run: gradewire models build tiny-bert"):
        load_built(repository, "tiny-bert")


@pytest.mark.parametrize("stray", ["notes", "01", "3x", "²"])
def test_the_highest_version_folder_is_the_model(fresh_bert: Callable[[], Path], stray: str) -> None:
    directory = fresh_bert() / "tiny-bert"
    assert load_built(directory.parent, "tiny-bert").version == 1
    (directory / stray).mkdir()
    (directory / "1").rename(directory / "12")
    (directory / "3").mkdir()
    model = load_built(directory.parent, "tiny-bert")
    assert (model.version, model.onnx_path) == (12, directory / "12/model.onnx")
    (directory / "13").mkdir()
    with pytest.raises(ModelBrokenError, match="13"):
        load_built(directory.parent, "tiny-bert")


def test_a_broken_model_does_not_hide_the_others(
    fresh_bert: Callable[[], Path], tiny_repository: Path, caplog: pytest.LogCaptureFixture
) -> None:
    repository = fresh_bert()
    shutil.copytree(tiny_repository / "tiny-mpnet", repository / "tiny-mpnet")
    _cut(repository / "tiny-bert/1/model.onnx")
    with caplog.at_level(logging.WARNING):
        assert [model.name for model in list_built(repository)] == ["tiny-mpnet"]
    assert "tiny-bert" in caplog.text


def test_without_its_graph_a_model_is_described_and_its_tokenizer_checked(
    fresh_bert: Callable[[], Path], tiny_repository: Path
) -> None:
    repository = fresh_bert()
    (repository / "tiny-bert/1/model.onnx").unlink()
    assert list_built(repository) == []
    described = load_built(repository, "tiny-bert", graph=False)
    assert [described] == list_built(repository, graphs=False)
    assert described.digest == load_built(tiny_repository, "tiny-bert").digest
    _flip(repository / "tiny-bert/tokenizer.json")
    with pytest.raises(ModelBrokenError, match="SHA-256"):
        load_built(repository, "tiny-bert", graph=False)


def test_the_variable_names_the_repository(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GRADEWIRE_MODEL_REPOSITORY", str(tmp_path))
    assert default_repository() == tmp_path
    monkeypatch.setenv("GRADEWIRE_MODEL_REPOSITORY", "~/models")
    assert default_repository() == Path.home() / "models"
    monkeypatch.delenv("GRADEWIRE_MODEL_REPOSITORY")
    assert default_repository() == Path(__file__).parents[3] / "model_repo" / "models"


def test_reading_imports_nothing_heavy() -> None:
    code = (
        "import sys, gradewire_models, gradewire_models.cli.group\n"
        "heavy = {'onnx', 'onnxruntime', 'numpy', 'safetensors', 'tokenizers', 'gradewire_models.build'}\n"
        "sys.exit(', '.join(heavy & set(sys.modules)) or 0)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")


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
