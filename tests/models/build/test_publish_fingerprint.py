import hashlib
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from gradewire_models.build.publish import FingerprintedGraph, add_fingerprint
from gradewire_models.runtime import onnxruntime


def make_graph(weight: float = 2.0, *, opset: int = 17, inputs: str = "input_ids") -> onnx.ModelProto:
    """Doubles its input."""
    graph = helper.make_graph(
        [
            helper.make_node("Cast", [inputs], ["wide"], to=TensorProto.FLOAT),
            helper.make_node("Mul", ["wide", "weight"], ["product"]),
        ],
        "double",
        [helper.make_tensor_value_info(inputs, TensorProto.INT64, ["batch", "tokens"])],
        [helper.make_tensor_value_info("product", TensorProto.FLOAT, ["batch", "tokens"])],
        [numpy_helper.from_array(np.array([weight], np.float32), "weight")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def run(named: FingerprintedGraph, batch: int, tokens: int) -> list[Any]:
    session = onnxruntime.InferenceSession(named.content, providers=["CPUExecutionProvider"])
    found: list[Any] = session.run(None, {"input_ids": np.ones((batch, tokens), np.int64)})
    return found


@pytest.mark.parametrize(("batch", "tokens"), [(1, 1), (3, 5), (0, 4), (2, 0)])
def test_every_row_names_the_graph_and_the_rest_stays(batch: int, tokens: int) -> None:
    named = add_fingerprint(make_graph())
    product, names = run(named, batch, tokens)
    assert names.dtype == np.int64
    np.testing.assert_array_equal(names, np.full((batch, 1), named.fingerprint))
    np.testing.assert_array_equal(product, np.full((batch, tokens), 2.0))


def test_the_fingerprint_is_taken_from_the_graph_before() -> None:
    before = make_graph().SerializeToString(deterministic=True)
    expected = int.from_bytes(hashlib.sha256(before).digest()[:8], "big", signed=True)
    assert add_fingerprint(make_graph()).fingerprint == expected
    assert -(2**63) <= expected < 2**63
    assert add_fingerprint(make_graph()) == add_fingerprint(make_graph())


def test_another_weight_is_another_fingerprint() -> None:
    assert add_fingerprint(make_graph(2.0)).fingerprint != add_fingerprint(make_graph(2.0000002)).fingerprint


def test_a_graph_with_a_fingerprint_is_valid() -> None:
    onnx.checker.check_model(onnx.load_from_string(add_fingerprint(make_graph()).content), full_check=True)


def test_a_graph_that_cannot_have_a_fingerprint_is_refused() -> None:
    named = make_graph()
    add_fingerprint(named)
    elsewhere = make_graph()
    elsewhere.graph.initializer[0].data_location = TensorProto.EXTERNAL
    for graph, says in (
        (named, "already"),
        (elsewhere, "separate files"),
        (make_graph(inputs="tokens_of_text"), "no input input_ids"),
        (make_graph(opset=14), "opset below 15"),
    ):
        with pytest.raises(ValueError, match=says):
            add_fingerprint(graph)
