"""ONNX Runtime with its telemetry off; import it from here and nowhere else.

From 1.29 on, the official builds for Linux and macOS report sessions and devices to their vendor unless this variable
is there before the library starts; `onnxruntime.disable_telemetry_events()` comes too late, a device id is written by
then. A service that sees people's answers must not call home unasked. Who wants the reports sets the variable to 0.
"""

import os

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

import onnxruntime

__all__ = ["cpu_session_options", "onnxruntime"]


def cpu_session_options(threads: int) -> onnxruntime.SessionOptions:
    """Options of a session on CPUs: so many threads, which do not spin while they wait, and exact 8-bit products.

    Without the last, x86 processors that lack VNNI add pairs of products of 8-bit integers in 16 bits, which saturates,
    silently. With it they take another kernel; processors with VNNI, and graphs in floats, compute as they do without.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.x64quantprecision", "1")
    return options
