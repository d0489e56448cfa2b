"""Ctrl-C that waits for the step under way, so that a checkpoint never holds half of one."""

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Self


class Interrupt:
    """Context in which the first Ctrl-C only asks to stop; another one does what it did before.

    Outside the main thread, which alone may handle signals, it does nothing.

    Args:
        tell: Called at the first Ctrl-C.
    """

    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell = tell
        self._before: Callable[[int, FrameType | None], object] | int | None = None
        self._asked = False

    def asked(self) -> bool:
        """Whether somebody wants it to stop."""
        return self._asked

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._ask)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._restore()

    def _ask(self, _number: int, _frame: FrameType | None) -> None:
        self._asked = True
        self._restore()
        self._tell()

    def _restore(self) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._before = None
