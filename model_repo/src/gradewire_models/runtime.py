"""ONNX Runtime with its telemetry off; import it from here and nowhere else.

From 1.29 on, the official builds for Linux and macOS report sessions and devices to their vendor unless this variable
is there before the library starts; `onnxruntime.disable_telemetry_events()` comes too late, a device id is written by
then. A service that sees people's answers must not call home unasked. Who wants the reports sets the variable to 0.
"""

import os

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

import onnxruntime

__all__ = ["onnxruntime"]
