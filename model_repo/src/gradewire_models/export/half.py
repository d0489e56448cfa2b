"""Turns a graph in float32 into one in float16, with ONNX Runtime's own converter."""

from typing import Final

import onnx

from gradewire_models.runtime import onnxruntime as _  # noqa: F401 - its telemetry is off before its tools start it

# Parts of normalisations that were written out: a square leaves float16's range at 256.
_WRITTEN_OUT: Final = ("Pow", "ReduceMean", "Sqrt", "Reciprocal")


def to_half(encoder: onnx.ModelProto) -> onnx.ModelProto:
    """Converts weights and operators to float16; inputs and outputs keep their types.

    Args:
        encoder: A bare encoder in float32; it is taken over. Pooling and normalisation, sums of many numbers, are added
            afterwards, in float32.

    Returns:
        Its outputs are float32.

    Raises:
        ValueError: The converter cannot read the graph.
    """
    from onnxruntime.transformers.float16 import (  # noqa: PLC0415 - slow, and needed for GPUs alone
        DEFAULT_OP_BLOCK_LIST,
        convert_float_to_float16,
    )
    from onnxruntime.transformers.onnx_model import OnnxModel  # noqa: PLC0415 - as above

    half: onnx.ModelProto = convert_float_to_float16(
        encoder, keep_io_types=True, op_block_list=[*DEFAULT_OP_BLOCK_LIST, *_WRITTEN_OUT]
    )
    # The converter repeats a cast for each of its readers, and appends all of them.
    once = {tuple(node.output): node for node in half.graph.node}
    del half.graph.node[:]
    half.graph.node.extend(once.values())
    OnnxModel(half).topological_sort()
    return half
