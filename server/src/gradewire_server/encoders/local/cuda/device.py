"""Whether this process can use a GPU, and why not."""

import logging
from dataclasses import dataclass
from typing import Final

from gradewire_models.runtime import onnxruntime
from gradewire_server.settings.compute import GpuConfig

CUDA_PROVIDER: Final = "CUDAExecutionProvider"
CPU_PROVIDER: Final = "CPUExecutionProvider"

_INSTALL: Final = (
    "pip uninstall onnxruntime, then pip install 'gradewire[gpu]' and pip install --force-reinstall --no-deps "
    "onnxruntime-gpu (docs/operate/gpu.md)"
)
_SMALLEST_GRAPH: Final = bytes.fromhex(
    "08093a370a100a017812017922084964656e746974791201675a0f0a0178120a0a08080112040a020801620f0a0179120a0a"
    "08080112040a02080142040a001014"
)
"""An ONNX graph of one operator, Identity: what starts a provider, and shows whether it is there."""

_log = logging.getLogger(__name__)


class DeviceError(OSError):
    """The GPU that was asked for cannot be used; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """The GPU that models for GPUs run on.

    Attributes:
        index: From 0; None where there is none to use.
        problem: Why there is none.
    """

    index: int | None
    problem: str = ""


def find_gpu(config: GpuConfig) -> Gpu:
    """Finds what `device` asks for; takes a second where there is a GPU. Logs one line where ``auto`` finds none.

    Raises:
        DeviceError: A GPU was asked for by name and cannot be used.
    """
    if config.device == "cpu":
        return Gpu(None, "device is cpu")
    problem = _problem(config.index)
    if not problem:
        return Gpu(config.index)
    if config.asked:
        raise DeviceError(f"device {config.device} cannot be used: {problem}")
    _log.info("encoders run on the CPU (device auto): %s", problem)
    return Gpu(None, problem)


def _problem(index: int) -> str:
    if CUDA_PROVIDER not in onnxruntime.get_available_providers():
        return f"the onnxruntime that is installed ({onnxruntime.__version__}) has no {CUDA_PROVIDER}: {_INSTALL}"
    onnxruntime.preload_dlls()  # CUDA and cuDNN from NVIDIA's wheels, which lie on no path that is searched
    try:
        session = onnxruntime.InferenceSession(
            _SMALLEST_GRAPH, providers=[(CUDA_PROVIDER, {"device_id": str(index)})], enable_fallback=0
        )
    # What the provider raises has no class of its own.
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the reason
        return f"{CUDA_PROVIDER} does not start on GPU {index}: {' '.join(str(error).split())}; look at nvidia-smi"
    if CUDA_PROVIDER not in session.get_providers():
        # ONNX Runtime leaves a provider out whose libraries do not load, and logs which one is missing.
        return (
            f"{CUDA_PROVIDER} does not load: NVIDIA's driver, CUDA or cuDNN is missing or of another version (the line "
            "of onnxruntime above says which): pip install 'onnxruntime-gpu[cuda,cudnn]', and look at nvidia-smi"
        )
    return ""
