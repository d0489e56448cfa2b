"""A graph under construction whose large weights go straight into a file beside it."""

from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from gradewire_models.build.graph.nodes import Nodes

# A page: weights that start on one can be mapped into memory as they are.
_ALIGNMENT = 4096


@dataclass(slots=True)
class JudgeNodes(Nodes):
    """Nodes and small constants in memory, weights in `data`.

    Attributes:
        data: The open file of weights.
        data_name: Its name, as the graph, which lies beside it, is to know it.
    """

    data: BinaryIO | None = None
    data_name: str = ""

    def weight(self, name: str, value: NDArray[np.generic]) -> str:
        """Writes a constant to the file of weights; returns its name.

        Raises:
            OSError: The file cannot be written.
        """
        if self.data is None:
            raise ValueError(f"the weight {name} has no file to go to")
        content = np.ascontiguousarray(value)
        self.data.write(b"\0" * (-self.data.tell() % _ALIGNMENT))
        tensor = onnx.TensorProto(
            name=name,
            data_type=helper.np_dtype_to_tensor_dtype(content.dtype),
            dims=content.shape,
            data_location=TensorProto.EXTERNAL,
        )
        place = {"location": self.data_name, "offset": self.data.tell(), "length": content.nbytes}
        for key, said in place.items():
            entry = tensor.external_data.add()
            entry.key, entry.value = key, str(said)
        self.data.write(content.data)
        self.constants.append(tensor)
        return name

    def scalar(self, name: str, value: np.generic) -> str:
        """Adds a constant without dimensions; returns its name."""
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def inner(self) -> "JudgeNodes":
        """An empty list of nodes for the body of a loop; its constants live outside."""
        return JudgeNodes(constants=self.constants)
