"""The real Triton server on a machine without NVIDIA's container.

The server comes in a wheel; backends of ours emulate the ONNX Runtime and vLLM backends that the wheel lacks.
"""

from gradewire_triton.environment import ensure_environment
from gradewire_triton.errors import EnvironmentBrokenError, TritonError, TritonStartError
from gradewire_triton.process import TritonProcess
from gradewire_triton.server_options import ServerOptions

__all__ = [
    "EnvironmentBrokenError",
    "ServerOptions",
    "TritonError",
    "TritonProcess",
    "TritonStartError",
    "ensure_environment",
]
