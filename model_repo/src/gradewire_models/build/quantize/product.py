"""One matrix product in 8-bit integers, written with standard operators that onnxruntime fuses into its kernel.

The operands are quantized and dequantized around an ordinary MatMul (QDQ); MatMulIntegerToFloat is what runs. A row's
own scale cannot stand inside that pattern, so the rows are divided before it, at scale 1, and multiplied after it.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from gradewire_models.build.graph.nodes import Nodes
from gradewire_models.build.quantize.rounding import Array64, round_to_nearest, round_with_gram

Activations: TypeAlias = Literal["row", "static"]
Rounding: TypeAlias = Literal["gram", "nearest"]

_LEVELS = 255
_SYMMETRIC = 128
# GELU never falls below -0.16997. A fixed zero point of 24 steps takes that in where a step is at least 0.17 / 24.
_GELU_ZERO = 24
_GELU_DEPTH = 0.17


@dataclass(frozen=True, slots=True)
class ProductWriter:
    """Writes products.

    Attributes:
        nodes: Where to.
        activations: ``"row"``: each row has the scale of its own largest value, so nothing is cut off and no row
            depends on another; ``"static"``: one scale from the calibration rows.
        rounding: Of the weights: with the calibration rows in view, or to the nearest step.
        percentile: Static only: share of the calibration values that the scale takes in, in (50, 100]; 100 takes all.
    """

    nodes: Nodes
    activations: Activations
    rounding: Rounding
    percentile: float

    def write(self, name: str, entering: str, weight: Array64, rows: Array64, *, after_gelu: bool) -> str:
        """Writes ``entering @ weight``.

        Args:
            name: Beginning of the new tensors' names.
            entering: Name of a float32 [rows, inputs] tensor.
            weight: float64 [inputs, outputs].
            rows: float64 [tokens, inputs], what enters on the calibration texts.
            after_gelu: Whether `entering` comes out of GELU.

        Returns:
            Name of the product, float32 [rows, outputs].
        """
        codes, steps = round_with_gram(weight, rows) if self.rounding == "gram" else round_to_nearest(weight)
        restored = self.nodes.op(
            "DequantizeLinear",
            self.nodes.constant(f"{name}.codes", codes),
            self.nodes.constant(f"{name}.steps", steps),
            name=f"{name}.restored",
            axis=1,
        )
        if self.activations == "static":
            return self._static(name, entering, restored, rows)
        return self._by_row(name, entering, restored, after_gelu=after_gelu)

    def _static(self, name: str, entering: str, restored: str, rows: Array64) -> str:
        low = min(0.0, float(np.percentile(rows, 100 - self.percentile)))
        high = max(0.0, float(np.percentile(rows, self.percentile)))
        step = np.float32(max(high - low, 1e-12) / _LEVELS)
        zero = np.uint8(round(-low / step))
        return self._round(name, entering, restored, step, zero)

    def _by_row(self, name: str, entering: str, restored: str, *, after_gelu: bool) -> str:
        sizes = entering if after_gelu else self.nodes.op("Abs", entering, name=f"{name}.sizes")
        largest = self.nodes.op("ReduceMax", sizes, self.nodes.ints(f"{name}.axis", 1), name=f"{name}.largest")
        zero = _GELU_ZERO if after_gelu else _SYMMETRIC
        share = self.nodes.floats(f"{name}.share", 1 / (_LEVELS - zero))
        least = self.nodes.floats(f"{name}.least", _GELU_DEPTH / _GELU_ZERO if after_gelu else 1e-20)
        step = self.nodes.op("Mul", largest, share, name=f"{name}.large_step")
        step = self.nodes.op("Max", step, least, name=f"{name}.row_step")
        divided = self.nodes.op("Div", entering, step, name=f"{name}.divided")
        product = self._round(f"{name}.unit", divided, restored, np.float32(1), np.uint8(zero))
        return self.nodes.op("Mul", product, step, name=f"{name}.product")

    def _round(self, name: str, entering: str, restored: str, step: np.float32, zero: np.uint8) -> str:
        scale = (self.nodes.constant(f"{name}.step", step), self.nodes.constant(f"{name}.zero", zero))
        rounded = self.nodes.op("QuantizeLinear", entering, *scale, name=f"{name}.rounded")
        again = self.nodes.op("DequantizeLinear", rounded, *scale, name=f"{name}.again")
        return self.nodes.op("MatMul", again, restored, name=f"{name}.product")
