"""Read and write JSON without blocking the event loop: on a thread, or in a child process if the JSON is very large.

A process runs only one Python thread at a time, so a thread that reads megabytes can delay the event loop by 0.2 s.
"""

import asyncio
import gc
import logging
import os
import pickle
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar
from weakref import WeakValueDictionary

from google.protobuf.message import Message

from gradewire_gateway.problems import Problem, ProblemError
from gradewire_gateway.wire import Buffer, read_message, write_message

Work: TypeAlias = Callable[[Buffer], bytes]
"""A function that converts a body or raises ProblemError. It must be picklable, so define it at module level."""
T = TypeVar("T")

_log = logging.getLogger(__name__)
_LARGE_BYTES: Final = 2 << 10
"""Minimum size of JSON that the thread reads. Smaller JSON takes at most 5 ms, even if it is full of errors."""
HUGE_BYTES: Final = 64 << 10
"""Minimum size of a body that the child process reads."""
_TRIES: Final = 2
_NICENESS: Final = 5


class Json:
    """A reader and writer of JSON, with only one parsing thread and one child process, to limit memory."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="gradewire-json")
        self._waiter = ThreadPoolExecutor(1, thread_name_prefix="gradewire-json-process")
        self._process = _JsonProcess()
        self._by_caller: WeakValueDictionary[Hashable, asyncio.Lock] = WeakValueDictionary()
        self._without_token = asyncio.Lock()
        self._turn = asyncio.Lock()

    def close(self) -> None:
        """Stop the threads and the child process. Unfinished requests fail."""
        self._process.close()
        self._waiter.shutdown(cancel_futures=True)
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def read(self, caller: Hashable, data: Buffer, kind: type[Message], at: str = "") -> bytes:
        """Convert a message from JSON to protobuf's binary format; raise the ProblemErrors of `read_message`."""
        return await self.convert(caller, data, partial(_read, kind=kind, at=at))

    async def write(self, caller: Hashable, data: bytes, kind: type[Message], hold: Callable[[int], None]) -> bytes:
        """Convert a protobuf message to JSON on one line. If `data` is large, call `hold` with the size of `data`."""
        if len(data) >= _LARGE_BYTES:
            hold(len(data))
        return await self.convert(caller, data, partial(_write, kind=kind))

    async def convert(self, caller: Hashable, data: Buffer, work: Work) -> bytes:
        """Return the result of `work` on a body. Run `work` in the child process if the body is very large.

        Callers take turns at the child process. A caller with an accepted token (a string) may have one body waiting
        for a turn. All other callers together may have one body waiting.
        """
        if len(data) < HUGE_BYTES:
            return await self.run(len(data), lambda: work(data))
        run = asyncio.get_running_loop().run_in_executor
        async with self._by_caller.setdefault(caller, asyncio.Lock()), AsyncExitStack() as turns:
            if not isinstance(caller, str):
                await turns.enter_async_context(self._without_token)
            await turns.enter_async_context(self._turn)
            return await run(self._waiter, self._process.run, work, data)

    async def made_of(self, data: Buffer, make: Callable[[Buffer], T]) -> T:
        """Return the result of `make` on a body. Run `make` on the thread if the body is large."""
        return await self.run(len(data), lambda: make(data))

    async def run(self, size_bytes: int, work: Callable[[], T]) -> T:
        """Return the result of `work`. Run it on the thread if `work` processes much data (`size_bytes`)."""
        if size_bytes < _LARGE_BYTES:
            return work()
        return await self.run_on_thread(work)

    async def run_on_thread(self, work: Callable[[], T]) -> T:
        """Return the result of `work`, run on the thread whatever the size of its data."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, _without_collections, work)


def _read(data: Buffer, kind: type[Message], at: str) -> bytes:
    return read_message(data, kind, at).SerializeToString()


def _write(data: Buffer, kind: type[Message]) -> bytes:
    return write_message(kind.FromString(bytes(data)))


def _without_collections(work: Callable[[], T]) -> T:
    """Return the result of `work`. Turn off garbage collection, which would search the data for cycles too often."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        return work()
    finally:
        if was_on:
            gc.enable()


class _JsonProcess:
    """The child process. It starts at the first body, and restarts after a crash. Use it from one thread."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._closed = False

    def close(self) -> None:
        self._closed = True
        self._end()

    def run(self, work: Work, data: Buffer) -> bytes:
        """Return the result of `work` in the process.

        Raises:
            ProblemError: `work` raised this error, or the process died twice on this body.
            RuntimeError: `work` has a defect.
        """
        for _ in range(_TRIES):
            try:
                problem, result = _exchange(self._running(), work, data)
            # The process was killed, perhaps because memory ran out, or `close` closed its pipes (ValueError).
            except (OSError, EOFError, ValueError, pickle.UnpicklingError) as error:
                status = self._end()
                if not self._closed:
                    _log.warning("the process for large JSON was lost (exit status %s, %r)", status, error)
                continue
            except BaseException:
                self._end()  # otherwise the next body would get this body's reply
                raise
            if isinstance(problem, Problem):
                raise ProblemError(problem)
            if problem is not None:
                raise RuntimeError(f"the JSON process failed: {problem}")
            return result
        detail = "the gateway could not process the body; try again, or send fewer items at a time"
        raise ProblemError(Problem(503, "unavailable", detail, retry_after_s=1.0))

    def _running(self) -> "subprocess.Popen[bytes]":
        if self._closed:
            raise ProblemError(Problem(503, "unavailable", "the gateway is stopping; try again"))
        if self._child is None:
            # Without -P, a file in the working directory could replace a module.
            command = [sys.executable, "-P", "-m", "gradewire_gateway.json_work"]
            self._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603 - our own module
        return self._child

    def _end(self) -> int | None:
        """Stop the process. Return its exit status, or None if it did not start."""
        child, self._child = self._child, None
        if child is None:
            return None
        child.kill()
        with suppress(OSError, ValueError):  # the body was not sent completely, or the pipes are closed
            child.communicate()
        return child.wait()


def _exchange(child: "subprocess.Popen[bytes]", work: Work, data: Buffer) -> tuple[Problem | str | None, bytes]:
    """Send a body to the process. Return the problem or the defect's text (None after success), and the result."""
    requests: Any = child.stdin
    replies: Any = child.stdout
    pickle.dump((work, len(data)), requests)
    requests.write(data)
    requests.flush()
    problem, size_bytes = pickle.load(replies)  # noqa: S301 - from our own child
    result: bytes = replies.read(size_bytes)
    if len(result) < size_bytes:
        raise EOFError
    return problem, result


def main() -> None:
    """Read requests from standard input and write the answers to standard output, until the gateway ends."""
    # If the machine is busy, the event loop and the encoders have priority.
    os.nice(_NICENESS)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C also reaches this process, which the gateway still needs
    gc.disable()
    requests, replies = sys.stdin.buffer, sys.stdout.buffer
    with suppress(EOFError, BrokenPipeError):
        while True:
            work, size_bytes = pickle.load(requests)  # noqa: S301 - from the gateway that started this process
            problem, result = _outcome(work, requests.read(size_bytes))
            pickle.dump((problem, len(result)), replies)
            replies.write(result)
            replies.flush()
            del result


def _outcome(work: Work, data: bytes) -> tuple[Problem | str | None, bytes]:
    try:
        return None, work(data)
    except ProblemError as error:
        return error.problem, b""
    except Exception:  # noqa: BLE001 - the gateway logs it
        return traceback.format_exc(), b""


if __name__ == "__main__":
    main()
