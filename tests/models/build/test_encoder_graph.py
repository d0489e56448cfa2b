from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.support.examples import example_count
from tests.support.models.tiny_models import LAYERS, MAX_TOKENS, WORDS, Package

from gradewire_models.build.encoder_graph import encoder_graph
from gradewire_models.build.publish import add_fingerprint
from gradewire_models.build.reference import reference_vectors
from gradewire_models.build.weights import read_encoder
from gradewire_models.runtime import onnxruntime

OUTPUTS = ["sentence_embedding", "token_embeddings_layer_1", "token_embeddings_layer_2", "token_embeddings"]
both = pytest.mark.parametrize("architecture", ["bert", "mpnet"])

lengths_of_a_batch = st.lists(st.one_of(st.integers(1, 12), st.integers(1, MAX_TOKENS)), min_size=1, max_size=6)


@cache
def graph_of(package: Package) -> bytes:
    return add_fingerprint(encoder_graph(read_encoder(package.weights, package.model), package.model)).content


@cache
def session_of(package: Package) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(graph_of(package), options, providers=["CPUExecutionProvider"])


def draw_texts(lengths: list[int], seed: int) -> list[NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    return [rng.integers(0, len(WORDS), length) for length in lengths]


def run(package: Package, texts: list[NDArray[np.int64]], *, padding: int = 0, extra: int = 0) -> list[Any]:
    width = max(map(len, texts)) + extra
    ids = np.full((len(texts), width), padding, np.int64)
    mask = np.zeros((len(texts), width), np.int64)
    for row, text in enumerate(texts):
        ids[row, : len(text)] = text
        mask[row, : len(text)] = 1
    found: list[Any] = session_of(package).run(OUTPUTS, {"input_ids": ids, "attention_mask": mask})
    return found


@both
@settings(deadline=None, max_examples=example_count(15))
@given(lengths=lengths_of_a_batch, seed=st.integers(0, 1000))
def test_every_output_agrees_with_the_reference_in_any_batch(
    packages: dict[str, Package], architecture: str, lengths: list[int], seed: int
) -> None:
    package = packages[architecture]
    texts = draw_texts(lengths, seed)
    sentences, first, second, last = run(package, texts)
    for row, (text, expected) in enumerate(
        zip(texts, reference_vectors(package.weights, package.model, texts), strict=True)
    ):
        np.testing.assert_allclose(sentences[row], expected.sentence, atol=1e-5)
        for tokens, layer in ((first, 1), (second, 2), (last, LAYERS)):
            np.testing.assert_allclose(tokens[row, : len(text)], expected.tokens_by_layer[layer], atol=2e-4)


@both
@settings(deadline=None, max_examples=example_count(10))
@given(lengths=lengths_of_a_batch, seed=st.integers(0, 1000), padding=st.integers(0, len(WORDS) - 1))
def test_neighbours_padding_and_width_change_nothing(
    packages: dict[str, Package], architecture: str, lengths: list[int], seed: int, padding: int
) -> None:
    package = packages[architecture]
    texts = draw_texts(lengths, seed)
    extra = min(5, MAX_TOKENS - max(lengths))
    together = run(package, texts, padding=padding, extra=extra)
    for row, text in enumerate(texts):
        alone = run(package, [text])
        np.testing.assert_allclose(together[0][row], alone[0][0], atol=1e-6)
        np.testing.assert_allclose(together[3][row, : len(text)], alone[3][0], atol=1e-4)


@both
def test_sentence_vectors_have_unit_length_and_no_text_is_no_number(
    packages: dict[str, Package], architecture: str
) -> None:
    package = packages[architecture]
    sentences = run(package, draw_texts([1, 9, MAX_TOKENS], 1))[0]
    np.testing.assert_allclose(np.linalg.norm(sentences, axis=1), 1, atol=1e-6)
    ids = np.ones((2, 4), np.int64)
    mask = np.array([[0, 0, 0, 0], [1, 1, 0, 0]])
    (padded,) = session_of(package).run(OUTPUTS[:1], {"input_ids": ids, "attention_mask": mask})
    assert np.isfinite(padded).all()
    assert np.abs(padded[0]).max() == 0


@both
def test_a_batch_without_any_text_is_refused(packages: dict[str, Package], architecture: str) -> None:
    nothing = np.zeros((2, 4), np.int64)
    with pytest.raises(Exception, match="INVALID_ARGUMENT"):
        session_of(packages[architecture]).run(OUTPUTS[:1], {"input_ids": nothing, "attention_mask": nothing})


@both
def test_the_order_of_words_matters(packages: dict[str, Package], architecture: str) -> None:
    text = np.array([2, 5, 9, 30, 3])
    forward, backward = run(packages[architecture], [text, text[::-1].copy()])[0]
    assert forward @ backward < 0.9999


@both
def test_longer_texts_than_the_model_takes_fail(packages: dict[str, Package], architecture: str) -> None:
    ids = np.ones((1, MAX_TOKENS + 1), np.int64)
    with pytest.raises(Exception, match=r"indices|bounds"):
        session_of(packages[architecture]).run(OUTPUTS[:1], {"input_ids": ids, "attention_mask": ids})


@both
def test_the_same_weights_give_the_same_bytes(packages: dict[str, Package], architecture: str) -> None:
    package = packages[architecture]
    assert add_fingerprint(
        encoder_graph(read_encoder(package.weights, package.model), package.model)
    ).content == graph_of(package)


@both
def test_the_graph_is_valid_and_uses_standard_operators_only(packages: dict[str, Package], architecture: str) -> None:
    model = onnx.load_from_string(graph_of(packages[architecture]))
    onnx.checker.check_model(model, full_check=True)
    assert {node.domain for node in model.graph.node} == {""}
    assert [(entry.domain, entry.version) for entry in model.opset_import] == [("", 20)]


@both
def test_concurrent_runs_of_one_session_do_not_mix(packages: dict[str, Package], architecture: str) -> None:
    package = packages[architecture]
    batches = [draw_texts([seed % 7 + 1, 3, 20], seed) for seed in range(40)]
    expected = [run(package, batch)[0] for batch in batches]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda batch: run(package, batch)[0], batches))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
