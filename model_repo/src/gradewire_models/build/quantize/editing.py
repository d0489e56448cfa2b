"""A finished graph under change: some of its nodes replaced, the constants that are left without use dropped."""

from typing import TypeAlias

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from gradewire_models.build.graph.nodes import Nodes

CONTRIB_DOMAIN = "com.microsoft"

Constant: TypeAlias = NDArray[np.float32]


class GraphEditor:
    """A graph that is written again node by node: `new` holds what will replace the old nodes."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._model = model
        self._constants = {tensor.name: tensor for tensor in model.graph.initializer}
        self._producers = {name: node for node in model.graph.node for name in node.output}
        self.new = Nodes()

    def value(self, name: str) -> Constant:
        """A constant of the graph as it was, float32."""
        return np.asarray(numpy_helper.to_array(self._constants[name]), np.float32)

    def producer(self, name: str) -> onnx.NodeProto:
        """The node of the graph as it was that computes `name`."""
        return self._producers[name]

    def finish(self) -> None:
        """Puts the new nodes into the model."""
        graph = self._model.graph
        used = {name for node in self.new.nodes for name in node.input}
        # A new constant takes the place of an old one of its name.
        constants = self._constants | {tensor.name: tensor for tensor in self.new.constants}
        if any(node.domain == CONTRIB_DOMAIN for node in self.new.nodes):
            self._model.opset_import.append(helper.make_opsetid(CONTRIB_DOMAIN, 1))
        del graph.node[:], graph.initializer[:]
        graph.node.extend(self.new.nodes)
        graph.initializer.extend(tensor for name, tensor in constants.items() if name in used)
