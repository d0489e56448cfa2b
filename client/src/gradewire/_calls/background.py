"""Run a client's calls on an event loop in a background thread."""

import asyncio
import concurrent.futures
import concurrent.futures.thread
import os
import threading
import weakref
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from typing import Any, Generic, NamedTuple, TypeVar

from gradewire._calls.client_calls import ClientCalls
from gradewire._fork_safety import forget_in_children, keep_for_good
from gradewire.errors import ClientClosed, ForkedClientError, RequestError, ServerFault, TransportError

T = TypeVar("T")

_STOP_S = 5.0


class BackgroundLoop:
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
        """Run a coroutine and wait for its result. Ctrl-C during the wait cancels the coroutine.

        Raises:
            RuntimeError: The caller runs on the loop's thread and would wait forever.
            ClientClosed: `stop` was called before the coroutine finished.
            ForkedClientError: The loop belongs to the parent process.
        """
        if self.is_own_thread():
            work.close()
            raise RuntimeError("a callback must not wait for the client that called it: use a second client")
        future = self.start(work)
        try:
            return future.result()
        except concurrent.futures.CancelledError as error:
            if not self._stopping:
                raise
            raise ClientClosed("this client was closed during the call") from error
        except (RequestError, TransportError) as error:
            if isinstance(error, ServerFault):
                raise
            # The message says what to do, and no frame of the background thread adds to it.
            raise error.with_traceback(None)  # noqa: B904 - the same error
        except BaseException:
            future.cancel()
            raise

    def start(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Start a coroutine without waiting; raise the errors of `run`, except RuntimeError."""
        refused: Exception | None = None
        if os.getpid() != self._pid:
            refused = ForkedClientError("this call started in the parent process: make the call again in this process")
        else:
            # The lock ensures that a coroutine either starts before `stop` and is then cancelled, or does not start.
            with self._lock:
                if not self._stopping:
                    return asyncio.run_coroutine_threadsafe(work, self.loop)
            refused = ClientClosed("this client is closed: make a new one")
        work.close()
        raise refused

    def stop(self) -> None:
        with self._lock:
            self._stopping = True
            if self.loop.is_running():
                self.loop.call_soon_threadsafe(self.loop.stop)
        if not self.is_own_thread():
            self._thread.join(_STOP_S)

    def is_own_thread(self) -> bool:
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


_AHEAD_ITEMS = 64


class IterableReader(Generic[T]):
    """An async iterable over a plain iterable. A thread reads a few items ahead, until `close` is called."""

    def __init__(self, source: Iterable[T]) -> None:
        self._source = source
        self._read: deque[T] = deque()
        self._room = threading.Semaphore(_AHEAD_ITEMS)
        self._ready = asyncio.Event()
        self._error: BaseException | None = None
        self._ended = False
        self._closed = False

    async def __aiter__(self) -> AsyncIterator[T]:
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._run, args=(loop,), name="gradewire-reader", daemon=True).start()
        while True:
            self._ready.clear()
            while self._read:
                item = self._read.popleft()
                self._room.release()
                yield item
            # Look at `_ended` before `_read`, because the thread appends its last item before it sets `_ended`.
            if self._ended and not self._read:
                break
            await self._ready.wait()
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Stop the thread as soon as the plain iterable has returned its next item."""
        self._closed = True
        self._room.release()

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            for item in self._source:
                self._room.acquire()
                if self._closed:
                    return
                self._read.append(item)
                self._wake(loop)
        except BaseException as error:  # noqa: BLE001 - passed on to the consumer
            self._error = error
        finally:
            self._ended = True
            self._wake(loop)

    def _wake(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._ready.is_set() and not loop.is_closed():
            loop.call_soon_threadsafe(self._ready.set)


class Running(NamedTuple):
    loop: BackgroundLoop
    calls: ClientCalls


class BackgroundCalls:
    """A client's calls, and the loop that runs them. Both are created at first use, and again in a forked child."""

    def __init__(self, make_calls: Callable[[], ClientCalls]) -> None:
        self._make_calls = make_calls
        self._lock = threading.Lock()
        self._running: Running | None = None
        self._closed = False
        _all_background_calls.add(self)
        forget_in_children(self)

    def running(self) -> Running:
        """Return this process's loop and calls; raise ClientClosed if the client is closed."""
        if (running := self._running) is not None:
            return running
        with self._lock:
            if self._closed:
                raise ClientClosed("this client is closed: make a new one")
            if self._running is None:
                # Make the calls first, so that a failure leaves no thread behind.
                calls = self._make_calls()
                self._running = Running(BackgroundLoop("gradewire-client"), calls)
            return self._running

    def run(self, work: Callable[[ClientCalls], Coroutine[Any, Any, T]]) -> T:
        running = self.running()
        return running.loop.run(work(running.calls))

    def close(self) -> None:
        with self._lock:
            running, self._running = self._running, None
            self._closed = True
        if running is None:
            return
        if running.loop.is_own_thread():
            # A callback dropped the last reference to the client, so this is the loop's thread, which must not wait.
            running.loop.start(running.calls.close()).add_done_callback(lambda _: running.loop.stop())
            return
        try:
            running.loop.run(running.calls.close())
        finally:
            running.loop.stop()

    def forget(self) -> None:
        keep_for_good(self._running)
        self._lock = threading.Lock()
        self._running = None


_all_background_calls: "weakref.WeakSet[BackgroundCalls]" = weakref.WeakSet()


def _close_all() -> None:
    for runtime in list(_all_background_calls):
        runtime.close()


# Do not use `atexit`, whose hooks run after concurrent.futures has stopped its executors. An embedded engine needs the
# executors for the last submissions. Hooks of `threading` run earlier, in reverse order of registration.
threading._register_atexit(_close_all)  # type: ignore[attr-defined]  # noqa: SLF001 - atexit is too late
