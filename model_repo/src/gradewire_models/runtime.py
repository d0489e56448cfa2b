"""Import ONNX Runtime with its telemetry off; always import it from here.

From 1.29 on, the official builds for Linux and macOS report sessions and devices to their vendor unless this variable
is set before the library starts. `onnxruntime.disable_telemetry_events()` is too late, because a device id is written
first. A service that handles private answers must not call home by default. To send reports, set the variable to 0.
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

    x86 processors without VNNI add pairs of 8-bit products in 16 bits, which saturates silently; these options choose
    an exact kernel there. Processors with VNNI must not get it: their own kernel is exact and faster, and ONNX Runtime
    would still rewrite their graphs.

    Threads that spin wake faster, but keep their cores busy. Do not set spinning again in the options, or ONNX Runtime
    writes a warning to standard error.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if not has_vnni():
        options.add_session_config_entry("session.x64quantprecision", "1")
    return options


def open_int8(path: Path, options: onnxruntime.SessionOptions) -> onnxruntime.InferenceSession:
    """Open a judge's graph with its weights; `options` come from `cpu_session_options`, and may be extended.

    Raises:
        Exception: ONNX Runtime cannot open it; its errors share no narrower base.
    """
    source: Path | bytes = path
    if not has_vnni():
        import onnx  # noqa: PLC0415 - a judge starts faster without it

        # For exact products ONNX Runtime makes the weights unsigned, and fails if several products share one zero
        # point. All products of a judge do. Their zero point is 0, the default, so it can be removed.
        model = onnx.load(path, load_external_data=False)
        unused = {node.input.pop() for node in model.graph.node if _has_weight_zero(node)}
        for initializer in [value for value in model.graph.initializer if value.name in unused]:
            model.graph.initializer.remove(initializer)
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(path.parent))
        source = model.SerializeToString()
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def _has_weight_zero(node: "NodeProto") -> bool:
    """Return True for a product whose last input is the zero point of its weights."""
    return node.op_type == "MatMulIntegerToFloat" and len(node.input) == 6
