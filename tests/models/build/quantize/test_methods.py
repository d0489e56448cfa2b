from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import numpy_helper
from tests.models.build.quantize.quantized_models import NBITS, int8_variant, published, variant
from tests.support.models.tiny_models import LAYERS, WORDS, Package

from gradewire_models.build.graph.encoder import encoder_graph
from gradewire_models.build.quantize.entering_rows import entering_rows
from gradewire_models.build.quantize.methods import make_int8_graph, make_nbits_graph
from gradewire_models.build.quantize.rounding import round_to_nearest, round_with_gram
from gradewire_models.build.recipes import make_graph
from gradewire_models.build.reference.encoder import reference_vectors
from gradewire_models.build.weights.encoder import read_encoder
from gradewire_models.catalog.loading import CatalogModel
from gradewire_models.catalog.variants import Recipe, Setting
from gradewire_models.errors import BuildError
from gradewire_models.runtime import cpu_session_options, onnxruntime

Ids = NDArray[np.int64]
TEXTS = [np.random.default_rng(length).integers(2, len(WORDS), length) for length in (1, 2, 3, 5, 8, 13, 21, 34)]
BOTH = pytest.mark.parametrize("architecture", ["bert", "mpnet"])


def write(package: Package, model: CatalogModel) -> onnx.ModelProto:
    return make_graph(read_encoder(package.weights, model), model, published(package))


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
@pytest.mark.parametrize("changes", [{}, {"activations": "static"}, {"outliers": 0, "hidden_outliers": 0}])
def test_vectors_stay_near_those_of_the_weights(
    packages: dict[str, Package], architecture: str, changes: dict[str, Setting]
) -> None:
    package = packages[architecture]
    found = sentences(open_graph(write(package, int8_variant(package, **changes))), TEXTS)
    expected = np.stack([text.sentence for text in reference_vectors(package.weights, package.model, TEXTS)])
    assert np.sum(found * expected, axis=1).min() > (0.95 if changes.get("activations") else 0.99)


@BOTH
def test_nbits_vectors_stay_near_those_of_the_weights(packages: dict[str, Package], architecture: str) -> None:
    package = packages[architecture]
    found = sentences(open_graph(write(package, variant(package, "matmul-nbits", NBITS))), TEXTS)
    expected = np.stack([text.sentence for text in reference_vectors(package.weights, package.model, TEXTS)])
    assert np.sum(found * expected, axis=1).min() > 0.98


@pytest.mark.parametrize("activations", ["row", "static"])
@pytest.mark.parametrize("smoothing", [0.0, 0.5])
@pytest.mark.parametrize("outliers", [0, 2])
def test_onnxruntime_takes_its_integer_kernel_for_every_product(
    bert: Package, activations: str, smoothing: float, outliers: int, tmp_path: Path
) -> None:
    model = int8_variant(
        bert,
        activations=activations,
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
@pytest.mark.parametrize("changes", [{}, {"activations": "static", "smoothing": 0.0, "outliers": 0}, None])
def test_a_text_alone_is_what_it_is_in_any_batch(
    packages: dict[str, Package], architecture: str, changes: dict[str, Setting] | None
) -> None:
    package = packages[architecture]
    model = variant(package, "matmul-nbits", NBITS) if changes is None else int8_variant(package, **changes)
    session = open_graph(write(package, model))
    alone = np.concatenate([sentences(session, [text]) for text in TEXTS])
    rng = np.random.default_rng(5)
    for count in (2, 3, 5, 8):
        chosen = rng.choice(len(TEXTS), count, replace=False)
        together = sentences(session, [TEXTS[place] for place in chosen])
        np.testing.assert_allclose(together, alone[chosen], atol=1e-6, rtol=0)


@pytest.mark.parametrize("method", ["int8", "matmul-nbits"])
def test_a_build_gives_the_same_bytes_again(bert: Package, method: str) -> None:
    model = int8_variant(bert) if method == "int8" else variant(bert, method, NBITS)
    first, second = (write(bert, model).SerializeToString(deterministic=True) for _ in range(2))
    assert first == second


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


@given(st.integers(1, 12), st.integers(1, 6), st.integers(0, 2**31))
def test_rounding_keeps_within_its_step(inputs: int, outputs: int, seed: int) -> None:
    weight = np.random.default_rng(seed).standard_normal((inputs, outputs))
    codes, steps = round_to_nearest(weight)
    assert np.abs(codes).max() <= 127
    assert np.all(np.abs(codes * steps.astype(np.float64) - weight) <= 0.5001 * steps)


def test_rounding_with_rows_in_view_errs_less_on_them() -> None:
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((400, 8)) @ rng.standard_normal((8, 64)) + 0.1 * rng.standard_normal((400, 64))
    weight = rng.standard_normal((64, 16))

    def error(codes: NDArray[np.int8], steps: NDArray[np.float32]) -> float:
        return float(np.square(rows @ (codes * steps.astype(np.float64) - weight)).mean())

    assert error(*round_with_gram(weight, rows)) < 0.5 * error(*round_to_nearest(weight))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"activations": "batch"}, "activations should be one of row, static"),
        ({"rounding": "up"}, "rounding should be one of"),
        ({"percentile": 10}, "percentile should be a number from 50"),
        ({"smoothing": True}, "smoothing should be a number"),
        ({"outliers": 24}, "outliers should be a number from 0 to 23"),
        ({"excluded": ("layer_9.qkv",)}, "layer_9.qkv"),
        ({"excluded": "layer_1.qkv"}, "excluded names what is no product"),
        ({"calibration_sha256": "0" * 64}, "calibration texts have SHA-256"),
    ],
)
def test_settings_that_make_no_sense_are_named(bert: Package, changes: dict[str, Setting], said: str) -> None:
    model = int8_variant(bert, **changes)
    with pytest.raises(BuildError, match=said):
        make_int8_graph(read_encoder(bert.weights, model), model, published(bert))


@pytest.mark.parametrize(
    ("settings", "said"),
    [(NBITS | {"block_size": 24}, "block_size should be one of"), ({"block_size": 16}, "lacks excluded")],
)
def test_settings_of_nbits_that_make_no_sense_are_named(bert: Package, settings: dict[str, Setting], said: str) -> None:
    model = replace(bert.model, recipe=Recipe("matmul-nbits", settings))
    with pytest.raises(BuildError, match=said):
        make_nbits_graph(read_encoder(bert.weights, model), model, published(bert))
