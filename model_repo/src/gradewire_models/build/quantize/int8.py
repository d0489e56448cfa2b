"""Encoders whose matrix products run in 8-bit integers, with the few channels that would ruin them left in float32.

What makes 8 bits enough (docs/adr/0009-quantized-encoders.md has the measurements):

- A few channels are many times larger than the rest. Those of a normalisation's output enter a small float32 product of
  their own and are 0 in the large one; those between the feed-forward matrices are computed apart from the start.
- The other channels are centred and evened out (Xiao et al. 2023, SmoothQuant). A second normalisation does it, with
  the centring and the scales in its own constants, so nothing is added to the work but that normalisation.
- Weights are rounded with the calibration rows in view.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper

from gradewire_models.build.quantize.editing import GraphEditor
from gradewire_models.build.quantize.product import Activations, ProductWriter, Rounding
from gradewire_models.build.quantize.rounding import Array64

Places: TypeAlias = NDArray[np.intp]
# A bias, or the name of what is to be added.
Added: TypeAlias = Array64 | NDArray[np.float32] | str

# Constants of the graph come from sums whose last bits differ between machines: rounded to a grid they do not.
_MEAN_GRID = 1024.0
_SCALE_GRID = 8.0


@dataclass(frozen=True, slots=True)
class Int8Settings:
    """How to quantize an encoder.

    Attributes:
        activations: Scale of what enters a product, see `ProductWriter`.
        rounding: Of the weights, see `ProductWriter`.
        percentile: Static activations only, see `ProductWriter`.
        smoothing: Share of the channels' unevenness that goes over to the weights, in [0, 1]; 0 leaves it and centres
            nothing.
        outliers: Largest channels of a normalisation's output that stay in float32.
        hidden_outliers: Largest channels between the feed-forward matrices that stay in float32.
        excluded: Names of products that stay in float32 wholly, e.g. ``"layer_1.down"``.
    """

    activations: Activations
    rounding: Rounding
    percentile: float
    smoothing: float
    outliers: int
    hidden_outliers: int
    excluded: frozenset[str]


def quantize_int8(model: onnx.ModelProto, rows: Iterator[Mapping[str, Array64]], settings: Int8Settings) -> None:
    """Replaces the products of a graph of `encoder_graph`, in place.

    Args:
        model: The graph.
        rows: What enters each layer's products, see `gradewire_models.build.quantize.entering_rows.entering_rows`.
        settings: How.
    """
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
    """Replaces the products of the layer that `rows` belong to."""

    def __init__(self, editor: GraphEditor, settings: Int8Settings) -> None:
        self.rows: Mapping[str, Array64] = {}
        self._editor = editor
        self._nodes = editor.new
        self._settings = settings
        self._write = ProductWriter(self._nodes, settings.activations, settings.rounding, settings.percentile).write

    def replace(self, node: onnx.NodeProto, layer: str, part: str) -> bool:
        """Writes what stands for `node`; False when it stays."""
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
            product = self._write(node.name, entering, weight, self.rows[part], after_gelu=False)
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
            # An addition of constants becomes part of a Gemm before the integer kernel is looked for, which has none.
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
        return self._write(node.name, entering, np.delete(weight, apart, axis=0), rows, after_gelu=True), residual

    def _write_evened(
        self, node: onnx.NodeProto, weight: Array64, bias: NDArray[np.float32], rows: Array64
    ) -> tuple[str, Added]:
        settings = self._settings
        if not settings.smoothing and not settings.outliers:
            product = self._write(node.name, node.input[0], weight, rows, after_gelu=False)
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
            after_gelu=False,
        )
        whole = bias + _times(np.where(factor, mean, 0), weight)
        if not apart.size:
            return product, whole
        few = self._nodes.constant(f"{node.name}.outliers", apart)
        chosen = self._nodes.op("Gather", node.input[0], few, name=f"{node.name}.few", axis=1)
        return product, self._gemm(f"{node.name}.few_product", chosen, weight[apart], whole)

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
    # Powers of 2^(1/8), their geometric mean near 1.
    powers = smoothing * np.log2(np.maximum(size, 1e-3))
    powers -= (1 - smoothing) * np.log2(np.maximum(np.abs(weight).max(axis=1), 1e-4))
    if not smoothing:
        return np.ones_like(size)
    found: Array64 = 2 ** (np.rint((powers - powers.mean()) * _SCALE_GRID) / _SCALE_GRID)
    return found


def _times(vector: Array64, weight: Array64) -> Array64:
    # Input by input, in an order that does not depend on a BLAS.
    total = np.zeros(weight.shape[1])
    for value, row in zip(vector, weight, strict=True):
        total += value * row
    return total
