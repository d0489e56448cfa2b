"""Describe the machine and the conditions of a run: the GPU and its limits, libraries, models, rows and time."""

import ctypes.util
import json
import os
import platform
import random
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.gpu.calling import START_S, items_of, serving
from benchmarks.gpu.roofline import Card, card_named
from benchmarks.gpu.step_processes import NotRunError

from gradewire_models.repository.built import BuiltModel
from gradewire_models.runtime import onnxruntime
from gradewire_server.encoders.cuda import Gpu, find_gpu
from gradewire_server.settings.engine import GpuConfig

SEED: Final = 20261125
EVOUNA: Final = "EVOUNA"
DRAWN: Final = "drawn"
_FIELDS: Final = ("question", "references", "prediction")
_CALLS_A_CLIENT: Final = 8
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


@dataclass(frozen=True, slots=True)
class Bench:
    """The conditions of a step.

    Attributes:
        repository: Directory of the models.
        cpu: The encoder for CPUs.
        gpu: The same encoder for GPUs; in a rehearsal, `cpu` again.
        seconds: Seconds for each row of a table.
        ends_s: End of the step in `time.monotonic` seconds.
        rehearsal: True to run the GPU's steps on the CPU, in tiny shapes.
        rows_file: File of labelled rows; if it is missing, rows are drawn.
        checkpoint: The encoder as a folder for sentence-transformers.
    """

    machine: Machine
    repository: Path
    cpu: BuiltModel
    gpu: BuiltModel
    seconds: float
    ends_s: float
    rehearsal: bool
    rows_file: Path
    checkpoint: Path

    @property
    def left_s(self) -> float:
        """Seconds that are left to the step."""
        return self.ends_s - time.monotonic()

    def need_gpu(self) -> int:
        """Return the GPU's index; 0 in a rehearsal.

        Raises:
            NotRunError: No GPU can be used.
        """
        index = 0 if self.rehearsal else self.machine.gpu.index
        if index is None:
            raise NotRunError(self.machine.gpu.problem)
        return index

    def device(self) -> str:
        """Return the device of the GPU's steps, such as "cuda:0".

        Raises:
            NotRunError: No GPU can be used.
        """
        index = self.need_gpu()
        return "cpu" if self.rehearsal else f"cuda:{index}"

    @contextmanager
    def server(self, *, processes: int = 1) -> Iterator[str]:
        """Start a server with the GPU's encoder, and yield its HOST:PORT.

        Raises:
            NotRunError: No GPU can be used.
            RuntimeError: The server did not start in time.
        """
        flags = {"processes": str(processes), "device": self.device(), "default-model": self.gpu.name}
        with serving(self.repository, flags, start_s=self._start_s()) as address:
            yield address

    @contextmanager
    def cpu_server(self, *, workers: int = 0) -> Iterator[str]:
        """Start a server on the CPU, and yield its HOST:PORT. 0 `workers` are one per core.

        Raises:
            RuntimeError: The server did not start in time.
        """
        flags = {"processes": "1", "device": "cpu", "default-model": self.cpu.name, "workers": str(workers)}
        with serving(self.repository, flags, start_s=self._start_s()) as address:
            yield address

    def _start_s(self) -> float:
        return min(START_S, max(1.0, self.left_s))

    def clients(self, callers: int) -> int:
        """Return the number of client processes for concurrent calls; a power of two that leaves most cores free."""
        most = max(1, min(callers // _CALLS_A_CLIENT, self.machine.cores // 4))
        return 1 << (most.bit_length() - 1)

    def rows(self, count: int) -> tuple[str, list[dict[str, Any]]]:
        """Return at most `count` rows in random order, and their source: `EVOUNA` or `DRAWN`."""
        count = min(count, 24) if self.rehearsal else count
        if not self.rows_file.is_file():
            return DRAWN, items_of("rows", count)
        with self.rows_file.open(encoding="utf-8") as lines:
            found = [{name: row[name] for name in _FIELDS} for row in map(json.loads, lines)]
        random.Random(SEED).shuffle(found)  # noqa: S311 - no secret
        return EVOUNA, found[:count]


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
