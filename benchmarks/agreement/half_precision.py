"""Compute a graph in float16 on a CPU: with every operator's result rounded to float16.

ONNX Runtime's CPU provider has no operators in float16. It runs such a graph in float32, and drops the rounding between
neighbouring operators.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

MOVING: Final = frozenset({"Gather", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze"})
"""Operators that copy values, so that their results are already rounded."""


def rounding_every_result(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a float32 graph with a float16 graph's weights, which rounds every result in float16 to float16.

    Sums within an operator stay in float32, as on a GPU's tensor cores. Results of a float32 graph stay as they are.

    Raises:
        onnx.shape_inference.InferenceError: The graph is inconsistent.
    """
    rounded = onnx.ModelProto()
    rounded.CopyFrom(model)
    graph = rounded.graph
    halves = _half_results(model)
    for tensor in graph.initializer:
        if tensor.data_type == TensorProto.FLOAT16:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float32), tensor.name))
    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        if node.op_type == "Cast" and node.attribute[0].i == TensorProto.FLOAT16:
            node.attribute[0].i = TensorProto.FLOAT
        nodes.append(node)
        if node.op_type not in MOVING:
            for place, name in enumerate(node.output):
                if name in halves:
                    node.output[place] = f"{name}.exact"
                    nodes += _rounding(f"{name}.exact", name)
    del graph.node[:], graph.value_info[:]
    graph.node.extend(nodes)
    return rounded


def _half_results(model: onnx.ModelProto) -> frozenset[str]:
    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True).graph
    return frozenset(
        each.name for each in inferred.value_info if each.type.tensor_type.elem_type == TensorProto.FLOAT16
    )


def _rounding(exact: str, name: str) -> list[onnx.NodeProto]:
    half = f"{name}.rounded"
    return [
        helper.make_node("Cast", [exact], [half], name=half, to=TensorProto.FLOAT16),
        helper.make_node("Cast", [half], [name], name=f"{name}.widened", to=TensorProto.FLOAT),
    ]
