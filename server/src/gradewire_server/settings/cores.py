"""How many cores this process may use."""

import os
from pathlib import Path

_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def allowed_cores() -> list[int]:
    """Cores that this process may run on; a system that does not say gives as many as there are."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def usable_cores(quota: Path = _QUOTA) -> int:
    """Cores' worth of time that this process may use: a container's quota may be less than the cores it sees."""
    cores = len(allowed_cores())
    try:
        limit, period = quota.read_text().split()
        return max(1, min(cores, -(-int(limit) // int(period))))
    except (OSError, ValueError):  # no such file, or "max"
        return cores
