"""Whether encoders of this process run on a GPU, and what they may take of it."""

import re
from typing import Annotated, Final

from pydantic import AfterValidator
from pydantic.dataclasses import dataclass

from gradewire_server.settings.setting import GROUP, Setting
from gradewire_server.settings.types import BytesOrAuto, Count

_DEVICE: Final = re.compile(r"auto|cpu|cuda(:\d{1,3})?")


def _check_device(device: str) -> str:
    if _DEVICE.fullmatch(device) is None:
        raise ValueError("device is auto, cpu, cuda or cuda:N, N being the number of a GPU from 0")
    return device


@dataclass(frozen=True, slots=True, config=GROUP)
class GpuConfig:
    """Models for GPUs (``NAME-fp16-cuda``) need one; those for CPUs stay on the CPU beside one."""

    device: Annotated[
        str,
        AfterValidator(_check_device),
        Setting(
            "device",
            "Where models for GPUs run in this process: auto (the first GPU, if there is one), cpu (nowhere), cuda or "
            "cuda:N (that GPU, or the server does not start).",
        ),
    ] = "auto"
    batch_tokens: Annotated[Count, Setting("gpu_batch_tokens", "Padded tokens of one encoder run on a GPU.")] = 16_384
    memory_limit_bytes: Annotated[
        BytesOrAuto,
        Setting("gpu_memory_limit", "GPU memory that one encoder's activations may take; 0: all there is."),
    ] = 0
    cuda_graphs: Annotated[
        bool, Setting("cuda_graphs", "Record each shape of a run as a CUDA graph, which then starts at once.")
    ] = True

    @property
    def asked(self) -> bool:
        """Whether the server shall not start without a GPU."""
        return self.device.startswith("cuda")

    @property
    def index(self) -> int:
        """Number of the GPU, from 0."""
        return int(self.device.partition(":")[2] or 0)
