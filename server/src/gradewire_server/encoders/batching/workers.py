"""The threads that run an encoder."""

import logging
import os
import queue
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

from gradewire_server.settings.compute import allowed_cores

_log = logging.getLogger(__name__)


def go_behind(nice: int) -> None:
    """Gives the calling thread, and those that it starts, a lower priority than the rest of the process.

    Else calls wait to be taken in, refused and answered while texts are computed: all threads of a busy process get the
    same time, and there is one that talks to callers. Linux alone has levels of single threads.

    Args:
        nice: Nice level, 0 to 19; no lower than it is.
    """
    if sys.platform != "linux":
        return
    try:
        own = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, own, max(nice, os.getpriority(os.PRIO_PROCESS, own)))
    except OSError as error:
        _log.warning("a thread that computes keeps its priority: %s", error)


def worker_pool(count: int, *, name: str, pinned: bool, nice: int = 0) -> ThreadPoolExecutor:
    """Threads for runs of one thread each.

    Args:
        count: How many.
        name: For thread names.
        pinned: Keep each on a core of its own where there are exactly as many cores: woken at the same moment, two
            threads otherwise start on one core, and Linux takes longer than a short run to notice.
        nice: Their nice level.
    """
    cores = allowed_cores()
    if not pinned or len(cores) != count or not hasattr(os, "sched_setaffinity"):
        return ThreadPoolExecutor(count, thread_name_prefix=name, initializer=go_behind, initargs=(nice,))
    free: queue.SimpleQueue[int] = queue.SimpleQueue()
    for core in cores:
        free.put(core)

    def pin() -> None:
        go_behind(nice)
        try:
            os.sched_setaffinity(threading.get_native_id(), {free.get_nowait()})
        except OSError as error:
            _log.warning("a worker cannot be kept on a core of its own: %s", error)

    return ThreadPoolExecutor(count, thread_name_prefix=name, initializer=pin)
