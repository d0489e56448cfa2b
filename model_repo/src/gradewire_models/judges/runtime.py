"""Opens the int8 form of a judge in ONNX Runtime, on processors with and without VNNI."""

from pathlib import Path
from typing import TYPE_CHECKING

from gradewire_models.processor import has_vnni
from gradewire_models.runtime import onnxruntime

if TYPE_CHECKING:
    from onnx import NodeProto


def open_int8(path: Path, options: onnxruntime.SessionOptions) -> onnxruntime.InferenceSession:
    """Opens a judge's graph.

    Args:
        path: The graph, its weights beside it.
        options: Made by `cpu_session_options`; may be added to.

    Raises:
        Exception: ONNX Runtime cannot open it; its errors have no common base below Exception.
    """
    source: Path | bytes = path
    if not has_vnni():
        import onnx  # noqa: PLC0415 - a judge starts faster without it

        # For exact products ONNX Runtime makes the weights unsigned there, and fails where several products share one
        # zero point, as all of a judge do. It is zero, which is what a product without one has.
        model = onnx.load(path, load_external_data=False)
        unused = {node.input.pop() for node in model.graph.node if _has_weight_zero(node)}
        for initializer in [value for value in model.graph.initializer if value.name in unused]:
            model.graph.initializer.remove(initializer)
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(path.parent))
        source = model.SerializeToString()
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def _has_weight_zero(node: "NodeProto") -> bool:
    """Whether it is a product whose last input is the zero point of its weights."""
    return node.op_type == "MatMulIntegerToFloat" and len(node.input) == 6
