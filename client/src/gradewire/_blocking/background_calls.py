"""Keeps a client's calls on a background loop, across forks, until the interpreter ends."""

import concurrent.futures.thread  # noqa: F401 - its exit hook must be registered before ours, see _close_all
import threading
import weakref
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from gradewire._blocking.background_loop import BackgroundLoop
from gradewire._calls.client_calls import ClientCalls
from gradewire._fork_safety import forget_in_children, keep_for_good
from gradewire.errors import ClientClosed

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Running:
    """A client's calls and the loop that they run on."""

    loop: BackgroundLoop
    calls: ClientCalls


class BackgroundCalls:
    """Starts loop and calls at first use, again in a forked child, and closes both once."""

    def __init__(self, make_calls: Callable[[], ClientCalls]) -> None:
        self._make_calls = make_calls
        self._lock = threading.Lock()
        self._running: Running | None = None
        self._closed = False
        _all_background_calls.add(self)
        forget_in_children(self)

    def running(self) -> Running:
        """Loop and calls of this process.

        Raises:
            ClientClosed: The client was closed.
        """
        if (running := self._running) is not None:
            return running
        with self._lock:
            if self._closed:
                raise ClientClosed("this client was closed: make a new one")
            if self._running is None:
                # The calls first: when they cannot be made, no thread is left behind.
                calls = self._make_calls()
                self._running = Running(BackgroundLoop("gradewire-client"), calls)
            return self._running

    def run(self, work: Callable[[ClientCalls], Coroutine[Any, Any, T]]) -> T:
        """Does the work on the loop and waits for it."""
        running = self.running()
        return running.loop.run(work(running.calls))

    def close(self) -> None:
        """Closes the calls, which ends what was submitted, then the loop."""
        with self._lock:
            running, self._running = self._running, None
            self._closed = True
        if running is None:
            return
        if running.loop.is_own_thread():
            # The last reference was dropped in a callback: nobody can wait here.
            running.loop.start(running.calls.close()).add_done_callback(lambda _: running.loop.stop())
            return
        try:
            running.loop.run(running.calls.close())
        finally:
            running.loop.stop()

    def forget(self) -> None:
        """Starts afresh in a forked child; what the parent's threads held is left alone."""
        keep_for_good(self._running)
        self._lock = threading.Lock()
        self._running = None


_all_background_calls: "weakref.WeakSet[BackgroundCalls]" = weakref.WeakSet()


def _close_all() -> None:
    for runtime in list(_all_background_calls):
        runtime.close()


# atexit comes after the executors of concurrent.futures have stopped, and an embedded engine computes on one: what was
# submitted last would be lost. These hooks run last in, first out, before that.
threading._register_atexit(_close_all)  # type: ignore[attr-defined]  # noqa: SLF001 - as above; atexit is too late
