"""The threads that run an encoder."""

import logging
import os
import queue
import threading
from concurrent.futures import ThreadPoolExecutor

from gradewire_server.settings.cores import allowed_cores

_log = logging.getLogger(__name__)


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
