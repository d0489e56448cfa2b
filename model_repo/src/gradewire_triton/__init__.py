"""Run the real Triton server on a machine without NVIDIA's container.

The server is installed from a wheel. Emulated backends replace the ONNX Runtime and vLLM backends that the wheel lacks.
"""

from gradewire_triton.environment import EnvironmentBrokenError, ensure_environment
from gradewire_triton.process import ServerOptions, TritonProcess
from gradewire_triton.state import TritonStartError

__all__ = ["EnvironmentBrokenError", "ServerOptions", "TritonProcess", "TritonStartError", "ensure_environment"]
