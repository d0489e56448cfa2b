"""Defaults for cores, memory and the number of processes, and each process's share of them."""

import math
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from gradewire_server.settings.engine import usable_cores
from gradewire_server.settings.gpus import (
    HOST_BYTES_PER_GPU_PROCESS,
    GpuShare,
    VisibleGpu,
    check_compute_mode,
    gpus_of,
    most_processes,
    visible_gpus,
)
from gradewire_server.settings.limits import Capacity
from gradewire_server.settings.setting import GIB, MIB, SettingsError

_CGROUP_FILES: Final = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
"""Files with a container's memory limit, in version 2 and version 1 of control groups."""
_MACHINE_SHARE: Final = 0.75
"""Share of the machine's memory for the server if no container sets a limit. The rest is for the system, the disk cache
and the judge's worker."""
_PARTS: Final = 8
"""Number of equal parts of a process's memory beyond its fixed memory. Vectors, requests and streams each get one."""
_MAX_SHARE_BYTES: Final = 256 * MIB
_LEAST_SHARE_BYTES: Final = 16 * MIB
_PROCESS_BYTES: Final = 608 * MIB
"""Memory of a process that has loaded the default encoder and its grader, and handles no requests."""

_WINDOW_GRAPHS_BYTES: Final = 1536 * MIB
"""Least memory limit of a process that opens 8-bit graphs. A smaller process keeps their memory for requests."""

_CORES_PER_PROCESS: Final = 2
"""One core for the event loop, which runs Python under one lock, and one for the encoder."""
_MEMORY_PER_PROCESS_BYTES: Final = GIB
_MOST_BY_DEFAULT: Final = 8
_SUPERVISOR_BYTES: Final = 64 * MIB
_JUDGE_HOST_BYTES: Final = 96 * MIB
"""Memory of the judge host. Judges' workers never count in memory_limit."""
_GATEWAY_SHARE: Final = 2 / 5
"""The HTTP gateway's share of memory_limit."""
_MAX_GATEWAY_BYTES: Final = 640 * MIB
_DIVIDED_BYTES: Final = (
    "memory_max_bytes",
    "remembered_results_max_bytes",
)


def usable_memory(files: tuple[Path, ...] = _CGROUP_FILES) -> int:
    """Return how many bytes this process may use: its container's limit, or a share of the machine's memory."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for file in files:
        try:
            limit = int(file.read_text())
        except (OSError, ValueError):  # no such file, or "max"
            continue
        if limit < machine:
            return limit
    return int(machine * _MACHINE_SHARE)


def _share_bytes(limit: int) -> int:
    """Return how many bytes vectors, requests and streams may each use in a process with this memory limit."""
    return max(_LEAST_SHARE_BYTES, min(_MAX_SHARE_BYTES, (limit - _PROCESS_BYTES) // _PARTS))


def gateway_bytes(limit: int) -> int:
    """Return the HTTP gateway's share of a memory limit, including the gateway's child process for large JSON."""
    return min(_MAX_GATEWAY_BYTES, int(limit * _GATEWAY_SHARE))


def shared_bytes(given: Mapping[str, Any], count: int) -> int:
    """Return the size of the memory that `count` processes share; 0 for one process."""
    if count == 1:
        return 0
    limit = given["memory_limit"] or usable_memory()
    return int(given["shared_max_bytes"] or _share_bytes(limit - _beside(given, limit) - (count - 1) * _PROCESS_BYTES))


def _beside(given: Mapping[str, Any], limit: int) -> int:
    """Return the memory of the processes beside the server processes."""
    beside = _SUPERVISOR_BYTES + (_JUDGE_HOST_BYTES if given["judge_backend"] == "embedded" else 0)
    return beside if given["http_api_port"] is None else beside + gateway_bytes(limit)


def with_shares(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings with memory_limit, memory_max_bytes and window_choice resolved if they are automatic."""
    limit = given["memory_limit"] or usable_memory()
    if given["window_choice"] == "auto" and limit < _WINDOW_GRAPHS_BYTES:
        given = {**given, "window_choice": "fp32"}
    own = limit if given["http_api_port"] is None else limit - gateway_bytes(limit)
    return {**given, "memory_limit": limit, "memory_max_bytes": given["memory_max_bytes"] or _share_bytes(own)}


def capacity_of(whole: Capacity, limit: int, count: int) -> Capacity:
    """Return one process's capacity if there are `count` processes, each with the memory limit `limit`."""
    most = _share_bytes(limit)
    return replace(
        whole,
        max_items=math.ceil(whole.max_items / count),
        max_streams=math.ceil(whole.max_streams / count),
        max_bytes=most,
        max_stream_bytes=most,
    )


def process_count(
    given: Mapping[str, Any], *, cores: int | None = None, gpus: Sequence[VisibleGpu] | None = None
) -> int:
    """Return the number of processes for these settings, whose memory_limit must be resolved (`with_shares`).

    Args:
        given: All settings by name.
        cores: The number of cores, or None to count them.
        gpus: The machine's GPUs, or None to look for them if the settings require a GPU.

    Raises:
        SettingsError: The settings request several processes but do not allow them.
    """
    wanted, reason = int(given["processes"]), _single_process_reason(given)
    if wanted > 1 and reason:
        raise SettingsError(f"processes = {wanted} {reason}")
    on_gpu = given["device"].startswith("cuda")
    if reason or wanted == 1 or (wanted and not on_gpu):
        return wanted or 1
    allowed = gpus_of(given["device"], visible_gpus() if gpus is None else gpus) if on_gpu else []
    if wanted:
        check_compute_mode(allowed, wanted)
        return wanted
    by_cores = (usable_cores() if cores is None else cores) // _CORES_PER_PROCESS
    bytes_per_process = HOST_BYTES_PER_GPU_PROCESS if on_gpu else _MEMORY_PER_PROCESS_BYTES
    limits = [by_cores, given["memory_limit"] // bytes_per_process, _MOST_BY_DEFAULT]
    if on_gpu:
        limits.append(most_processes(allowed))
    return int(max(1, min(limits)))


def _single_process_reason(given: Mapping[str, Any]) -> str:
    """Return why these settings do not allow several processes, or "" if they do."""
    if sys.platform != "linux":
        return "needs Linux, because no other system spreads connections over processes that share a port"
    if given["disk_directory"] is None and given["redis_url"] is None:
        return "needs a shared store for prepared references: set disk_directory or redis_url"
    return ""


def share_of(given: Mapping[str, Any], count: int, gpu: GpuShare | None = None) -> dict[str, Any]:
    """Return the settings of one of `count` processes, with its share of the limits, the cores and the GPUs."""
    limit = given["memory_limit"] or usable_memory()
    cores = usable_cores()
    counts = {
        "max_connections": given["max_connections"],
        "workers": given["workers"] or cores,
        "lone_run_threads": given["lone_run_threads"] or cores,
    }
    if gpu is None or given["device"] not in {"cuda", gpu.device}:  # the setting was changed before a restart
        gpu = GpuShare(given["device"], count)
    gpu_limit = given["gpu_memory_limit"]
    divided = {
        "device": gpu.device,
        "gpu_memory_limit": gpu_limit and max(_LEAST_SHARE_BYTES, gpu_limit // gpu.processes),
        "memory_limit": (limit - _beside(given, limit) - shared_bytes(given, count)) // count,
        **{name: max(_LEAST_SHARE_BYTES, given[name] // count) for name in _DIVIDED_BYTES if given[name]},
        **{name: math.ceil(whole / count) for name, whole in counts.items()},
        "http_port": None,
        "http_api_port": None,
    }
    return {**given, **divided}
