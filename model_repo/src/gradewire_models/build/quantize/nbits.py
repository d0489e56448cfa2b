"""Weights alone in 8 bits, block by block, as onnxruntime's MatMulNBits reads them."""

import numpy as np
import onnx
from numpy.typing import NDArray

from gradewire_models.build.quantize.editing import CONTRIB_DOMAIN, GraphEditor

_MIDDLE = 128
_LEVELS = 127


def quantize_nbits(model: onnx.ModelProto, products: set[str], block_size: int, accuracy_level: int) -> None:
    """Replaces the products called `products` by MatMulNBits, in place.

    Args:
        model: A graph of `gradewire_models.build.graph.encoder.encoder_graph`.
        products: Names of Gemm nodes.
        block_size: Inputs that share a scale, a power of 2; the last block of a column may be shorter.
        accuracy_level: What the kernel may do to the other operand: 4 rounds it to 8 bits too, block by block.
    """
    editor = GraphEditor(model)
    for node in model.graph.node:
        if node.name not in products:
            editor.new.nodes.append(node)
            continue
        entering, weight_name, added = node.input
        weight = editor.value(weight_name)
        codes, steps = _round_blocks(weight, block_size)
        product = editor.new.op(
            "MatMulNBits",
            entering,
            editor.new.constant(f"{node.name}.codes", codes),
            editor.new.constant(f"{node.name}.steps", steps),
            name=f"{node.name}.product",
            domain=CONTRIB_DOMAIN,
            K=weight.shape[0],
            N=weight.shape[1],
            bits=8,
            block_size=block_size,
            accuracy_level=accuracy_level,
        )
        editor.new.op("Add", product, added, name=node.output[0])
    editor.finish()


def _round_blocks(weight: NDArray[np.float32], block_size: int) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    whole = np.pad(weight.T.astype(np.float64), ((0, 0), (0, -len(weight) % block_size)))
    blocks = whole.reshape(weight.shape[1], -1, block_size)
    steps = np.maximum(np.abs(blocks).max(axis=2, keepdims=True), 1e-12) / _LEVELS
    codes = np.rint(blocks / steps) + _MIDDLE
    return codes.astype(np.uint8), steps[:, :, 0].astype(np.float32)
