"""The last step of every graph writer: an output that says, row by row, which graph the vectors beside it came from."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from gradewire_models.repository.config import FINGERPRINT_OUTPUT, INPUT_IDS

_LEAST_OPSET = 15  # Shape with a start and an end


@dataclass(frozen=True, slots=True)
class FingerprintedGraph:
    """A graph that names itself, ready to be written.

    Attributes:
        content: The ONNX file; equal models give equal bytes.
        fingerprint: What the output ``model_fingerprint`` holds in every row; in the range of int64, never 0.
    """

    content: bytes
    fingerprint: int


def add_fingerprint(model: onnx.ModelProto) -> FingerprintedGraph:
    """Adds the output ``model_fingerprint``, int64 [batch, 1], to `model` and serialises it.

    A server whose repository was swapped under it answers under the same name with other vectors, and nothing in its
    reply says so; a client that asks for this output as well sees which graph made them. A client that does not ask
    pays for three operators on one number.

    Args:
        model: A whole graph with its weights inside, an input ``input_ids`` of [batch, tokens], and opset 15 or later.
            It is changed.

    Returns:
        The bytes to write, and the fingerprint: the first 8 bytes of SHA-256 over the model as it was before.

    Raises:
        ValueError: The model has a fingerprint already, keeps weights in other files, lacks the input or has an opset
            below 15.
    """
    graph = model.graph
    taken = {name for node in graph.node for name in node.output}
    if FINGERPRINT_OUTPUT in taken:
        raise ValueError(f"the graph has an output {FINGERPRINT_OUTPUT} already")
    if any(tensor.data_location == TensorProto.EXTERNAL for tensor in graph.initializer):
        raise ValueError("the graph keeps weights in other files: a fingerprint over it would not cover them")
    if INPUT_IDS not in {tensor.name for tensor in graph.input}:
        raise ValueError(f"the graph has no input {INPUT_IDS}")
    opsets = [opset.version for opset in model.opset_import if opset.domain in {"", "ai.onnx"}]
    if max(opsets, default=0) < _LEAST_OPSET:
        raise ValueError(f"the graph has an opset below {_LEAST_OPSET}")
    fingerprint = _fingerprint(model.SerializeToString(deterministic=True))

    batch, one, shape = (f"{FINGERPRINT_OUTPUT}.{part}" for part in ("batch", "one", "shape"))
    value = numpy_helper.from_array(np.array([fingerprint], np.int64))
    graph.initializer.append(numpy_helper.from_array(np.array([1], np.int64), one))
    graph.node.extend(
        [
            helper.make_node("Shape", [INPUT_IDS], [batch], name=batch, start=0, end=1),
            helper.make_node("Concat", [batch, one], [shape], name=shape, axis=0),
            helper.make_node("ConstantOfShape", [shape], [FINGERPRINT_OUTPUT], name=FINGERPRINT_OUTPUT, value=value),
        ]
    )
    graph.output.append(helper.make_tensor_value_info(FINGERPRINT_OUTPUT, TensorProto.INT64, ["batch", 1]))
    return FingerprintedGraph(model.SerializeToString(deterministic=True), fingerprint)


def read_fingerprint(path: Path) -> int | None:
    """What the output ``model_fingerprint`` of a graph holds; None where it has none that `add_fingerprint` made.

    Raises:
        OSError: The file cannot be read.
        google.protobuf.message.DecodeError: It is no graph.
    """
    for node in onnx.load(path).graph.node:
        if list(node.output) == [FINGERPRINT_OUTPUT] and node.op_type == "ConstantOfShape":
            return int(numpy_helper.to_array(node.attribute[0].t)[0])
    return None


def _fingerprint(content: bytes) -> int:
    # 0 is what a buffer that nobody filled holds.
    return int.from_bytes(hashlib.sha256(content).digest()[:8], "big", signed=True) or 1
