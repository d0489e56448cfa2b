import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from tests.support.models.tiny_models import Package

from gradewire_models.build.publish import FingerprintedGraph, write_model
from gradewire_models.build.reference import load_golden, save_golden
from gradewire_models.build.verify import Check, verify_built
from gradewire_models.catalog.entries import CatalogModel
from gradewire_models.errors import ModelNotBuiltError
from gradewire_models.repository.built import load_built


def by_name(checks: list[Check]) -> dict[str, bool]:
    return {check.name: check.passed for check in checks}


def describe_anew(directory: Path, model: CatalogModel, *, fingerprint: int) -> None:
    """Makes the description fit whatever the files are now, so that only the computation is wrong."""
    content = (directory / "1/model.onnx").read_bytes()
    shutil.rmtree(directory / "1")
    write_model(directory, model.metadata, FingerprintedGraph(content, fingerprint))


@pytest.mark.parametrize("name", ["tiny-bert", "tiny-mpnet"])
def test_a_sound_model_passes_every_check(tiny_repository: Path, name: str) -> None:
    checks = verify_built(tiny_repository, name, None)
    assert by_name(checks) == dict.fromkeys(
        ["files", "catalog", "config.pbtxt", "fingerprint", "sentence vectors", "token vectors", "batch invariance"],
        True,
    )


@pytest.mark.parametrize(
    ("constant", "failing"),
    [
        ("layer_1.attention_out.weight", {"sentence vectors", "token vectors"}),
        ("layer_2.qkv.bias", {"sentence vectors", "token vectors"}),
        ("layer_2.carried", {"token vectors"}),
        ("position_table", {"sentence vectors", "token vectors"}),
        ("masked", {"sentence vectors", "token vectors", "batch invariance"}),
    ],
)
def test_a_graph_that_computes_something_else_is_found(
    fresh_bert: Callable[[], Path], bert: Package, constant: str, failing: set[str]
) -> None:
    directory = fresh_bert() / "tiny-bert"
    fingerprint = load_built(directory.parent, "tiny-bert").fingerprint
    graph = onnx.load(directory / "1/model.onnx")
    tensor = next(tensor for tensor in graph.graph.initializer if tensor.name == constant)
    values = numpy_helper.to_array(tensor)
    wrong = np.zeros_like(values) if constant == "masked" else np.roll(values, 1, axis=0)
    tensor.CopyFrom(numpy_helper.from_array(wrong, constant))
    onnx.save(graph, directory / "1/model.onnx")
    describe_anew(directory, bert.model, fingerprint=fingerprint)
    checks = by_name(verify_built(directory.parent, "tiny-bert", bert.model))
    assert {name for name, passed in checks.items() if not passed} == failing


def test_a_graph_of_another_name_than_described_is_found(fresh_bert: Callable[[], Path], bert: Package) -> None:
    directory = fresh_bert() / "tiny-bert"
    describe_anew(directory, bert.model, fingerprint=load_built(directory.parent, "tiny-bert").fingerprint + 1)
    checks = by_name(verify_built(directory.parent, "tiny-bert", None))
    assert {name for name, passed in checks.items() if not passed} == {"config.pbtxt", "fingerprint"}


def test_vectors_that_are_no_numbers_fail(fresh_bert: Callable[[], Path]) -> None:
    path = fresh_bert() / "tiny-bert/golden.npz"
    golden = load_golden(path)
    save_golden(replace(golden, sentences=np.full_like(golden.sentences, np.nan)), path)
    checks = by_name(verify_built(path.parent.parent, "tiny-bert", None))
    assert not checks["sentence vectors"]


def test_a_description_of_other_tensors_fails(fresh_bert: Callable[[], Path]) -> None:
    repository = fresh_bert()
    path = repository / "tiny-bert/config.pbtxt"
    path.write_text(path.read_text().replace("TYPE_INT64", "TYPE_INT32"))
    assert by_name(verify_built(repository, "tiny-bert", None)) | {"config.pbtxt": False} == by_name(
        verify_built(repository, "tiny-bert", None)
    )


def test_another_model_than_the_catalogs_fails(tiny_repository: Path, bert: Package) -> None:
    checks = verify_built(tiny_repository, "tiny-bert", replace(bert.model, digest="0" * 64))
    assert by_name(checks)["catalog"] is False


def test_damaged_files_end_the_verification(fresh_bert: Callable[[], Path]) -> None:
    repository = fresh_bert()
    with (repository / "tiny-bert/1/model.onnx").open("ab") as file:
        file.write(b"x")
    assert by_name(verify_built(repository, "tiny-bert", None)) == {"files": False}


@pytest.mark.parametrize("content", [b"", b"PK\x05\x06 torn", None])
def test_missing_golden_vectors_are_a_failure(fresh_bert: Callable[[], Path], content: bytes | None) -> None:
    repository = fresh_bert()
    path = repository / "tiny-bert/golden.npz"
    path.unlink() if content is None else path.write_bytes(content)
    assert by_name(verify_built(repository, "tiny-bert", None)) == {"files": False}


def test_what_is_not_built_cannot_be_verified(tmp_path: Path) -> None:
    with pytest.raises(ModelNotBuiltError):
        verify_built(tmp_path, "tiny-bert", None)
