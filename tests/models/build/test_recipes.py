"""Graphs for GPUs, computed on the CPU: no GPU was ever there."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file
from tests.support.examples import example_count
from tests.support.models.tiny_models import LAYERS, MAX_TOKENS, WORDS, Package

from gradewire_models.build import build_model, check_quality, verify_built
from gradewire_models.build.graph.fingerprint import add_fingerprint
from gradewire_models.build.recipes import make_graph, serving_of
from gradewire_models.build.reference.encoder import reference_vectors
from gradewire_models.build.weights.encoder import read_encoder
from gradewire_models.catalog.loading import CatalogModel
from gradewire_models.catalog.variants import Limits, Recipe
from gradewire_models.errors import BuildError, ModelNotBuiltError
from gradewire_models.repository.built import load_built
from gradewire_models.repository.config import read_config
from gradewire_models.repository.serving import Copies
from gradewire_models.runtime import onnxruntime

OUTPUTS = ["sentence_embedding", "token_embeddings_layer_1", "token_embeddings_layer_2", "token_embeddings"]
LEAST_COSINE = {"fp32": 1 - 1e-6, "fp16": 0.9999}
TOKEN_ERROR = {"fp32": 2e-4, "fp16": 0.05}
every_kind = pytest.mark.parametrize(
    ("architecture", "precision"), [(kind, precision) for kind in ("bert", "mpnet") for precision in LEAST_COSINE]
)


def variant_of(model: CatalogModel, precision: str, accelerator: str = "cuda", method: str = "gpu") -> CatalogModel:
    kind = f"{precision}-{accelerator}"
    return replace(
        model,
        name=f"{model.name}-{kind}",
        base=model.name,
        numeric_class=kind,
        recipe=Recipe(method, {"precision": precision, "accelerator": accelerator}),
        limits=Limits(min_cosine=0.999, max_token_error=0.3, max_batch_effect=1e-2),
    )


@pytest.fixture(scope="module")
def tame(packages: dict[str, Package], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Package]:
    """The tiny models with small attention scores: theirs are so large that a rounded one turns a softmax over."""
    root, tamed = tmp_path_factory.mktemp("tame"), {}
    for architecture, package in packages.items():
        tensors = load_file(package.weights)
        for name, tensor in tensors.items():
            if ".query." in name or ".attn.q." in name or "relative_attention_bias" in name:
                tensors[name] = tensor / 10
        save_file(tensors, root / architecture)
        tamed[architecture] = replace(package, weights=root / architecture)
    return tamed


@cache
def graph_of(package: Package, precision: str) -> onnx.ModelProto:
    model = variant_of(package.model, precision)
    return make_graph(read_encoder(package.weights, package.model), model, package.weights.parent)


@cache
def session_of(package: Package, precision: str) -> onnxruntime.InferenceSession:
    content = graph_of(package, precision).SerializeToString()
    return onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])


@every_kind
@settings(deadline=None, max_examples=example_count(10))
@given(lengths=st.lists(st.integers(1, MAX_TOKENS), min_size=1, max_size=5), seed=st.integers(0, 1000))
def test_every_output_agrees_with_the_reference_in_any_batch(
    tame: dict[str, Package], architecture: str, precision: str, lengths: list[int], seed: int
) -> None:
    package = tame[architecture]
    rng = np.random.default_rng(seed)
    texts = [rng.integers(0, len(WORDS), length) for length in lengths]
    ids = np.full((len(texts), max(lengths)), rng.integers(len(WORDS)), np.int64)
    mask = np.zeros_like(ids)
    for row, text in enumerate(texts):
        ids[row, : len(text)] = text
        mask[row, : len(text)] = 1
    found: list[Any] = session_of(package, precision).run(OUTPUTS, {"input_ids": ids, "attention_mask": mask})
    assert {output.dtype for output in found} == {np.dtype(np.float32)}
    sentences, first, second, last = found
    for row, expected in enumerate(reference_vectors(package.weights, package.model, texts)):
        assert sentences[row] @ expected.sentence >= LEAST_COSINE[precision]
        for tokens, layer in ((first, 1), (second, 2), (last, LAYERS)):
            error = np.abs(tokens[row, : lengths[row]] - expected.tokens_by_layer[layer]).max()
            assert error <= TOKEN_ERROR[precision]


@every_kind
def test_no_shape_depends_on_the_data(packages: dict[str, Package], architecture: str, precision: str) -> None:
    graph = graph_of(packages[architecture], precision)
    onnx.checker.check_model(graph, full_check=True)
    assert not {node.op_type for node in graph.graph.node} & {"NonZero", "Compress", "Unique", "CumSum", "Loop", "If"}


@pytest.mark.parametrize("architecture", ["bert", "mpnet"])
def test_half_precision_is_the_weights_and_not_only_a_name(packages: dict[str, Package], architecture: str) -> None:
    kinds = [tensor.data_type for tensor in graph_of(packages[architecture], "fp16").graph.initializer]
    assert kinds.count(onnx.TensorProto.FLOAT) == 1  # the floor of a length
    assert kinds.count(onnx.TensorProto.FLOAT16) > 20


def test_one_graph_under_two_accelerators_has_two_fingerprints(bert: Package) -> None:
    encoder = read_encoder(bert.weights, bert.model)
    models = [variant_of(bert.model, "fp16", accelerator) for accelerator in ("cuda", "tensorrt")]
    cuda, tensorrt = (add_fingerprint(make_graph(encoder, model, bert.weights.parent)) for model in models)
    assert cuda.fingerprint != tensorrt.fingerprint


@pytest.mark.parametrize(("precision", "accelerator"), [("fp32", "cuda"), ("fp16", "cuda"), ("fp16", "tensorrt")])
def test_a_variant_is_built_beside_its_base(tmp_path: Path, bert: Package, precision: str, accelerator: str) -> None:
    variant = variant_of(bert.model, precision, accelerator)
    base = build_model(bert.model, tmp_path, wheels=bert.wheels).model
    result = build_model(variant, tmp_path, wheels=bert.wheels, copies=Copies(instances=2))
    assert (result.model.base, result.model.on_cpu, base.on_cpu) == (base.name, False, True)
    assert result.model.digest != base.digest
    assert result.model == load_built(tmp_path, variant.name)
    config, _ = read_config(result.model.directory / "config.pbtxt")
    assert config.instance_group[0].count == 2
    (options,) = config.optimization.execution_accelerators.gpu_execution_accelerator
    assert options.name == accelerator
    checks = verify_built(tmp_path, variant.name, variant)
    assert all(check.passed for check in checks)
    assert "computed on the CPU" in checks[0].detail


def test_a_variant_for_gpus_has_to_keep_scores_too_as_far_as_a_cpu_can_tell(tmp_path: Path, bert: Package) -> None:
    variant = variant_of(bert.model, "fp16")
    build_model(variant, tmp_path, wheels=bert.wheels)
    words = [" ".join(f"w{(3 * row + step) % 60}" for step in range(2 + row % 5)) for row in range(501)]
    rows = tmp_path / "rows.jsonl"
    rows.write_text(
        "\n".join(
            json.dumps({"question": words[row], "references": [words[row + 1]], "prediction": words[row - 7]})
            for row in range(500)
        )
    )
    with pytest.raises(ModelNotBuiltError, match=bert.model.name):
        check_quality(tmp_path, variant.name, rows)
    build_model(bert.model, tmp_path, wheels=bert.wheels)
    checks = {check.name: check for check in check_quality(tmp_path, variant.name, rows)}
    assert {name: check.passed for name, check in checks.items()} == {
        "operators": True,
        "scores of sbert": True,
        "scores of sfve": True,
    }
    assert "computed on the CPU" in checks["scores of sbert"].detail


def test_a_variant_that_strays_from_the_reference_is_not_installed(tmp_path: Path, bert: Package) -> None:
    strict = replace(variant_of(bert.model, "fp16"), limits=Limits())
    with pytest.raises(BuildError, match="token vectors"):
        build_model(strict, tmp_path, wheels=bert.wheels)
    assert [path.name for path in tmp_path.iterdir()] == [f".{strict.name}.lock"]


@pytest.mark.parametrize(
    ("precision", "accelerator", "method", "says"),
    [
        ("int4", "cuda", "gpu", "precision should be one of fp32, fp16"),
        ("fp32", "none", "gpu", "accelerator should be one of cuda, tensorrt"),
        ("fp32", "cuda", "rounding", "unknown method 'rounding'"),
    ],
)
def test_a_recipe_that_makes_no_sense_is_refused(
    tmp_path: Path, bert: Package, precision: str, accelerator: str, method: str, says: str
) -> None:
    variant = variant_of(bert.model, precision, accelerator, method)
    with pytest.raises(BuildError, match=says):
        build_model(variant, tmp_path, wheels=bert.wheels)


def test_a_model_for_the_cpu_is_served_on_it(bert: Package) -> None:
    assert serving_of(bert.model).accelerator == "none"
    assert serving_of(variant_of(bert.model, "fp16", "tensorrt")).accelerator == "tensorrt"
