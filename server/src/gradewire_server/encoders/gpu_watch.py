"""The thread of a GPU, on which all models load and run, and which notices that the GPU is lost."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any, Final, TypeVar

from gradewire_server.domain.items import Failure, Status
from gradewire_server.encoders.batcher import RunError

_log = logging.getLogger(__name__)

R = TypeVar("R")

HANGS_S: Final = 20.0
"""Seconds after which a run counts as hung. The largest run takes milliseconds."""
FIRST_RUN_HANGS_S: Final = 300.0
"""The same for loading a model and for a shape's first run, which may read gigabytes of libraries from a slow disk, or
compile kernels for a new GPU.
"""
_LOOK_EVERY_S: Final = 0.5
_URGENT_IN_A_ROW: Final = 8
"""The number of urgent runs after which a run that is not urgent goes first."""
_LOST: Final = Failure(Status.UNAVAILABLE, "the GPU was lost, so this process must be replaced. Try again")


class GpuLostError(RunError):
    """Raised for runs on a GPU that this process can no longer use."""

    def __init__(self) -> None:
        super().__init__(_LOST)


class GpuThread:
    """The process's only thread for one GPU.

    ONNX Runtime records CUDA graphs in the capture mode "global". If another thread allocates or copies memory during
    a recording, both the other thread's operation and the recording fail. After an error that breaks the CUDA context,
    or during a run that never ends, no further run can succeed. The GPU is then lost to this process.

    The thread does not keep the process alive, because nothing can end a hung run.

    Args:
        name: The GPU's name in messages.
        hangs_s: Seconds after which a run counts as hung.
        clock: A clock in seconds.

    Attributes:
        lost: The reason why the GPU is lost, or "".
        busy_s: Seconds that the thread has spent on work.
    """

    def __init__(self, name: str, *, hangs_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.name = name
        self.lost = ""
        self.busy_s = 0.0
        self._hangs_s = hangs_s
        self._clock = clock
        self._changed = threading.Condition()
        self._urgent: deque[_Work] = deque()
        self._others: deque[_Work] = deque()
        self._urgent_in_a_row = 0
        self._running: _Work | None = None
        self._began_s = 0.0
        threading.Thread(target=self._serve, name=name, daemon=True).start()

    def submit(self, work: Callable[[], R], *, urgent: bool = False, hangs_s: float | None = None) -> "Future[R]":
        """Queue work and return its future. Use `wait` to wait for it.

        Args:
            work: The function to call on the thread.
            urgent: True if the work goes before work that is not urgent.
            hangs_s: Seconds after which this work counts as hung. None means the thread's own limit.

        Raises:
            GpuLostError: The GPU is lost.
        """
        future: Future[R] = Future()
        with self._changed:
            if self.lost:
                raise GpuLostError
            (self._urgent if urgent else self._others).append(_Work(future, work, hangs_s))
            self._changed.notify()
        return future

    def wait(self, future: "Future[R]") -> R:
        """Return the result of submitted work, or raise its error.

        All callers that wait watch the thread: the first one that sees a hung run gives the GPU up.

        Raises:
            GpuLostError: The GPU is lost.
        """
        while True:
            try:
                return future.result(min(_LOOK_EVERY_S, self._hangs_s))
            except TimeoutError:
                if future.done():  # the work's own error, or its end just after the time limit
                    return future.result()
                self.end_if_hung(self._hangs_s)

    def run(self, work: Callable[[], R], *, urgent: bool = False, hangs_s: float | None = None) -> R:
        """Call a function on the thread; see `submit` and `wait`."""
        return self.wait(self.submit(work, urgent=urgent, hangs_s=hangs_s))

    def give_up(self, reason: str) -> None:
        """Declare the GPU lost, and fail all work that is queued or running. The first reason counts."""
        with self._changed:
            if self.lost:
                return
            self.lost = reason
            ending = [*self._urgent, *self._others]
            if self._running is not None:
                ending.append(self._running)
            self._urgent.clear()
            self._others.clear()
            self._changed.notify()
        _log.critical("%s is lost to this process, which must be replaced: %s", self.name, reason)
        for work in ending:
            _settle(work.future, error=GpuLostError())

    def end_if_hung(self, after_s: float) -> None:
        """Declare the GPU lost if the current run has taken longer than `after_s`, or than a limit of its own."""
        with self._changed:
            running, ran_s = self._running, self._clock() - self._began_s
        if running is not None and ran_s > (after_s if running.hangs_s is None else running.hangs_s):
            self.give_up(f"a run has not ended for {ran_s:.0f} s")

    def _serve(self) -> None:
        while (work := self._next()) is not None:
            try:
                result = work.call()
            except BaseException as error:  # noqa: BLE001 - the caller gets any error
                self._idle()
                _settle(work.future, error=error)
            else:
                self._idle()
                _settle(work.future, result)
            del work  # while the thread waits, it must not keep a model or a result alive

    def _next(self) -> "_Work | None":
        """Wait for work and start it. Return None if the GPU is lost."""
        with self._changed:
            while not (self._urgent or self._others or self.lost):
                self._changed.wait()
            if self.lost:
                return None
            if self._urgent and (not self._others or self._urgent_in_a_row < _URGENT_IN_A_ROW):
                self._urgent_in_a_row += 1
                self._running = self._urgent.popleft()
            else:
                self._urgent_in_a_row = 0
                self._running = self._others.popleft()
            self._began_s = self._clock()
            return self._running

    def _idle(self) -> None:
        with self._changed:
            self._running = None
            self.busy_s += self._clock() - self._began_s


class _Work:
    __slots__ = ("call", "future", "hangs_s")

    def __init__(self, future: Future[Any], call: Callable[[], Any], hangs_s: float | None) -> None:
        self.future = future
        self.call = call
        self.hangs_s = hangs_s


def _settle(future: Future[Any], result: object = None, *, error: BaseException | None = None) -> None:
    # A hung run that ends after all finds that its future has already failed.
    with suppress(InvalidStateError):
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)


_threads: Final[dict[int, GpuThread]] = {}
_making: Final = threading.Lock()


def gpu_thread(index: int) -> GpuThread:
    """Return the process's only thread for this GPU."""
    with _making:
        if index not in _threads:
            _threads[index] = GpuThread(f"GPU {index}", hangs_s=HANGS_S)
        return _threads[index]


def lost_gpu() -> str:
    """Return the reason why this process must be replaced, or "" if it has lost no GPU."""
    return next((f"{thread.name} is lost: {thread.lost}" for thread in _threads.values() if thread.lost), "")
