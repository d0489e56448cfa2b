"""The threads that run an encoder, and the cores they run on."""

import logging
import os
import queue
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_log = logging.getLogger(__name__)
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


def worker_pool(count: int, *, name: str, pinned: bool) -> ThreadPoolExecutor:
    """Threads for runs of one thread each.

    Args:
        count: How many.
        name: For thread names.
        pinned: Keep each on a core of its own where there are exactly as many cores: woken at the same moment, two
            threads otherwise start on one core, and Linux takes longer than a short run to notice.
    """
    cores = allowed_cores()
    if not pinned or len(cores) != count or not hasattr(os, "sched_setaffinity"):
        return ThreadPoolExecutor(count, thread_name_prefix=name)
    free: queue.SimpleQueue[int] = queue.SimpleQueue()
    for core in cores:
        free.put(core)

    def pin() -> None:
        try:
            os.sched_setaffinity(threading.get_native_id(), {free.get_nowait()})
        except OSError as error:
            _log.warning("a worker cannot be kept on a core of its own: %s", error)

    return ThreadPoolExecutor(count, thread_name_prefix=name, initializer=pin)
