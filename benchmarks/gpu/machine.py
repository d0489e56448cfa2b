"""Describe the machine: its GPU, the GPU's limits, and the libraries that ONNX Runtime needs for the GPU."""

import ctypes.util
import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from typing import Final

from benchmarks.gpu.roofline import Card, card_named

from gradewire_models.runtime import onnxruntime
from gradewire_server.encoders.cuda import Gpu, find_gpu
from gradewire_server.settings.engine import GpuConfig

_LIBRARIES: Final = ("cuda", "cudart", "cublas", "cublasLt", "cudnn", "cufft", "curand", "nvrtc")


@dataclass(frozen=True)
class Machine:
    """The available hardware and software.

    Attributes:
        gpu_name: Name, driver and memory from nvidia-smi; "" without a GPU.
        libraries: NVIDIA libraries that the system's loader finds.
    """

    cores: int
    python: str
    onnxruntime: str
    gpu_name: str
    libraries: tuple[str, ...]
    gpu: Gpu

    @property
    def card(self) -> Card | None:
        """The GPU's limits, or None for an unknown GPU."""
        return card_named(self.gpu_name)


def look() -> Machine:
    """Describe the machine; this takes a second if there is a GPU."""
    return Machine(
        cores=len(os.sched_getaffinity(0)),
        python=platform.python_version(),
        onnxruntime=f"{onnxruntime.__version__} ({', '.join(onnxruntime.get_available_providers())})",
        gpu_name=_nvidia_smi(),
        libraries=tuple(name for name in _LIBRARIES if ctypes.util.find_library(name)),
        gpu=find_gpu(GpuConfig()),
    )


def _nvidia_smi() -> str:
    command = shutil.which("nvidia-smi")
    if command is None:
        return ""
    asked = [command, "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    found = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=30)
    return found.stdout.strip().splitlines()[0] if found.returncode == 0 and found.stdout.strip() else ""
