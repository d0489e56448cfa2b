"""Rewrite graphs to multiply in 8-bit integers, or to store weights in 8 bits."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from gradewire_models.build.nodes import Nodes

Array64 = NDArray[np.float64]
Codes = NDArray[np.int8]

_WEIGHT_LEVELS = 127
_DAMPING = 0.01
_BLOCK = 64

_ACTIVATION_LEVELS = 255
_SYMMETRIC_ZERO_POINT = 128
# GELU's minimum is -0.16997. A fixed zero point of 24 steps reaches it if a step is at least 0.17 / 24.
_GELU_ZERO = 24
_GELU_DEPTH = 0.17

CONTRIB_DOMAIN = "com.microsoft"

Constant: TypeAlias = NDArray[np.float32]

Places: TypeAlias = NDArray[np.intp]
# A bias, or the name of the tensor to add.
Added: TypeAlias = Array64 | NDArray[np.float32] | str

# Means and scales are rounded because their last bits differ between machines.
_MEAN_GRID = 1024.0
_SCALE_GRID = 8.0

_NBITS_ZERO_POINT = 128


def round_with_gram(weight: Array64, rows: Array64) -> tuple[Codes, NDArray[np.float32]]:
    """Round weights one input at a time, and compensate each rounding error in the following inputs.

    This minimises the product's error for `rows`. As in GPTQ (Frantar et al. 2023), the Cholesky factor of the inputs'
    inverse Gram matrix determines the compensation. The largest inputs come first.

    Args:
        weight: float64 [inputs, outputs].
        rows: float64 [tokens, inputs], the product's input.

    Returns:
        int8 [inputs, outputs] in [-127, 127], and float32 [outputs], each column's step.
    """
    steps: NDArray[np.float32] = (np.maximum(np.abs(weight).max(axis=0), 1e-12) / _WEIGHT_LEVELS).astype(np.float32)
    gram = rows.T @ rows
    power = np.diag(gram)
    damped = gram + np.diag(np.full(len(gram), max(_DAMPING * float(power.mean()), 1e-12)))
    order = np.argsort(-power, kind="stable")
    factor = np.linalg.cholesky(np.linalg.inv(damped[np.ix_(order, order)])).T
    left = weight[order]
    codes = np.empty(weight.shape, np.int8)
    for start in range(0, len(order), _BLOCK):
        end = min(start + _BLOCK, len(order))
        errors = np.empty((end - start, weight.shape[1]))
        for place in range(start, end):
            row = _codes(left[place] / steps)
            codes[order[place]] = row
            errors[place - start] = (left[place] - row * steps.astype(np.float64)) / factor[place, place]
            left[place + 1 : end] -= np.outer(factor[place, place + 1 : end], errors[place - start])
        left[end:] -= factor[start:end, end:].T @ errors
    return codes, steps


def _codes(values: Array64) -> Codes:
    return np.clip(np.rint(values), -_WEIGHT_LEVELS, _WEIGHT_LEVELS).astype(np.int8)


class GraphEditor:
    """An editor that rewrites a graph node by node; `new` collects the replacements."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._model = model
        self._constants = {tensor.name: tensor for tensor in model.graph.initializer}
        self._producers = {name: node for node in model.graph.node for name in node.output}
        self.new = Nodes()

    def value(self, name: str) -> Constant:
        """Return a constant from the original graph as float32."""
        return np.asarray(numpy_helper.to_array(self._constants[name]), np.float32)

    def producer(self, name: str) -> onnx.NodeProto:
        """Return the node in the original graph that computes `name`."""
        return self._producers[name]

    def finish(self) -> None:
        """Put the new nodes into the model."""
        graph = self._model.graph
        used = {name for node in self.new.nodes for name in node.input}
        constants = self._constants | {tensor.name: tensor for tensor in self.new.constants}
        if any(node.domain == CONTRIB_DOMAIN for node in self.new.nodes):
            self._model.opset_import.append(helper.make_opsetid(CONTRIB_DOMAIN, 1))
        del graph.node[:], graph.initializer[:]
        graph.node.extend(self.new.nodes)
        graph.initializer.extend(tensor for name, tensor in constants.items() if name in used)


@dataclass(frozen=True, slots=True)
class Int8Settings:
    """Settings for quantizing an encoder.

    Attributes:
        smoothing: Share of the differences in size between input channels that is moved to the weights, from 0 to 1.
            Inputs are centred unless both `smoothing` and `outliers` are 0.
        outliers: Number of a normalisation's largest output channels that stay in float32.
        hidden_outliers: Number of the largest channels between the feed-forward matrices that stay in float32.
        excluded: Names of products that stay in float32, for example ``"layer_1.down"``.
    """

    smoothing: float
    outliers: int
    hidden_outliers: int
    excluded: frozenset[str]


