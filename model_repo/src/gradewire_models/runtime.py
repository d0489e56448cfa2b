"""Import ONNX Runtime with its telemetry off; always import it from this module.

From 1.29 on, the official builds for Linux and macOS report sessions and devices to their vendor unless
``ORT_DISABLE_TELEMETRY`` is set before the library loads; `onnxruntime.disable_telemetry_events()` comes too late. A
service for private answers must not send reports by default. To send reports, set the variable to 0.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

import onnxruntime

from gradewire_models.processor import has_vnni

if TYPE_CHECKING:
    from onnx import NodeProto

__all__ = ["cpu_session_options", "onnxruntime", "open_int8", "without_plugin_warning"]

_LOG_WARNINGS: Final = 2
_LOG_ERRORS: Final = 3


def cpu_session_options(threads: int) -> onnxruntime.SessionOptions:
    """Return the options for a CPU session that multiplies 8-bit integers exactly.

    x86 processors without VNNI add pairs of 8-bit products in 16 bits, and the sum saturates silently. For these
    processors, the options select an exact kernel.

    Spinning is off, because threads that spin while they wait keep their cores busy. If you set this option again, ONNX
    Runtime writes a warning to standard error.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if not has_vnni():
        options.add_session_config_entry("session.x64quantprecision", "1")
    return options


@contextmanager
def without_plugin_warning() -> Iterator[None]:
    """Keep ONNX Runtime from warning about a missing plugin device while a session for a GPU opens.

    If the provider's options name a device, ONNX Runtime first looks for a plugin with that device. The CUDA provider
    is built in, so there is no plugin, and the built-in provider is used. Errors are still logged.
    """
    onnxruntime.set_default_logger_severity(_LOG_ERRORS)
    try:
        yield
    finally:
        onnxruntime.set_default_logger_severity(_LOG_WARNINGS)


def open_int8(path: Path, options: onnxruntime.SessionOptions) -> onnxruntime.InferenceSession:
    """Open a judge's graph with its weights; `options` must be based on `cpu_session_options`.

    Raises:
        Exception: ONNX Runtime cannot open the graph. Its errors have no narrower base class.
    """
    source: Path | bytes = path
    if not has_vnni():
        import onnx  # noqa: PLC0415 - most processors do not need this slow import

        # For exact products, ONNX Runtime makes the weights unsigned, and fails if several products share a zero point.
        # A judge's products all share the zero point 0. This is the default, so remove the shared zero point.
        model = onnx.load(path, load_external_data=False)
        unused = {node.input.pop() for node in model.graph.node if _has_weight_zero(node)}
        for initializer in [value for value in model.graph.initializer if value.name in unused]:
            model.graph.initializer.remove(initializer)
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(path.parent))
        source = model.SerializeToString()
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def _has_weight_zero(node: "NodeProto") -> bool:
    """Return True if `node` is a product whose last input is its weights' zero point."""
    return node.op_type == "MatMulIntegerToFloat" and len(node.input) == 6
