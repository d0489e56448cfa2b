"""The real Triton server on a machine without NVIDIA's container.

The server comes in a wheel; a backend of ours stands in for the ONNX Runtime backend that the wheel lacks.
"""

from gradewire_models.triton.environment import ensure_environment
from gradewire_models.triton.errors import EnvironmentBrokenError, TritonError, TritonStartError
from gradewire_models.triton.process import TritonProcess
from gradewire_models.triton.server_options import ServerOptions

__all__ = [
    "EnvironmentBrokenError",
    "ServerOptions",
    "TritonError",
    "TritonProcess",
    "TritonStartError",
    "ensure_environment",
]
