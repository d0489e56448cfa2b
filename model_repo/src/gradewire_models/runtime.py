"""ONNX Runtime with its telemetry off; import it from here and nowhere else.

From 1.29 on, the official builds for Linux and macOS report sessions and devices to their vendor unless this variable
is there before the library starts; `onnxruntime.disable_telemetry_events()` comes too late, a device id is written by
then. A service that sees people's answers must not call home unasked. Who wants the reports sets the variable to 0.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

import onnxruntime

from gradewire_models.processor import has_vnni

if TYPE_CHECKING:
    from onnx import NodeProto

__all__ = ["cpu_session_options", "onnxruntime", "open_int8"]


def cpu_session_options(threads: int) -> onnxruntime.SessionOptions:
    """Return the options of a session on CPUs, with exact products of 8-bit integers.

    x86 processors that lack VNNI add pairs of products of 8-bit integers in 16 bits, which saturates, silently. There
    the options choose a kernel that is exact. Processors with VNNI must not get it: their own is exact and faster, and
    ONNX Runtime would rewrite their graphs all the same.

    Idle threads do not spin, which would keep their cores busy. Do not set that entry again: ONNX Runtime would write
    a warning to standard error.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if not has_vnni():
        options.add_session_config_entry("session.x64quantprecision", "1")
    return options


def open_int8(path: Path, options: onnxruntime.SessionOptions) -> onnxruntime.InferenceSession:
    """Open a judge's graph, its weights beside it; options are those of `cpu_session_options`, and may be added to.

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
    """Return whether it is a product whose last input is the zero point of its weights."""
    return node.op_type == "MatMulIntegerToFloat" and len(node.input) == 6
