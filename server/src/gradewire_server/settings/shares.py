"""Shares of cores and memory: what a server takes where nobody says, how many processes it has, and what each gets."""

import math
import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from gradewire_server.settings.engine import usable_cores
from gradewire_server.settings.limits import Capacity
from gradewire_server.settings.setting import GIB, MIB, SettingsError

_CGROUP_FILES: Final = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
"""Memory of a container, as version 2 and version 1 of control groups say."""
_MACHINE_SHARE: Final = 0.75
"""The share where no container sets a limit: the rest is for the system, the disk's cache and the judge's worker."""
_PARTS: Final = 8
"""One part of the memory beside the process itself is for vectors, one for requests and one for streams."""
_MAX_SHARE_BYTES: Final = 256 * MIB
_LEAST_SHARE_BYTES: Final = 16 * MIB
_PROCESS_BYTES: Final = 384 * MIB
"""Memory of a server with the default encoder, before anybody calls."""

_CORES_PER_PROCESS: Final = 2
"""One for the event loop of a process, which is Python under one lock, and one for the encoder's runs."""
_MEMORY_PER_PROCESS_BYTES: Final = GIB
_MOST_BY_DEFAULT: Final = 8
_SUPERVISOR_BYTES: Final = 64 * MIB
_JUDGE_HOST_BYTES: Final = 96 * MIB
"""Memory of the process that runs the judges, without their workers: those are no part of memory_limit, nor is that of
a server alone."""
_DIVIDED_BYTES: Final = (
    "memory_max_bytes",
    "remembered_results_max_bytes",
    "gpu_memory_limit",
)


def usable_memory(files: tuple[Path, ...] = _CGROUP_FILES) -> int:
    """Bytes that this process may use: the container's limit where there is one, else a share of the machine's."""
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
    """Return the bytes that each purpose gets of a process with this limit."""
    return max(_LEAST_SHARE_BYTES, min(_MAX_SHARE_BYTES, (limit - _PROCESS_BYTES) // _PARTS))


def with_shares(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings by name with the limit and the share of it in the place of zeros."""
    limit = given["memory_limit"] or usable_memory()
    return {**given, "memory_limit": limit, "memory_max_bytes": given["memory_max_bytes"] or _share_bytes(limit)}


def capacity_of(whole: Capacity, limit: int, count: int) -> Capacity:
    """Return the capacity of one of `count` processes, with this limit of memory each."""
    most = _share_bytes(limit)
    return replace(
        whole,
        max_items=math.ceil(whole.max_items / count),
        max_streams=math.ceil(whole.max_streams / count),
        max_bytes=most,
        max_stream_bytes=most,
    )


def process_count(given: Mapping[str, Any], *, cores: int | None = None) -> int:
    """Return the number of processes that are to serve, with shares of memory resolved.

    Without `cores` it is as many as this machine or container has that may be used.

    Raises:
        SettingsError: Several are requested, and cannot serve together with these settings.
    """
    wanted, reason = int(given["processes"]), _single_process_reason(given)
    if wanted > 1 and reason:
        raise SettingsError(f"processes above 1 {reason}")
    if wanted or reason:
        return wanted or 1
    if given["device"].startswith("cuda"):
        return 1  # each would hold the model on the GPU and wait for the runs of the others
    by_cores = (usable_cores() if cores is None else cores) // _CORES_PER_PROCESS
    by_memory = given["memory_limit"] // _MEMORY_PER_PROCESS_BYTES
    return int(max(1, min(by_cores, by_memory, _MOST_BY_DEFAULT)))


def _single_process_reason(given: Mapping[str, Any]) -> str:
    """Return why several processes cannot serve together with these settings; empty where they can."""
    if sys.platform != "linux":
        return "needs Linux, which alone spreads connections over processes that share a port"
    if given["disk_directory"] is None and given["redis_url"] is None:
        return "needs a store that all of them see, for prepared references: set disk_directory or redis_url"
    return ""


def share_of(given: Mapping[str, Any], count: int) -> dict[str, Any]:
    """Return the settings of one of two or more processes: what is set for all of them together is divided.

    Zeros stand for shares of memory and for cores.
    """
    beside = _SUPERVISOR_BYTES + (_JUDGE_HOST_BYTES if given["judge_backend"] == "embedded" else 0)
    cores = usable_cores()
    counts = {
        "max_connections": given["max_connections"],
        "workers": given["workers"] or cores,
        "lone_run_threads": given["lone_run_threads"] or cores,
    }
    divided = {
        "memory_limit": ((given["memory_limit"] or usable_memory()) - beside) // count,
        **{name: max(_LEAST_SHARE_BYTES, given[name] // count) for name in _DIVIDED_BYTES if given[name]},
        **{name: math.ceil(whole / count) for name, whole in counts.items()},
        "http_port": None,
        "http_api_port": None,
    }
    return {**given, **divided}
