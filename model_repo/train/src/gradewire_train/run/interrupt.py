"""Ctrl-C that waits for the step under way, so that a checkpoint never holds a part of one."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def first_interrupt(notify: Callable[[], None]) -> Iterator[Callable[[], bool]]:
    """Makes the first Ctrl-C a request to stop; another one has its usual effect.

    Outside the main thread, which alone may handle signals, it does nothing.

    Args:
        notify: Called at the first Ctrl-C.

    Yields:
        Whether a stop is requested.
    """
    requested = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield requested.is_set
        return

    def request(_number: int, _frame: FrameType | None) -> None:
        requested.set()
        signal.signal(signal.SIGINT, before)
        notify()

    # None: the handler was not installed from Python, and cannot be put back.
    before = signal.signal(signal.SIGINT, request) or signal.SIG_DFL
    try:
        yield requested.is_set
    finally:
        signal.signal(signal.SIGINT, before)
