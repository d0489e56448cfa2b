"""A list of ONNX nodes and constants under construction."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from numpy.typing import ArrayLike
from onnx import TensorProto, helper, numpy_helper


@dataclass(slots=True)
class Nodes:
    """Nodes in the order of computation, and the constants they use.

    Attributes:
        nodes: What was written so far.
        constants: Weights and small tables, stored as raw bytes.
        float_type: Type of the graph's weights and of what is computed with them.
    """

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    float_type: int = TensorProto.FLOAT

    def op(self, kind: str, *inputs: str, name: str, **attributes: Any) -> str:
        """Adds a standard operator with one output called `name`; returns that name."""
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    def split(self, inputs: str, sizes: str, *names: str, axis: int) -> tuple[str, ...]:
        """Splits `inputs` along `axis`; returns the parts' names."""
        self.nodes.append(helper.make_node("Split", [inputs, sizes], names, name=f"{names[0]}.split", axis=axis))
        return names

    def constant(self, name: str, value: ArrayLike) -> str:
        """Adds a constant; returns its name."""
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def floats(self, name: str, value: ArrayLike) -> str:
        """Adds a constant rounded to the graph's float type; returns its name."""
        return self.constant(name, np.asarray(value, helper.tensor_dtype_to_np_dtype(self.float_type)))

    def ints(self, name: str, *values: int) -> str:
        """Adds an int64 [len(values)] constant; returns its name."""
        return self.constant(name, np.array(values, np.int64))
