"""Weights and activations in 8 bits.

Weights get one scale per output (symmetric, round to nearest even, [-127, 127]), activations one scale per token, at
run time. Products are then sums of integers, exact in any order: a token's numbers do not depend on what else is in the
batch. onnxruntime is quickest with unsigned activations and signed weights, so 128 is added to the former.
"""

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from gradewire_models.judges.build.external import JudgeNodes
from gradewire_models.judges.build.weights import Matrix

MICROSOFT = "com.microsoft"
_LARGEST = np.float32(127)


def round_rows(matrix: Matrix) -> tuple[NDArray[np.int8], Matrix]:
    """Rounds every row to 8 bits.

    Args:
        matrix: float32 [rows, columns].

    Returns:
        int8 [rows, columns] in [-127, 127], and float32 [rows], what a unit is worth; 1 where a row is all zero.
    """
    scales = np.abs(matrix).max(axis=1) / _LARGEST
    scales[scales == 0] = 1
    return np.rint(matrix / scales[:, None]).astype(np.int8), scales.astype(np.float32)


def write_rounding_constants(nodes: JudgeNodes) -> None:
    """Adds what `quantize` and `product` share."""
    nodes.scalar("activation_zero", np.uint8(128))
    nodes.scalar("weight_zero", np.int8(0))
    nodes.scalar("unit_scale", np.float32(1))
    nodes.scalar("per_unit", 1 / _LARGEST)
    nodes.scalar("least_size", np.float32(1e-30))  # a token that is all zero has to be divided by something


def quantize(nodes: JudgeNodes, inputs: str, name: str) -> tuple[str, str]:
    """Rounds activations, float32 [tokens, width], to uint8 with a scale per token.

    Returns:
        Names of the rounded activations and of the scales, float32 [tokens, 1].
    """
    sizes = nodes.op("Abs", inputs, name=f"{name}.sizes")
    largest = nodes.op("ReduceMax", sizes, "last_axis", name=f"{name}.largest", keepdims=1)
    floored = nodes.op("Max", largest, "least_size", name=f"{name}.floored")
    scales = nodes.op("Mul", floored, "per_unit", name=f"{name}.scales")
    per_row = nodes.op("Squeeze", scales, "one_axis", name=f"{name}.row_scales")
    zeros = nodes.op("Expand", "activation_zero", nodes.op("Shape", per_row, name=f"{name}.rows"), name=f"{name}.zeros")
    return nodes.op("QuantizeLinear", inputs, per_row, zeros, name=f"{name}.rounded", axis=0), scales


def product(nodes: JudgeNodes, inputs: str, matrix: Matrix, name: str, *, fold: Matrix | None = None) -> str:
    """Multiplies rounded activations with `matrix`; the result still lacks the activations' scale.

    Args:
        nodes: The graph under construction.
        inputs: uint8 [tokens, inputs], made by `quantize`.
        matrix: float32 [outputs, inputs].
        name: Of the result, float32 [tokens, outputs].
        fold: Factors [outputs] to multiply into the result; they cost nothing here.
    """
    rounded, scales = round_rows(matrix)
    return product_of_rounded(nodes, inputs, rounded, scales if fold is None else scales * fold, name)


def product_of_rounded(nodes: JudgeNodes, inputs: str, rounded: NDArray[np.int8], scales: Matrix, name: str) -> str:
    """As `product`, of a matrix that `round_rows` has rounded."""
    weight = nodes.weight(f"{name}.weight", rounded.T)
    per_output = nodes.constant(f"{name}.scales", scales)
    # One kernel for the integer product, the conversion and the weights' scales; three without it.
    operands = (inputs, weight, "unit_scale", per_output, "activation_zero", "weight_zero")
    return nodes.op("MatMulIntegerToFloat", *operands, name=name, domain=MICROSOFT)


def lookup(nodes: JudgeNodes, rounded: NDArray[np.int8], scales: Matrix, ids: str) -> str:
    """Rows of a rounded table, float32 [tokens, width]."""
    table = nodes.weight("embedding.weight", rounded)
    worth = nodes.weight("embedding.scales", scales[:, None])
    units = nodes.op("Gather", table, ids, name="embedding.rounded", axis=0)
    wide = nodes.op("Cast", units, name="embedding.units", to=TensorProto.FLOAT)
    return nodes.op("Mul", wide, nodes.op("Gather", worth, ids, name="embedding.worth", axis=0), name="embedding")