def quantize_int8(model: onnx.ModelProto, rows: Iterator[Mapping[str, Array64]], settings: Int8Settings) -> None:
    """Quantize the products of a graph from `encoder_graph` in place; `rows` must come from `entering_rows`."""
    editor = GraphEditor(model)
    writer = _LayerWriter(editor, settings)
    for node in model.graph.node:
        layer, _, part = node.name.partition(".")
        if part == "qkv":
            writer.rows = next(rows)
        if part not in writer.rows or not writer.replace(node, layer, part):
            editor.new.nodes.append(node)
    editor.finish()


class _LayerWriter:
    def __init__(self, editor: GraphEditor, settings: Int8Settings) -> None:
        self.rows: Mapping[str, Array64] = {}
        self._editor = editor
        self._nodes = editor.new
        self._settings = settings

    def replace(self, node: onnx.NodeProto, layer: str, part: str) -> bool:
        """Write the replacement for `node`, or return False if the node stays unchanged."""
        excluded = node.name in self._settings.excluded
        if part == "up":
            return self._replace_up(node, layer, excluded=excluded)
        if excluded:
            return False
        entering, weight_name, third = node.input
        weight = self._editor.value(weight_name).astype(np.float64)
        added: Added = third
        if part == "down":
            product, added = self._write_down(node, weight, layer)
        elif part == "attention_out":
            product = self._write(node.name, entering, weight, self.rows[part])
        else:
            product, added = self._write_evened(node, weight, self._editor.value(third), self.rows[part])
        self._add(node.output[0], product, added)
        return True

    def _replace_up(self, node: onnx.NodeProto, layer: str, *, excluded: bool) -> bool:
        apart = self._hidden_outliers(layer)
        if excluded and not apart.size:
            return False
        entering, weight_name, bias_name = node.input
        weight, bias = self._editor.value(weight_name).astype(np.float64), self._editor.value(bias_name)
        if apart.size:
            aside = self._gemm(f"{node.name}.aside", entering, weight[:, apart], bias[apart])
            self._nodes.op("Gelu", aside, name=f"{aside}.gelu")
            weight, bias = np.delete(weight, apart, axis=1), np.delete(bias, apart)
        if excluded:
            self._gemm(node.output[0], entering, weight, bias)
        else:
            product, added = self._write_evened(node, weight, bias, self.rows["up"])
            self._add(node.output[0], product, added)
        return True

    def _add(self, name: str, product: str, added: Added) -> None:
        if isinstance(added, str):
            self._nodes.op("Add", product, added, name=name)
        else:
            # Subtract the negated constant: ONNX Runtime would fuse an Add into a Gemm, which has no integer kernel.
            self._nodes.op("Sub", product, self._nodes.floats(f"{name}.negated_bias", -added), name=name)

    def _gemm(self, name: str, entering: str, weight: Array64, added: Added) -> str:
        nodes = self._nodes
        third = added if isinstance(added, str) else nodes.floats(f"{name}.left_bias", added)
        return nodes.op("Gemm", entering, nodes.floats(f"{name}.left_weight", weight), third, name=name)

    def _hidden_outliers(self, layer: str) -> Places:
        if f"{layer}.down" in self._settings.excluded:
            return np.arange(0)
        return _largest(np.abs(self.rows["down"]).max(axis=0), self._settings.hidden_outliers)

    def _write_down(self, node: onnx.NodeProto, weight: Array64, layer: str) -> tuple[str, str]:
        entering, _, residual = node.input
        apart = self._hidden_outliers(layer)
        rows = np.delete(self.rows["down"], apart, axis=1)
        if apart.size:
            residual = self._gemm(f"{node.name}.aside", f"{layer}.up.aside.gelu", weight[apart], residual)
        product = self._write(node.name, entering, np.delete(weight, apart, axis=0), rows)
        return product, residual

    def _write_evened(
        self, node: onnx.NodeProto, weight: Array64, bias: NDArray[np.float32], rows: Array64
    ) -> tuple[str, Added]:
        settings = self._settings
        if not settings.smoothing and not settings.outliers:
            product = self._write(node.name, node.input[0], weight, rows)
            return product, bias
        mean = np.rint(rows.mean(axis=0) * _MEAN_GRID) / _MEAN_GRID
        size = np.abs(rows - mean).max(axis=0)
        scale = _even(size, weight, settings.smoothing)
        apart = _largest(size / scale, settings.outliers)
        factor = 1 / scale
        factor[apart] = 0
        product = self._write(
            node.name,
            self._normalise_again(node, mean, factor),
            weight * np.where(factor, scale, 0)[:, None],
            (rows - mean) * factor,
        )
        whole = bias + _times(np.where(factor, mean, 0), weight)
        if not apart.size:
            return product, whole
        few = self._nodes.constant(f"{node.name}.outliers", apart)
        chosen = self._nodes.op("Gather", node.input[0], few, name=f"{node.name}.few", axis=1)
        return product, self._gemm(f"{node.name}.few_product", chosen, weight[apart], whole)

    def _write(self, name: str, entering: str, weight: Array64, rows: Array64) -> str:
        """Write ``entering @ weight`` in integers; return the product's name, float32 [rows, outputs].

        Each row's largest value sets the row's scale, so no value is clipped and rows stay independent.

        Args:
            name: Prefix of the new tensors' names.
            entering: Name of a float32 [rows, inputs] tensor.
            weight: float64 [inputs, outputs].
            rows: float64 [tokens, inputs], the inputs for the calibration texts.
        """
        nodes = self._nodes
        after_gelu = name.endswith(".down")
        codes, steps = round_with_gram(weight, rows)
        stored = nodes.constant(f"{name}.codes", codes), nodes.constant(f"{name}.steps", steps)
        restored = nodes.op("DequantizeLinear", *stored, name=f"{name}.restored", axis=1)
        sizes = entering if after_gelu else nodes.op("Abs", entering, name=f"{name}.sizes")
        largest = nodes.op("ReduceMax", sizes, nodes.ints(f"{name}.axis", 1), name=f"{name}.largest")
        zero = _GELU_ZERO if after_gelu else _SYMMETRIC_ZERO_POINT
        share = nodes.floats(f"{name}.share", 1 / (_ACTIVATION_LEVELS - zero))
        least = nodes.floats(f"{name}.least", _GELU_DEPTH / _GELU_ZERO if after_gelu else 1e-20)
        step = nodes.op("Mul", largest, share, name=f"{name}.large_step")
        step = nodes.op("Max", step, least, name=f"{name}.row_step")
        divided = nodes.op("Div", entering, step, name=f"{name}.divided")
        unit = f"{name}.unit"
        scale = nodes.constant(f"{unit}.step", np.float32(1)), nodes.constant(f"{unit}.zero", np.uint8(zero))
        rounded = nodes.op("QuantizeLinear", divided, *scale, name=f"{unit}.rounded")
        again = nodes.op("DequantizeLinear", rounded, *scale, name=f"{unit}.again")
        product = nodes.op("MatMul", again, restored, name=f"{unit}.product")
        return nodes.op("Mul", product, step, name=f"{name}.product")

    def _normalise_again(self, node: onnx.NodeProto, mean: Array64, factor: Array64) -> str:
        norm = self._editor.producer(node.input[0])
        scale, shift = (self._editor.value(name).astype(np.float64) for name in norm.input[1:])
        return self._nodes.op(
            "LayerNormalization",
            norm.input[0],
            self._nodes.floats(f"{node.name}.even.scale", scale * factor),
            self._nodes.floats(f"{node.name}.even.shift", (shift - mean) * factor),
            name=f"{node.name}.even",
            **{attribute.name: helper.get_attribute_value(attribute) for attribute in norm.attribute},
        )


