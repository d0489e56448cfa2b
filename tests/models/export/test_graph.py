"""What is written around an exported encoder, on one of a few operators whose vectors are known by hand."""

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from tests.support.examples import example_count

from gradewire_models.errors import ExportError
from gradewire_models.export.graph import Completion, complete, to_half
from gradewire_models.runtime import onnxruntime

WORDS, DIMS, PADDING_ID = 11, 4, 9
TABLE = np.random.default_rng(5).standard_normal((WORDS, DIMS)).astype(np.float32)
INPUTS = ("input_ids", "attention_mask", "token_type_ids", "position_ids")


def bare(*inputs: str, extra: str = "") -> onnx.ModelProto:
    """Vectors of words, plus ten times the position and a hundred times the token type where it reads these."""
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["hidden_states.0"])]
    constants = [numpy_helper.from_array(TABLE, "table")]
    last = "hidden_states.0"
    for name, factor in (("position_ids", 10.0), ("token_type_ids", 100.0)):
        if name in inputs:
            constants.append(numpy_helper.from_array(np.array(factor, np.float32), f"{name}.factor"))
            constants.append(numpy_helper.from_array(np.array([-1], np.int64), f"{name}.axis"))
            nodes += [
                helper.make_node("Cast", [name], [f"{name}.float"], to=TensorProto.FLOAT),
                helper.make_node("Mul", [f"{name}.float", f"{name}.factor"], [f"{name}.scaled"]),
                helper.make_node("Unsqueeze", [f"{name}.scaled", f"{name}.axis"], [f"{name}.column"]),
                helper.make_node("Add", [last, f"{name}.column"], [f"{name}.added"]),
            ]
            last = f"{name}.added"
    nodes += [
        helper.make_node("Identity", [last], ["last_hidden_state"]),
        helper.make_node("Neg", ["last_hidden_state"], ["hidden_states.1"]),
    ]
    shape = ["b", "t"]
    graph = helper.make_graph(
        nodes,
        "bare",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, shape)
            for name in (*inputs, *([extra] if extra else []))
        ],
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, [*shape, DIMS])
            for name in ("last_hidden_state", "hidden_states.0", "hidden_states.1")
        ],
        constants,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def run(graph: onnx.ModelProto, ids: Any, mask: Any) -> dict[str, NDArray[np.float32]]:
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    fed = {"input_ids": np.array(ids, np.int64), "attention_mask": np.array(mask, np.int64)}
    return dict(zip(names, session.run(names, fed), strict=True))


@settings(max_examples=example_count(15), deadline=None)
@given(st.sampled_from(["mean", "cls", "last"]), st.lists(st.integers(1, 6), min_size=1, max_size=4), st.integers())
def test_texts_are_pooled_as_by_hand_whatever_stands_in_the_padding(
    pooling: Any, lengths: list[int], seed: int
) -> None:
    ids = np.random.default_rng(abs(seed)).integers(0, WORDS, (len(lengths), max(lengths)))
    mask = (np.arange(max(lengths)) < np.array(lengths)[:, None]).astype(np.int64)
    found = run(complete(bare(*INPUTS), Completion(pooling, (1,), DIMS, PADDING_ID)), ids, mask)
    assert list(found) == ["sentence_embedding", "token_embeddings", "token_embeddings_layer_1"]
    for row, length in enumerate(lengths):
        tokens = TABLE[ids[row, :length]] + 10 * np.arange(length)[:, None]
        np.testing.assert_allclose(found["token_embeddings"][row, :length], tokens, rtol=1e-6)
        np.testing.assert_allclose(found["token_embeddings_layer_1"][row, :length], -tokens, rtol=1e-6)
        np.testing.assert_allclose(
            found["token_embeddings"][row, length:, :] - 10 * (length - 1), _padding(mask, row), rtol=1e-4
        )
        pooled = {"mean": tokens.mean(0), "cls": tokens[0], "last": tokens[-1]}[pooling]
        np.testing.assert_allclose(found["sentence_embedding"][row], pooled / np.linalg.norm(pooled), atol=2e-6)


def _padding(mask: NDArray[np.int64], row: int) -> NDArray[np.float32]:
    """What the encoder sees there: its own padding id, at the last position."""
    return np.tile(TABLE[PADDING_ID], (int((mask[row] == 0).sum()), 1))


def test_the_last_token_is_found_behind_padding_on_the_left() -> None:
    graph = complete(bare("input_ids"), Completion("last", (), DIMS, PADDING_ID))
    found = run(graph, [[0, 0, 3], [0, 2, 4], [5, 6, 0]], [[0, 0, 1], [0, 1, 1], [1, 1, 0]])
    vectors = TABLE[[3, 4, 6]]
    expected = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    np.testing.assert_allclose(found["sentence_embedding"], expected, atol=2e-6)


def test_a_row_without_a_token_gives_numbers() -> None:
    for pooling in ("mean", "cls", "last"):
        graph = complete(bare(*INPUTS), Completion(pooling, (), DIMS, PADDING_ID))  # type: ignore[arg-type]  # a literal
        found = run(graph, [[1, 2], [3, 4]], [[1, 1], [0, 0]])
        assert all(np.isfinite(value).all() for value in found.values())


def test_what_nobody_asked_for_is_not_computed() -> None:
    kinds = {node.op_type for node in complete(bare("input_ids"), Completion("mean", (), DIMS, 0)).graph.node}
    assert "Neg" not in kinds
    assert {tensor.name for tensor in complete(bare("input_ids"), Completion("mean", (), DIMS, 0)).graph.input} == {
        "input_ids",
        "attention_mask",
    }


def test_other_inputs_and_missing_outputs_are_refused() -> None:
    with pytest.raises(ExportError, match=r"needs \['pixel_values'\]"):
        complete(bare("input_ids", extra="pixel_values"), Completion("mean", (), DIMS, 0))
    with pytest.raises(ExportError, match=r"lacks the outputs \['pooler_output', 'hidden_states\.2'\]"):
        complete(bare("input_ids"), Completion("pooler", (2,), DIMS, 0))


def test_half_precision_ends_before_pooling() -> None:
    completion = Completion("mean", (1,), DIMS, PADDING_ID)
    graph = complete(to_half(bare("input_ids")), completion)
    (table,) = [tensor for tensor in graph.graph.initializer if tensor.name.endswith("table")]
    assert table.data_type == TensorProto.FLOAT16
    assert {tensor.type.tensor_type.elem_type for tensor in graph.graph.output} == {TensorProto.FLOAT}
    ids, mask = [[1, 2, 3], [4, 5, 0]], [[1, 1, 1], [1, 1, 0]]
    whole = run(complete(bare("input_ids"), completion), ids, mask)
    half = run(graph, ids, mask)
    for name, value in whole.items():
        np.testing.assert_allclose(half[name], value, atol=2e-3)
    assert np.abs(half["token_embeddings"] - whole["token_embeddings"]).max() > 0
    np.testing.assert_allclose(np.linalg.norm(half["sentence_embedding"], axis=1), 1, atol=1e-6)
