"""Float16 arithmetic on a CPU: what ONNX Runtime computes is what numpy computes with every result rounded."""

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from benchmarks.agreement.half_precision import rounding_every_result
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from gradewire_models.runtime import onnxruntime

Array = NDArray[np.float32]
RNG = np.random.default_rng(7)
WEIGHT, BIAS = (RNG.standard_normal(shape).astype(np.float32) for shape in ((8, 8), (8,)))
ROWS = RNG.standard_normal((5, 8)).astype(np.float32)


def graph(kind: int) -> onnx.ModelProto:
    """Two layers between casts, as in `gpu_graph`: x is float32, and so is y."""
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    nodes = [
        helper.make_node("Cast", ["x"], ["half"], to=kind),
        helper.make_node("MatMul", ["half", "weight"], ["product"]),
        helper.make_node("Add", ["product", "bias"], ["sum"]),
        helper.make_node("Transpose", ["sum"], ["turned"], perm=[1, 0]),
        helper.make_node("Mul", ["turned", "turned"], ["square"]),
        helper.make_node("Cast", ["square"], ["y"], to=TensorProto.FLOAT),
    ]
    constants = [
        numpy_helper.from_array(value.astype(dtype), name) for value, name in ((WEIGHT, "weight"), (BIAS, "bias"))
    ]
    tensors = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("x", [5, 8]), ("y", [8, 5]))
    ]
    made = helper.make_graph(nodes, "two layers", tensors[:1], tensors[1:], constants)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def run(model: onnx.ModelProto) -> Array:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (found,) = session.run(["y"], {"x": ROWS})
    return np.asarray(found)


def by_hand(rounded: Callable[[Array], Array]) -> Array:
    product = rounded(rounded(ROWS) @ rounded(WEIGHT))
    turned = rounded(product + rounded(BIAS)).T
    return rounded(turned * turned)


def to_half(values: Array) -> Array:
    return values.astype(np.float16).astype(np.float32)


def test_every_result_is_rounded() -> None:
    found = run(rounding_every_result(graph(TensorProto.FLOAT16)))
    assert np.array_equal(found, to_half(found))
    # A product's sum has another order in numpy, so a value can be on the other side of a rounding.
    assert np.allclose(found, by_hand(to_half), rtol=2**-9, atol=0)
    exact = by_hand(lambda values: values)
    assert np.abs(found - exact).max() > 1e-4


def test_a_sum_that_float16_cannot_hold_shows_it() -> None:
    """2048 + 1 is 2048 in float16, and 2049 where the rounding is dropped."""
    model = graph(TensorProto.FLOAT16)
    for tensor, value in zip(model.graph.initializer, (np.eye(8) * 2048, np.ones(8)), strict=True):
        tensor.CopyFrom(numpy_helper.from_array(value.astype(np.float16), tensor.name))
    model.graph.node[4].CopyFrom(helper.make_node("Sub", ["turned", "two_thousand"], ["square"]))
    model.graph.initializer.append(numpy_helper.from_array(np.array(2040, np.float16), "two_thousand"))
    session = onnxruntime.InferenceSession(
        rounding_every_result(model).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (found,) = session.run(["y"], {"x": np.pad(np.eye(5, dtype=np.float32), ((0, 0), (0, 3)))})
    assert float(found[0, 0]) == 8.0


def test_weights_are_those_of_float16_and_the_graph_is_sound() -> None:
    model = rounding_every_result(graph(TensorProto.FLOAT16))
    onnx.checker.check_model(model, full_check=True)
    weight = numpy_helper.to_array(model.graph.initializer[0])
    assert weight.dtype == np.float32
    assert np.array_equal(weight, to_half(WEIGHT))
    # Operators that copy values need no rounding.
    assert "turned.rounded" not in {node.name for node in model.graph.node}


def test_a_graph_in_float32_stays() -> None:
    model = graph(TensorProto.FLOAT)
    assert rounding_every_result(model).graph.node == model.graph.node
    assert np.allclose(run(rounding_every_result(model)), by_hand(lambda values: values), rtol=1e-5)


def test_the_given_graph_is_not_changed() -> None:
    model = graph(TensorProto.FLOAT16)
    before = model.SerializeToString(deterministic=True)
    rounding_every_result(model)
    assert model.SerializeToString(deterministic=True) == before


def test_an_inconsistent_graph_is_refused() -> None:
    model = graph(TensorProto.FLOAT16)
    model.graph.node[3].attribute[0].ints[:] = [0, 1, 2]
    with pytest.raises(onnx.shape_inference.InferenceError):
        rounding_every_result(model)
