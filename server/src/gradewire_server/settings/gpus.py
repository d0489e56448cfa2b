"""The GPUs of this machine, and their division among server processes."""

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Final

from gradewire_server.settings.setting import GIB, MIB, SettingsError

GPU_PROCESS_BYTES: Final = 3 * GIB // 2
"""GPU memory of a process: the CUDA context, an encoder with the buffers of its shapes, and kernels' workspace.

This is an estimate from the sizes of these parts. It was not measured.
"""
HOST_BYTES_PER_GPU_PROCESS: Final = 2 * GIB
"""Main memory of a process that uses a GPU, with CUDA's libraries. This is an estimate."""
_QUERY: Final = ("index", "uuid", "memory.free", "compute_mode")
_COMMAND: Final = ("nvidia-smi", f"--query-gpu={','.join(_QUERY)}", "--format=csv,noheader,nounits")
_TIMEOUT_S: Final = 30.0
_VISIBLE: Final = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True, slots=True)
class VisibleGpu:
    """A GPU that this machine's processes may use.

    Attributes:
        index: The index by which CUDA knows the GPU in these processes.
        free_bytes: Free GPU memory, or 0 if it is not known.
        exclusive: True if the compute mode allows one process at a time.
    """

    index: int
    free_bytes: int
    exclusive: bool = False

    @property
    def max_processes(self) -> int:
        """The number of processes for which the GPU has room, at least 1."""
        return 1 if self.exclusive else max(1, self.free_bytes // GPU_PROCESS_BYTES)


def visible_gpus() -> tuple[VisibleGpu, ...]:
    """Return the GPUs that nvidia-smi lists and $CUDA_VISIBLE_DEVICES allows, or none without a driver."""
    try:
        listed = subprocess.run(  # noqa: S603 - a constant command
            _COMMAND, capture_output=True, text=True, check=True, timeout=_TIMEOUT_S
        ).stdout
    except (OSError, subprocess.SubprocessError):  # no driver, or a driver without a GPU
        return ()
    return tuple(parse_gpus(listed, os.environ.get(_VISIBLE)))


def parse_gpus(listed: str, visible: str | None) -> Iterator[VisibleGpu]:
    """Yield the GPUs of nvidia-smi's output, in CUDA's order.

    Args:
        listed: The output of nvidia-smi as CSV.
        visible: The value of $CUDA_VISIBLE_DEVICES (indices, UUIDs or beginnings of UUIDs), or None if it is unset. As
            in CUDA, the first unknown GPU ends the list.
    """
    rows = [[field.strip() for field in line.split(",")] for line in listed.splitlines() if line.strip()]
    rows = [row for row in rows if len(row) == len(_QUERY)]
    names = [row[0] for row in rows] if visible is None else [name.strip() for name in visible.split(",")]
    for index, name in enumerate(names):
        row = next((row for row in rows if name == row[0] or (name and row[1].startswith(name))), None)
        if row is None:
            if not name.startswith("MIG-"):
                return
            yield VisibleGpu(index, 0)  # nvidia-smi lists no memory of a part of a GPU
        elif row[3] != "Prohibited":
            free_mib = int(row[2]) if row[2].isdecimal() else 0
            yield VisibleGpu(index, free_mib * MIB, exclusive=row[3].startswith("Exclusive"))


def gpus_of(device: str, gpus: Sequence[VisibleGpu]) -> list[VisibleGpu]:
    """Return the GPUs that the setting `device` allows: all for ``cuda``, one for ``cuda:N``, otherwise none."""
    kind, _, index = device.partition(":")
    return [gpu for gpu in gpus if kind == "cuda" and index in {"", str(gpu.index)}]


def most_processes(gpus: Sequence[VisibleGpu]) -> int:
    """Return the number of processes for which these GPUs have room; 1 without a GPU."""
    return sum(gpu.max_processes for gpu in gpus) or 1


def check_compute_mode(gpus: Sequence[VisibleGpu], count: int) -> None:
    """Check that these GPUs let `count` processes in; the server tells all else when it loads the model.

    Raises:
        SettingsError: All GPUs allow only one process each, and there are fewer than `count`.
    """
    if gpus and all(gpu.exclusive for gpu in gpus) and count > len(gpus):
        raise SettingsError(
            f"processes = {count} needs GPUs that several processes may use, but nvidia-smi shows the exclusive "
            f"compute mode. Set processes = {len(gpus)}, or run: nvidia-smi --compute-mode=DEFAULT"
        )


@dataclass(frozen=True, slots=True)
class GpuShare:
    """One process's share of the GPUs.

    Attributes:
        device: The process's value of the setting `device`.
        processes: The number of processes that use the same GPU, this one included.
    """

    device: str
    processes: int


def gpu_shares(given: Mapping[str, object], gpus: Sequence[VisibleGpu], count: int) -> list[GpuShare]:
    """Return each process's share of the GPUs: the GPUs take turns, and exclusive GPUs have one turn.

    A GPU without room for more processes has no further turn until all GPUs are full.

    Args:
        given: All settings by name.
        gpus: The machine's GPUs.
        count: The number of processes.
    """
    device = str(given["device"])
    allowed = gpus_of(device, gpus)
    if not allowed:
        return [GpuShare(device, count)] * count
    further = [gpu for gpu in allowed if not gpu.exclusive] or allowed
    rounds = range(min(count, max(gpu.max_processes for gpu in allowed)))
    roomy = [gpu for number in rounds for gpu in allowed if gpu.max_processes > number]
    turns = [*roomy, *islice(cycle(further), max(0, count - len(roomy)))][:count]
    return [GpuShare(f"cuda:{gpu.index}", turns.count(gpu)) for gpu in turns]
