"""Weights beside the graph, as a model of more than 2 GB has them, here with a lower limit."""

import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from tests_export.conftest import MAX_TOKENS, TEXTS, Folder, expected_vectors
from tests_export.export.test_run import check, encode

from gradewire_models.build.publish import read_fingerprint
from gradewire_models.build.renew import renew_exported
from gradewire_models.build.verify import verify_built
from gradewire_models.errors import BuildError, ExportError, ModelBrokenError
from gradewire_models.export.exporter import EXPORTERS, trace
from gradewire_models.export.folder import read_folder
from gradewire_models.export.plan import ExportOptions
from gradewire_models.export.run import export_model
from gradewire_models.repository.built import BuiltModel, load_built
from gradewire_models.repository.config import CONFIG_FILE, read_config
from gradewire_models.repository.digest import file_sha256
from gradewire_models.repository.serving import Copies

LIMIT = 4096
OPTIONS = ExportOptions(pooling="mean", max_tokens=MAX_TOKENS)


def exported(folder: Folder, repository: Path, limit: int = LIMIT) -> BuiltModel:
    return export_model(str(folder.path), repository, OPTIONS, max_graph_weight_bytes=limit).model


@pytest.mark.parametrize(("exporter", "model_type"), [("optimum", "bert"), ("optimum", "llama"), ("torch", "bert")])
def test_large_weights_get_a_file_of_their_own_and_the_same_vectors(
    make_folder: Callable[..., Folder],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    exporter: str,
    model_type: str,
) -> None:
    if exporter == "torch":
        monkeypatch.setitem(EXPORTERS, "optimum", trace)
    folder = make_folder(model_type)
    result = export_model(str(folder.path), tmp_path, OPTIONS, max_graph_weight_bytes=LIMIT)
    check(result, tmp_path, folder)
    model = result.model
    assert model.weights_path == model.directory / "1/model.onnx.data"
    assert sorted(path.name for path in (model.directory / "1").iterdir()) == ["model.onnx", "model.onnx.data"]
    own = onnx.load(model.onnx_path, load_external_data=False)
    assert sum(tensor.ByteSize() for tensor in own.graph.initializer) < model.weights_path.stat().st_size


def test_the_same_weights_give_the_same_vectors_in_one_file_and_the_same_digest_again(
    make_folder: Callable[..., Folder], tmp_path: Path
) -> None:
    folder = make_folder("bert")
    model, again = exported(folder, tmp_path), exported(folder, tmp_path / "again")
    assert (again.digest, again.fingerprint) == (model.digest, model.fingerprint)
    inline = exported(folder, tmp_path / "inline", limit=10**9)
    assert inline.weights_path is None
    assert (inline.digest, inline.fingerprint) != (model.digest, model.fingerprint)
    np.testing.assert_array_equal(encode(model, TEXTS)[1], encode(inline, TEXTS)[1])


def test_digest_and_fingerprint_cover_the_weights(make_folder: Callable[..., Folder], tmp_path: Path) -> None:
    folder = make_folder("bert")
    model = exported(folder, tmp_path)
    described = read_config(model.directory / CONFIG_FILE)[1]
    assert model.weights_path is not None
    assert described["weights_sha256"] == file_sha256(model.weights_path)
    assert int(described["weights_bytes"]) == model.weights_path.stat().st_size
    assert read_fingerprint(model.onnx_path) == model.fingerprint
    properties = {each.key: each.value for each in onnx.load(model.onnx_path, load_external_data=False).metadata_props}
    assert properties == {"weights_sha256": described["weights_sha256"]}

    content = bytearray(model.weights_path.read_bytes())
    content[-1] ^= 1
    model.weights_path.write_bytes(content)
    with pytest.raises(ModelBrokenError, match=r"model\.onnx\.data has SHA-256"):
        load_built(tmp_path, model.name)
    assert [(one.name, one.passed) for one in verify_built(tmp_path, model.name, None)] == [("files", False)]
    model.weights_path.unlink()
    with pytest.raises(ModelBrokenError, match=r"model\.onnx\.data"):
        load_built(tmp_path, model.name)


def test_other_weights_are_another_model_in_the_next_version(
    make_folder: Callable[..., Folder], tmp_path: Path
) -> None:
    folder = make_folder("bert")
    first = exported(folder, tmp_path)
    with_torch_seed(folder)
    second = exported(folder, tmp_path)
    assert (first.version, second.version) == (1, 2)
    assert second.weights_path == second.directory / "2/model.onnx.data"
    assert second.digest != first.digest
    ids, found = encode(second, TEXTS)
    np.testing.assert_allclose(found, expected_vectors(folder.model, ids, "mean"), atol=1e-5)
    renewed, written = renew_exported(tmp_path, second.name, Copies(instances=2))
    assert written
    assert (renewed.digest, renewed.weights_path) == (second.digest, second.weights_path)


def with_torch_seed(folder: Folder) -> None:
    for parameter in folder.model.parameters():
        parameter.data.add_(0.01)
    folder.model.save_pretrained(folder.path)


def test_a_full_disk_is_said_before_anything_is_loaded(
    make_folder: Callable[..., Folder], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_folder("bert")
    numbers = read_folder(folder.path, pooling="mean").weight_numbers
    assert numbers == sum(parameter.numel() for parameter in folder.model.parameters())

    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=12 * numbers - 1))
    monkeypatch.setattr("gradewire_models.export.run.load_encoder", None)
    with pytest.raises(BuildError, match=r"needs 0\.0 GB of disk in .*, but only 0\.0 GB are free"):
        exported(folder, tmp_path)
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []


def test_large_models_for_gpus_are_refused(make_folder: Callable[..., Folder], tmp_path: Path) -> None:
    options = ExportOptions(pooling="mean", max_tokens=MAX_TOKENS, numeric_class="fp16-cuda")
    with pytest.raises(ExportError, match="an export for GPUs can have at most"):
        export_model(str(make_folder("bert").path), tmp_path, options, max_graph_weight_bytes=LIMIT)