def _largest(sizes: Array64, count: int) -> Places:
    return np.sort(np.argsort(-sizes, kind="stable")[:count])


def _even(size: Array64, weight: Array64, smoothing: float) -> Array64:
    # The scales are powers of 2^(1/8) with a geometric mean near 1.
    powers = smoothing * np.log2(np.maximum(size, 1e-3))
    powers -= (1 - smoothing) * np.log2(np.maximum(np.abs(weight).max(axis=1), 1e-4))
    if not smoothing:
        return np.ones_like(size)
    found: Array64 = 2 ** (np.rint((powers - powers.mean()) * _SCALE_GRID) / _SCALE_GRID)
    return found


def _times(vector: Array64, weight: Array64) -> Array64:
    # Sum input by input, because a BLAS has no fixed order.
    total = np.zeros(weight.shape[1])
    for value, row in zip(vector, weight, strict=True):
        total += value * row
    return total


def quantize_nbits(model: onnx.ModelProto, products: set[str], block_size: int, accuracy_level: int) -> None:
    """Replace the Gemm nodes `products` of a graph from `encoder_graph` with MatMulNBits nodes, in place.

    `block_size`, a power of 2, is the number of inputs that share a scale. `accuracy_level` is the precision of the
    kernel's activations; 4 also rounds them to 8 bits.
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
    steps = np.maximum(np.abs(blocks).max(axis=2, keepdims=True), 1e-12) / _WEIGHT_LEVELS
    codes = np.rint(blocks / steps) + _NBITS_ZERO_POINT
    return codes.astype(np.uint8), steps[:, :, 0].astype(np.float32)
