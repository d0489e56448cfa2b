"""Building a grader: from an adapter and a head to a model whose logits are those of an independent computation."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from safetensors.numpy import load_file, save_file
from tests.support.models.grader_adapter import build_tiny_grader, write_grader_adapter
from tests.support.models.tiny_models import Package, make_package

from gradewire_models.build.adapters import user_adapted
from gradewire_models.build.install import build_model
from gradewire_models.build.publish import read_fingerprint
from gradewire_models.build.quality import compare_with_base, own_rows
from gradewire_models.build.verify import verify_built
from gradewire_models.catalog.entries import FP16_LIMITS, Architecture, Limits, Recipe
from gradewire_models.errors import BuildError
from gradewire_models.repository.built import load_built
from gradewire_models.repository.config import read_config

BEGIN, SEPARATOR = 2, 3


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Package:
    return make_package(tmp_path_factory.mktemp("package") / "bert", "bert", max_tokens=256)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_grader(tmp_path_factory.mktemp("built"), temperature=1.25)


def logits_of(repository: Path, *rows: list[int]) -> list[float]:
    session = onnxruntime.InferenceSession(
        str(load_built(repository, "tiny-grader").onnx_path), providers=["CPUExecutionProvider"]
    )
    found = []
    for row in rows:
        ids = np.array([row], np.int64)
        (logit,) = session.run(["logit"], {"input_ids": ids, "attention_mask": np.ones_like(ids)})
        found.append(float(logit[0, 0]))
    return found


def test_it_is_what_its_description_says(repository: Path) -> None:
    model = load_built(repository, "tiny-grader")
    assert (model.kind, model.dims, model.max_tokens, model.token_layers) == ("grader", 1, 256, ())
    assert (model.temperature, model.sentence_output) == (1.25, "logit")
    assert read_fingerprint(model.onnx_path) == model.fingerprint
    config, parameters = read_config(model.directory / "config.pbtxt")
    assert [(output.name, list(output.dims)) for output in config.output] == [
        ("logit", [1]),
        ("model_fingerprint", [1]),
    ]
    assert (parameters["kind"], parameters["pooling"]) == ("grader", "mean, linear, / 1.25")
    assert config.HasField("dynamic_batching")
    checks = verify_built(repository, "tiny-grader", None)
    assert [check.name for check in checks if not check.passed] == []
    assert {"logits", "batch invariance"} <= {check.name for check in checks}
    assert model.remarks == ("reads question, reference and answer together; for the metrics grader and correctness",)


def test_the_answer_has_its_own_token_type(repository: Path) -> None:
    wanted, given = [10, 11], [20]
    one, other, padded = logits_of(
        repository,
        [BEGIN, 5, SEPARATOR, *wanted, SEPARATOR, *given, SEPARATOR],
        [BEGIN, 5, SEPARATOR, *wanted, *given, SEPARATOR],
        [BEGIN, SEPARATOR, *wanted, SEPARATOR, *given, SEPARATOR],
    )
    assert len({round(value, 4) for value in (one, other, padded)}) == 3


def test_the_temperature_is_a_part_of_the_digest(tmp_path: Path, repository: Path) -> None:
    warmer = load_built(build_tiny_grader(tmp_path, temperature=1.5), "tiny-grader")
    model = load_built(repository, "tiny-grader")
    assert warmer.onnx_path.read_bytes() == model.onnx_path.read_bytes()
    assert warmer.digest != model.digest


def test_the_same_files_give_the_same_model(tmp_path: Path, repository: Path) -> None:
    again = load_built(build_tiny_grader(tmp_path, temperature=1.25), "tiny-grader")
    assert again.digest == load_built(repository, "tiny-grader").digest


def test_a_broken_graph_does_not_pass(tmp_path: Path) -> None:
    repository = build_tiny_grader(tmp_path)
    golden = load_built(repository, "tiny-grader").directory / "golden.npz"
    with np.load(golden) as file:
        values: dict[str, Any] = dict(file)
    values["sentences"] = values["sentences"] + np.float32(0.01)
    np.savez(golden, **values)
    failed = {check.name for check in verify_built(repository, "tiny-grader", None) if not check.passed}
    assert failed == {"logits"}


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        (
            {"weight": np.zeros((1, 23), np.float32), "bias": np.zeros(1, np.float32)},
            "weight must be float32 [1, 24]",
        ),
        ({"weight": np.zeros((1, 24), np.float16), "bias": np.zeros(1, np.float32)}, "found float16"),
        ({"weight": np.zeros((1, 24), np.float32)}, "must contain weight and bias, not weight"),
        ({"weight": np.full((1, 24), np.nan, np.float32), "bias": np.zeros(1, np.float32)}, "NaN or infinite"),
    ],
)
def test_a_head_of_another_model_is_refused(
    package: Package, tmp_path: Path, tensors: dict[str, Any], message: str
) -> None:
    adapter = write_grader_adapter(tmp_path / "mine", package.model)
    save_file(tensors, adapter / "head.safetensors")
    with pytest.raises(BuildError, match=message.replace("[", r"\[")):
        build_model(user_adapted(adapter, package.model), tmp_path / "repository", wheels=package.wheels)
    assert not (tmp_path / "repository" / "mine").exists()


def test_a_grader_without_its_head_is_refused(package: Package, tmp_path: Path) -> None:
    adapter = write_grader_adapter(tmp_path / "mine", package.model)
    (adapter / "head.safetensors").unlink()
    with pytest.raises(BuildError, match=r"not an adapter in PEFT's format of a grader: head\.safetensors is missing"):
        user_adapted(adapter, package.model)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"temperature": "warm"}, "temperature must be a valid number"),
        ({"max_tokens": 128}, "max_tokens must be 256 for a grader"),
    ],
)
def test_what_its_file_says_is_checked(package: Package, tmp_path: Path, said: dict[str, Any], message: str) -> None:
    adapter = write_grader_adapter(tmp_path / "mine", package.model)
    path = adapter / "gradewire.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | said), encoding="utf-8")
    with pytest.raises(BuildError, match=message):
        build_model(user_adapted(adapter, package.model), tmp_path / "repository", wheels=package.wheels)


def test_a_base_without_token_types_tells_the_texts_apart_by_the_separators(tmp_path: Path) -> None:
    repository = build_tiny_grader(tmp_path, architecture="mpnet")
    checks = verify_built(repository, "tiny-grader", None)
    assert [check.name for check in checks if not check.passed] == []
    asked, wanted, given = [5], [10, 11], [20]
    one, other = logits_of(
        repository,
        [BEGIN, *asked, SEPARATOR, *wanted, SEPARATOR, *given, SEPARATOR],
        [BEGIN, *asked, *wanted, SEPARATOR, *given, SEPARATOR, SEPARATOR],
    )
    assert abs(one - other) > 1e-3


def test_the_head_is_the_one_that_lies_there(tmp_path: Path, repository: Path) -> None:
    doubled = tmp_path / "doubled"
    package = make_package(doubled / "wheels", "bert", max_tokens=256)
    adapter = write_grader_adapter(doubled / "adapter", package.model, temperature=1.25)
    head = load_file(adapter / "head.safetensors")
    save_file({name: 2 * values for name, values in head.items()}, adapter / "head.safetensors")
    build_model(user_adapted(adapter, package.model, "tiny-grader"), doubled / "repository", wheels=package.wheels)
    row = [BEGIN, 5, SEPARATOR, 6, SEPARATOR, 7, 8, SEPARATOR]
    (plain,), (twice,) = logits_of(repository, row), logits_of(doubled / "repository", row)
    assert twice == pytest.approx(2 * plain, abs=1e-4)


@pytest.mark.parametrize("architecture", ["bert", "mpnet"])
@pytest.mark.parametrize(("precision", "limits"), [("fp32", Limits()), ("fp16", FP16_LIMITS)])
def test_a_variant_for_gpus_gives_the_logits_of_its_base(
    tmp_path: Path, architecture: Architecture, precision: str, limits: Limits
) -> None:
    """Computed on a CPU, alone and padded in batches; `build_model` compares with the independent computation."""
    repository = build_tiny_grader(tmp_path, temperature=1.25, architecture=architecture)
    package = make_package(tmp_path / "again", architecture, max_tokens=256)
    base = user_adapted(tmp_path / "adapter-tiny-grader", package.model, "tiny-grader")
    variant = replace(
        base,
        name=f"tiny-grader-{precision}-cuda",
        base="tiny-grader",
        numeric_class=f"{precision}-cuda",
        recipe=Recipe("gpu", {}),
        limits=limits,
    )
    built = build_model(variant, repository, wheels=package.wheels)
    assert {"logits", "batch invariance"} <= {check.name for check in built.checks}
    model = built.model
    assert (model.kind, model.dims, model.base, model.on_cpu) == ("grader", 1, "tiny-grader", False)
    assert model.digest != load_built(repository, "tiny-grader").digest
    (scores,) = [
        check
        for check in compare_with_base(repository, model.name, "tiny-grader", own_rows())
        if check.name.startswith("scores of")
    ]
    assert scores.name == "scores of grader"
    assert "against tiny-grader on 504 rows" in scores.detail
    change = float(scores.detail.split()[2])
    assert change <= (0.01 if precision == "fp16" else 0.0001)


def test_a_graders_variant_of_another_method_is_refused(package: Package, tmp_path: Path) -> None:
    base = user_adapted(write_grader_adapter(tmp_path / "mine", package.model), package.model, "mine")
    variant = replace(base, name="mine-bf16", base="mine", numeric_class="bf16-cpu", recipe=Recipe("bf16", {}))
    with pytest.raises(BuildError, match="graders have only variants of the method gpu, not 'bf16'"):
        build_model(variant, tmp_path / "repository", wheels=package.wheels)
