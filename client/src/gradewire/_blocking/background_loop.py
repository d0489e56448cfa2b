"""An event loop on a thread of its own, for callers that have none or must not block theirs."""

import asyncio
import concurrent.futures
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from gradewire.errors import ClientClosed, ForkedClientError

T = TypeVar("T")

_STOP_S = 5.0


class BackgroundLoop:
    """Runs coroutines for other threads; made in the process that uses it, never carried over a fork.

    Attributes:
        loop: The event loop; open until `stop`.
    """

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self._pid = os.getpid()
        self._stopping = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        try:
            self._thread.start()
        except BaseException:
            self.loop.close()
            raise

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs the work and waits for it; an interrupted wait (Ctrl-C) cancels it.

        Raises:
            RuntimeError: Called from the loop's own thread, where waiting would never end.
            ClientClosed: `stop` was called before the work was done.
            ForkedClientError: The loop is that of the process which forked this one.
        """
        if self.is_own_thread():
            work.close()
            raise RuntimeError("a callback of this client must not wait for the client: use another client or a thread")
        future = self.start(work)
        try:
            return future.result()
        except concurrent.futures.CancelledError as error:
            if not self._stopping:
                raise
            raise ClientClosed("this client was closed during the call") from error
        except BaseException:
            future.cancel()
            raise

    def start(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Runs the work and waits for nothing; raises ClientClosed and ForkedClientError as `run`."""
        refused: Exception | None = None
        if os.getpid() != self._pid:
            refused = ForkedClientError(
                "this began in the process that forked this one, and ends there: call again here"
            )
        else:
            # What is started before the loop is told to stop is cancelled by it, never forgotten.
            with self._lock:
                if not self._stopping:
                    return asyncio.run_coroutine_threadsafe(work, self.loop)
            refused = ClientClosed("this client was closed: make a new one")
        work.close()
        raise refused

    def stop(self) -> None:
        """Cancels what still runs, ends the thread."""
        with self._lock:
            self._stopping = True
            if self.loop.is_running():
                self.loop.call_soon_threadsafe(self.loop.stop)
        if not self.is_own_thread():
            self._thread.join(_STOP_S)

    def is_own_thread(self) -> bool:
        """Whether the caller is a callback of the loop."""
        return threading.current_thread() is self._thread

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
            if left := asyncio.all_tasks(self.loop):
                for task in left:
                    task.cancel()
                self.loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        finally:
            self.loop.close()
