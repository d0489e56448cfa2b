import json
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import numpy_helper
from safetensors.numpy import load_file, save_file
from tests.models.build.quantized_models import NBITS, int8_variant, published, variant
from tests.support.examples import example_count
from tests.support.models.tiny_models import LAYERS, MAX_TOKENS, WORDS, Package

from gradewire_models.build.calibration_rows import entering_rows
from gradewire_models.build.encoder_graph import encoder_graph
from gradewire_models.build.install import build_model
from gradewire_models.build.publish import add_fingerprint
from gradewire_models.build.quality import check_quality
from gradewire_models.build.quantize import round_with_gram
from gradewire_models.build.recipes import make_graph, make_int8_graph, make_nbits_graph
from gradewire_models.build.reference import reference_vectors
from gradewire_models.build.verify import verify_built
from gradewire_models.build.weights import read_encoder
from gradewire_models.catalog.entries import CatalogModel, Limits, Recipe, Setting
from gradewire_models.errors import BuildError, ModelNotBuiltError
from gradewire_models.repository.built import load_built
from gradewire_models.repository.config import read_config
from gradewire_models.repository.serving import Copies
from gradewire_models.runtime import cpu_session_options, onnxruntime

Ids = NDArray[np.int64]
TEXTS = [np.random.default_rng(length).integers(2, len(WORDS), length) for length in (1, 2, 3, 5, 8, 13, 21, 34)]
BOTH = pytest.mark.parametrize("architecture", ["bert", "mpnet"])
PLAIN: dict[str, Setting] = {"smoothing": 0.0, "outliers": 0, "hidden_outliers": 0}


def write(package: Package, model: CatalogModel) -> onnx.ModelProto:
    return make_graph(read_encoder(package.weights, model), model, published(package))


@cache
def written_int8(package: Package, **changes: Setting) -> onnx.ModelProto:
    """Write a graph once for all tests, which leave it as it is."""
    return write(package, int8_variant(package, **changes))


@cache
def written_nbits(package: Package) -> onnx.ModelProto:
    return write(package, variant(package, "matmul-nbits", NBITS))


def open_graph(graph: onnx.ModelProto, optimised: Path | None = None) -> onnxruntime.InferenceSession:
    options = cpu_session_options(2)
    options.log_severity_level = 3
    if optimised is not None:
        options.optimized_model_filepath = str(optimised)
    return onnxruntime.InferenceSession(graph.SerializeToString(), options, providers=["CPUExecutionProvider"])


def sentences(session: onnxruntime.InferenceSession, texts: list[Ids]) -> NDArray[np.float32]:
    mask = np.arange(max(map(len, texts))) < np.array([[len(text)] for text in texts])
    ids = np.zeros(mask.shape, np.int64)
    ids[mask] = np.concatenate(texts)
    (found,) = session.run(["sentence_embedding"], {"input_ids": ids, "attention_mask": mask.astype(np.int64)})
    return np.asarray(found)


@BOTH
@pytest.mark.parametrize("changes", [{}, PLAIN])
def test_vectors_stay_near_those_of_the_weights(
    packages: dict[str, Package], architecture: str, changes: dict[str, Setting]
) -> None:
    package = packages[architecture]
    found = sentences(open_graph(written_int8(package, **changes)), TEXTS)
    expected = np.stack([text.sentence for text in reference_vectors(package.weights, package.model, TEXTS)])
    assert np.sum(found * expected, axis=1).min() > 0.99


@BOTH
def test_nbits_vectors_stay_near_those_of_the_weights(packages: dict[str, Package], architecture: str) -> None:
    package = packages[architecture]
    found = sentences(open_graph(written_nbits(package)), TEXTS)
    expected = np.stack([text.sentence for text in reference_vectors(package.weights, package.model, TEXTS)])
    assert np.sum(found * expected, axis=1).min() > 0.98


@pytest.mark.parametrize(("smoothing", "outliers"), [(0.0, 0), (0.5, 2)])
def test_onnxruntime_takes_its_integer_kernel_for_every_product(
    bert: Package, smoothing: float, outliers: int, tmp_path: Path
) -> None:
    model = int8_variant(
        bert,
        smoothing=smoothing,
        outliers=outliers,
        hidden_outliers=outliers,
        excluded=("layer_1.down", "layer_2.up"),
    )
    graph = write(bert, model)
    open_graph(graph, tmp_path / "optimised.onnx")
    kinds = Counter(node.op_type for node in onnx.load(tmp_path / "optimised.onnx").graph.node)
    assert kinds["MatMulIntegerToFloat"] == 4 * LAYERS - 2
    assert kinds["DequantizeLinear"] == 0


@BOTH
@pytest.mark.parametrize("changes", [{}, PLAIN, None])
def test_a_text_alone_is_what_it_is_in_any_batch(
    packages: dict[str, Package], architecture: str, changes: dict[str, Setting] | None
) -> None:
    package = packages[architecture]
    session = open_graph(written_nbits(package) if changes is None else written_int8(package, **changes))
    alone = np.concatenate([sentences(session, [text]) for text in TEXTS])
    rng = np.random.default_rng(5)
    for count in (2, 3, 5, 8):
        chosen = rng.choice(len(TEXTS), count, replace=False)
        together = sentences(session, [TEXTS[place] for place in chosen])
        np.testing.assert_allclose(together, alone[chosen], atol=1e-6, rtol=0)


