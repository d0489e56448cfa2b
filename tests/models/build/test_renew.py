"""A description that is not what a build would write: found, named, rewritten."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from google.protobuf import text_format
from tests.support.engines.calibrations import SMILE
from tests.support.models.tiny_models import Package

from gradewire_models.build import verify
from gradewire_models.build.install import build_model
from gradewire_models.build.renew import find_differences, renew
from gradewire_models.build.verify import verify_built
from gradewire_models.catalog.entries import CatalogModel
from gradewire_models.cli.group import models
from gradewire_models.errors import ModelBrokenError
from gradewire_models.repository._model_config_pb2 import ModelConfig
from gradewire_models.repository.built import load_built
from gradewire_models.repository.config import read_config, write_config
from gradewire_models.repository.serving import AS_IT_IS, Copies

NAME = "tiny-bert"


@pytest.fixture(autouse=True)
def _vectors_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    # A description does not change them, and computing them takes most of a check's time.
    monkeypatch.setattr(verify, "check_vectors", lambda *_: [])


@pytest.fixture
def directory(fresh_bert: Callable[[], Path]) -> Path:
    return fresh_bert() / NAME


def edit(directory: Path, *changes: tuple[str, str]) -> None:
    path = directory / "config.pbtxt"
    text = path.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)


def config_check(directory: Path, expected: CatalogModel | None) -> tuple[bool, str]:
    (check,) = (one for one in verify_built(directory.parent, NAME, expected) if one.name == "config.pbtxt")
    return check.passed, check.detail


WRONG = [
    (("max_batch_size: 1024", "max_batch_size: 0"), "max_batch_size is 0, but must be 1024"),
    (('backend: "onnxruntime"', 'backend: "python"'), "backend is 'python', but must be 'onnxruntime'"),
    (("dims: 24", "dims: 25"), "output sentence_embedding"),
    (("kind: KIND_CPU", ""), "instance_group kind is KIND_AUTO, but must be KIND_CPU"),
    (("kind: KIND_CPU", "kind: KIND_GPU"), "instance_group kind is KIND_GPU"),
    (('input_data_file: "long_attention_mask"', 'input_data_file: "nothing"'), "model_warmup long is"),
    (("num_versions: 1", "num_versions: 2"), "version_policy"),
    (("response_cache {", "response_cache { enable: true"), "response_cache is 'enable: true', but must be ''"),
    (('string_value: "24"', 'string_value: "25"'), "gradewire.dims is '25', but must be '24'"),
]


@pytest.mark.parametrize(("change", "says"), WRONG)
@pytest.mark.parametrize("listed", [True, False])
def test_what_matters_is_named_and_written_anew(
    directory: Path, bert: Package, change: tuple[str, str], says: str, *, listed: bool
) -> None:
    expected = bert.model if listed else None
    sound = (directory / "config.pbtxt").read_text()
    edit(directory, change)
    assert any(says in found for found in find_differences(load_built(directory.parent, NAME), expected))
    passed, detail = config_check(directory, expected)
    assert not passed
    assert says in detail or "the graph has" in detail
    assert renew(load_built(directory.parent, NAME), expected)
    assert config_check(directory, expected)[0]
    if listed:
        assert (directory / "config.pbtxt").read_text() == sound


@pytest.mark.parametrize(
    ("field", "value"), [("licence", "MIT"), ("calibration.smile", "[]"), ("source", "elsewhere"), ("invented", "1")]
)
def test_facts_are_those_of_the_catalog(directory: Path, bert: Package, field: str, value: str) -> None:
    expected = replace(bert.model, calibrations=(SMILE,))
    assert renew(load_built(directory.parent, NAME), expected)
    config, _ = read_config(directory / "config.pbtxt")
    config.parameters[f"gradewire.{field}"].string_value = value
    write_config(directory / "config.pbtxt", config)
    passed, detail = config_check(directory, expected)
    assert not passed
    assert f"gradewire.{field} is {value!r}" in detail
    assert f"gradewire models build {NAME}" in detail
    result = build_model(expected, directory.parent, wheels=bert.wheels)
    assert (result.built, result.renewed) == (False, True)
    assert config_check(directory, expected)[0]


def test_of_a_long_value_its_beginning_is_told(directory: Path, bert: Package) -> None:
    """A fit has 60 000 characters, and another fit may begin with the same hundreds."""
    fits = [
        replace(
            SMILE,
            metric="correctness",
            model_digest=load_built(directory.parent, NAME).digest,
            threshold=None,
            sentence_weight=None,
            fit=json.dumps({"z": [0] * 9_999 + [end]}),
        )
        for end in (1, 2)
    ]
    one, other = (replace(bert.model, calibrations=(fit,)) for fit in fits)
    renew(load_built(directory.parent, NAME), one)
    (missing,) = find_differences(load_built(directory.parent, NAME), bert.model)
    assert missing.endswith(", but must be missing")
    assert len(missing) < 500
    (differs,) = find_differences(load_built(directory.parent, NAME), other)
    said, meant = differs.split(", but must be ")
    assert said.removeprefix("gradewire.calibration.correctness is ") != meant
    assert len(differs) < 1_000
    assert "characters, SHA-256" in said


def test_a_fingerprint_is_that_of_the_graph(directory: Path, bert: Package) -> None:
    fingerprint = load_built(directory.parent, NAME).fingerprint
    edit(directory, (f'string_value: "{fingerprint}"', 'string_value: "7"'))
    assert "gradewire.fingerprint is '7'" in config_check(directory, None)[1]
    assert build_model(bert.model, directory.parent, wheels=bert.wheels).model.fingerprint == fingerprint


@pytest.mark.parametrize("damage", ["gone", "other"])
def test_warm_up_files_are_part_of_it(directory: Path, bert: Package, damage: str) -> None:
    file = directory / "warmup/short_attention_mask"
    sound = file.read_bytes()
    shutil.rmtree(file.parent) if damage == "gone" else file.write_bytes(b"\0" * len(sound))
    passed, detail = config_check(directory, bert.model)
    assert not passed
    assert "warmup/short_attention_mask is " in detail
    assert build_model(bert.model, directory.parent, wheels=bert.wheels).renewed
    assert file.read_bytes() == sound
    assert config_check(directory, bert.model)[0]


def test_an_accelerator_that_the_class_does_not_name_is_found(directory: Path, bert: Package) -> None:
    text = 'optimization { execution_accelerators { cpu_execution_accelerator { name: "openvino" } } }'
    edit(directory, ("max_batch_size", f"{text} max_batch_size"))
    assert "openvino" in config_check(directory, bert.model)[1]


def test_what_is_the_operators_stays(directory: Path, bert: Package) -> None:
    edit(
        directory,
        ("count: 2", "count: 5"),
        ("max_queue_size: 1024", "max_queue_size: 9"),
        ("preferred_batch_size: 128", "max_queue_delay_microseconds: 100"),
        ('key: "enable_mem_pattern"', 'key: "enable_mem_arena"'),
        ("max_batch_size", "optimization { graph { level: 1 } } max_batch_size"),
    )
    kept = (directory / "config.pbtxt").read_text()
    assert config_check(directory, bert.model)[0]
    assert not build_model(bert.model, directory.parent, wheels=bert.wheels).renewed
    assert (directory / "config.pbtxt").read_text() == kept


def served(directory: Path) -> tuple[int, str]:
    config, _ = read_config(directory / "config.pbtxt")
    return config.instance_group[0].count, config.parameters["intra_op_thread_count"].string_value


def test_copies_and_threads_outlive_a_renewal(directory: Path, bert: Package) -> None:
    for copies, expected in (
        (Copies(instances=3), (3, "0")),
        (Copies(threads=4), (3, "4")),
        (Copies(instances=1), (1, "4")),
        (Copies(threads=0), (1, "0")),
        (Copies(5, 2), (5, "2")),
    ):
        assert build_model(bert.model, directory.parent, wheels=bert.wheels, copies=copies).renewed
        assert served(directory) == expected
    edit(directory, ("kind: KIND_CPU", ""), ('backend: "onnxruntime"', 'backend: "python"'))
    assert build_model(bert.model, directory.parent, wheels=bert.wheels).renewed
    assert served(directory) == (5, "2")
    assert config_check(directory, bert.model)[0]


def test_another_release_whose_words_are_the_same_verifies_and_is_renewed(directory: Path, bert: Package) -> None:
    config, facts = read_config(directory / "config.pbtxt")
    config.parameters["gradewire.config_version"].string_value = "3"
    write_config(directory / "config.pbtxt", config)
    assert config_check(directory, bert.model)[0]
    assert renew(load_built(directory.parent, NAME), bert.model, AS_IT_IS)
    assert read_config(directory / "config.pbtxt")[1] == facts


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(models, [str(argument) for argument in arguments])


def test_a_model_of_no_catalog_is_renewed_by_name(directory: Path) -> None:
    sound = text_format.Parse((directory / "config.pbtxt").read_text(), ModelConfig())
    edit(directory, ("max_batch_size: 1024", "max_batch_size: 7"))
    assert run("verify", NAME, "--model-repository", directory.parent).exit_code == 4
    result = run("build", NAME, "--model-repository", directory.parent)
    assert result.exit_code == 0
    assert "rewritten" in result.output
    found, _ = read_config(directory / "config.pbtxt")
    sound.parameters["gradewire.catalog_version"].string_value = "0"  # it is in no catalog indeed
    assert found == sound
    again = run("build", NAME, "--model-repository", directory.parent)
    assert "already built" in again.output
    assert "rewritten" not in again.output
    assert run("build", NAME, "--instances", 4, "--threads", 2, "--model-repository", directory.parent).exit_code == 0
    assert served(directory) == (4, "2")
    assert run("verify", NAME, "--model-repository", directory.parent).exit_code == 0


def test_an_exported_model_is_not_made_for_gpus(directory: Path) -> None:
    result = run("build", NAME, "--target", "gpu", "--model-repository", directory.parent)
    assert result.exit_code == 2
    assert "For GPUs, export it again: gradewire models export --target gpu" in result.output


def test_a_broken_model_of_no_catalog_is_not_described(directory: Path) -> None:
    (directory / "tokenizer.json").write_bytes(b"x")
    result = run("build", NAME, "--model-repository", directory.parent)
    assert result.exit_code == 1
    assert "is broken" in result.output
    (directory / "golden.npz").unlink()
    with pytest.raises(ModelBrokenError):
        load_built(directory.parent, NAME)