@pytest.mark.parametrize("method", ["int8", "matmul-nbits"])
def test_a_build_gives_the_same_bytes_again(bert: Package, method: str) -> None:
    is_int8 = method == "int8"
    first = written_int8(bert) if is_int8 else written_nbits(bert)
    second = write(bert, int8_variant(bert) if is_int8 else variant(bert, method, NBITS))
    assert first.SerializeToString(deterministic=True) == second.SerializeToString(deterministic=True)


def test_what_is_excluded_stays_as_it_was(bert: Package) -> None:
    graph = write(bert, int8_variant(bert, excluded=("layer_2.qkv", "layer_3.down"))).graph
    before = encoder_graph(read_encoder(bert.weights, bert.model), bert.model).graph
    kept = {node.name: node for node in graph.node}
    for name in ("layer_2.qkv", "layer_3.down", "layer_3.gelu"):
        assert kept[name] in list(before.node)
    weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in before.initializer}
    after = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    np.testing.assert_array_equal(after["layer_2.qkv.weight"], weights["layer_2.qkv.weight"])
    assert "layer_1.qkv.weight" not in after


def test_calibration_sees_what_enters_the_products(packages: dict[str, Package]) -> None:
    for package in packages.values():
        encoder = read_encoder(package.weights, package.model)
        expected = reference_vectors(package.weights, package.model, TEXTS)
        for number, rows in enumerate(entering_rows(encoder, package.model, TEXTS)):
            if number:
                hidden = rows["qkv"] - encoder.layers[number].attention_out.bias
                reference = np.concatenate([text.tokens_by_layer[number] for text in expected])
                np.testing.assert_allclose(hidden, reference, atol=1e-4)


def test_rounding_with_rows_in_view_errs_less_on_them() -> None:
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((400, 8)) @ rng.standard_normal((8, 64)) + 0.1 * rng.standard_normal((400, 64))
    weight = rng.standard_normal((64, 16))

    def error(codes: NDArray[np.int8], steps: NDArray[np.float32]) -> float:
        return float(np.square(rows @ (codes * steps.astype(np.float64) - weight)).mean())

    codes, steps = round_with_gram(weight, rows)
    assert np.abs(codes).max() <= 127
    nearest = np.rint(weight / steps).astype(np.int8)
    assert error(codes, steps) < 0.5 * error(nearest, steps)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"smoothing": True}, "smoothing must be a number"),
        ({"outliers": 24}, "outliers must be a number from 0 to 23"),
        ({"excluded": ("layer_9.qkv",)}, "layer_9.qkv"),
        ({"excluded": "layer_1.qkv"}, "excluded contains unknown products"),
        ({"calibration_sha256": "0" * 64}, "calibration texts have SHA-256"),
    ],
)
def test_settings_that_make_no_sense_are_named(bert: Package, changes: dict[str, Setting], said: str) -> None:
    model = int8_variant(bert, **changes)
    with pytest.raises(BuildError, match=said):
        make_int8_graph(read_encoder(bert.weights, model), model, published(bert))


@pytest.mark.parametrize(
    ("settings", "said"),
    [(NBITS | {"block_size": 24}, "block_size must be one of"), ({"block_size": 16}, "lacks excluded")],
)
def test_settings_of_nbits_that_make_no_sense_are_named(bert: Package, settings: dict[str, Setting], said: str) -> None:
    model = replace(bert.model, recipe=Recipe("matmul-nbits", settings))
    with pytest.raises(BuildError, match=said):
        make_nbits_graph(read_encoder(bert.weights, model), model)


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
        recipe=Recipe(method, {}),
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
    assert "computed on a CPU" in checks[0].detail


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
    assert "computed on a CPU" in checks["scores of sbert"].detail


def test_a_variant_that_strays_from_the_reference_is_not_installed(tmp_path: Path, bert: Package) -> None:
    strict = replace(variant_of(bert.model, "fp16"), limits=Limits())
    with pytest.raises(BuildError, match="token vectors"):
        build_model(strict, tmp_path, wheels=bert.wheels)
    assert [path.name for path in tmp_path.iterdir()] == [f".{strict.name}.lock"]


@pytest.mark.parametrize(
    ("precision", "accelerator", "method", "says"),
    [
        ("int4", "cuda", "gpu", "unknown numeric class 'int4-cuda'"),
        ("fp32", "none", "gpu", "unknown numeric class 'fp32-none'"),
        ("fp32", "cuda", "rounding", "unknown method 'rounding'"),
    ],
)
def test_a_recipe_that_makes_no_sense_is_refused(
    tmp_path: Path, bert: Package, precision: str, accelerator: str, method: str, says: str
) -> None:
    variant = variant_of(bert.model, precision, accelerator, method)
    with pytest.raises(BuildError, match=says):
        build_model(variant, tmp_path, wheels=bert.wheels)
