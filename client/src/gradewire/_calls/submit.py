"""Score in the background: queue copies of the items, and report results through futures and callbacks."""

import asyncio
import logging
import os
import queue
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from collections.abc import Set as AbstractSet
from concurrent.futures import Future
from contextvars import Context, copy_context
from dataclasses import dataclass, field, replace
from typing import Any, Final

from gradewire._columns import ALIASES, spelled
from gradewire._rows import LIST_FIELDS, TEXT_FIELDS, TRUTH_FIELDS, plain
from gradewire.errors import ClientClosed, ForkedClientError, Overloaded
from gradewire.items import Item, ItemLike, ItemsLike
from gradewire.options import check_most, rows_of
from gradewire.results import ScoreReport
from gradewire_proto.tracing.spans import TRACEPARENT_KEY

READ_NAMES: Final = frozenset(
    (
        TRACEPARENT_KEY,
        *(spelled(alias) for name in (*TEXT_FIELDS, *LIST_FIELDS, *TRUTH_FIELDS) for alias in ALIASES[name]),
    )
)
"""Names of the keys to copy, see `spelled`. Pictures are copied only if a metric shows them."""

_log = logging.getLogger("gradewire.submit")


def snapshot(item: Any, read: AbstractSet[str]) -> tuple[Any, int]:
    """Return a copy of an item with the fields in `read`, and the size of its strings and pictures in bytes.

    An item that is neither a mapping nor an `Item` is returned unchanged.
    """
    if isinstance(item, Item):
        lists: dict[str, Any] = {name: _copied(getattr(item, name)) for name in LIST_FIELDS}
        lists["images"] = _copied(item.images) if "images" in read else ()
        values = {name: getattr(item, name) for name in TEXT_FIELDS}
        return replace(item, **lists), _size(values | lists)
    if isinstance(item, Mapping):
        # Keep other fields' names for error messages, but not their values, which may be large.
        kept = {name: _copied(value) if spelled(name) in read else None for name, value in item.items()}
        return kept, _size(kept)
    return item, 0


def _copied(value: Any) -> Any:
    value = plain(value)
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, list) else value


def _size(values: Mapping[Any, Any]) -> int:
    size = 0
    for value in values.values():
        for text in value if isinstance(value, list | tuple) else (value,):
            if isinstance(text, str):
                size += len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))
            elif isinstance(text, bytes | bytearray):
                size += len(text)
    return size


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitLimits:
    """Limits on pending submissions. The future of a submission that exceeds a limit fails at once with Overloaded.

    Attributes:
        max_pending_items: Maximum number of pending items.
        max_pending_bytes: Maximum total size of pending strings (in UTF-8) and pictures, in bytes.

    Raises:
        InvalidRequest: An argument is wrong.
    """

    max_pending_items: int = 100_000
    max_pending_bytes: int = 256 * 1024 * 1024

    def __post_init__(self) -> None:
        check_most("max_pending_items", self.max_pending_items)
        check_most("max_pending_bytes", self.max_pending_bytes)


_AT_A_TIME = 4

SubmitCallback = Callable[[Future[ScoreReport]], None]
Score = Callable[[list[ItemLike]], Coroutine[Any, Any, ScoreReport]]


class _Result(Future[ScoreReport]):
    """A future that raises an error in a forked child, because only the parent can set the result."""

    def __init__(self) -> None:
        super().__init__()
        self._pid = os.getpid()

    def result(self, timeout: float | None = None) -> ScoreReport:
        self._check_process()
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self._check_process()
        return super().exception(timeout)

    def _check_process(self) -> None:
        if os.getpid() != self._pid and not self.done():
            raise ForkedClientError(
                "these items were submitted in the parent process, which scores them: submit them again in this process"
            )


@dataclass(slots=True, eq=False)
class _Submission:
    score: Score
    callback: SubmitCallback | None
    items: list[ItemLike] = field(default_factory=list)
    text_bytes: int = 0
    result: _Result = field(default_factory=_Result)
    # The context variables of the submitting thread, with that thread's current span.
    context: Context = field(default_factory=copy_context)
    # Set after the callback returns. `flush` and `close` wait for this.
    finished: Future[None] = field(default_factory=Future)


class Submissions:
    """A client's submissions from any thread, scored a few at a time on an event loop."""

    def __init__(self, limits: SubmitLimits) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._pending: set[_Submission] = set()
        self._pending_items = 0
        self._pending_bytes = 0
        self._closed = False
        self._waiting: deque[_Submission] = deque()
        self._workers: set[asyncio.Task[None]] = set()
        # Do not use len(self._workers), because a finished worker stays in that set until the loop's next turn.
        self._working = 0
        self._callbacks: queue.SimpleQueue[_Submission | None] = queue.SimpleQueue()
        self._callback_thread: threading.Thread | None = None

    def add(
        self,
        loop: Callable[[], asyncio.AbstractEventLoop],
        items: ItemsLike,
        score: Score,
        callback: SubmitCallback | None,
        shows_images: Callable[[], bool] = lambda: False,
    ) -> Future[ScoreReport]:
        """Copy the items, queue them and return a future, which carries all errors."""
        submission = _Submission(score, callback)
        try:
            kept = READ_NAMES | {"images"} if shows_images() else READ_NAMES
            for item in rows_of("items", items):
                taken, size = snapshot(item, kept)
                submission.items.append(taken)
                submission.text_bytes += size
                # Check the limits while copying, so that the copies never exceed the queue's memory limit.
                self._check_room(submission)
            self._admit(submission)
            loop().call_soon_threadsafe(self._start, submission)
        except Exception as error:  # noqa: BLE001 - submit never raises
            self._release(submission)
            submission.result.set_running_or_notify_cancel()
            submission.result.set_exception(error)
            self._finish(submission)
        return submission.result

    async def flush(self, timeout_s: float | None) -> bool:
        with self._lock:
            pending = [asyncio.wrap_future(submission.finished) for submission in self._pending]
        if not pending:
            return True
        _, late = await asyncio.wait(pending, timeout=timeout_s)
        return not late

    async def close(self, drain_s: float) -> None:
        """Reject new submissions, wait up to `drain_s` seconds for pending submissions, and fail unfinished ones."""
        with self._lock:
            self._closed = True
        if not await self.flush(drain_s):
            for worker in self._workers:
                worker.cancel()
            while self._waiting:
                self._fail(self._waiting.popleft(), ClientClosed("the client was closed before the items were scored"))
        with self._lock:
            self._callbacks.put(None)
            self._callback_thread = None

    def _admit(self, submission: _Submission) -> None:
        with self._lock:
            if self._closed:
                raise ClientClosed("this client is closed: make a new one")
            self._check_room(submission)
            self._pending.add(submission)
            self._pending_items += len(submission.items)
            self._pending_bytes += submission.text_bytes

    def _check_room(self, submission: _Submission) -> None:
        for name, pending, more, most in (
            ("items", self._pending_items, len(submission.items), self._limits.max_pending_items),
            ("bytes", self._pending_bytes, submission.text_bytes, self._limits.max_pending_bytes),
        ):
            if pending + more > most:
                raise Overloaded(
                    f"{pending} submitted {name} are pending, and at least {more} more would exceed "
                    f"max_pending_{name}={most}: submit less, or raise the limit"
                )

    def _release(self, submission: _Submission) -> None:
        with self._lock:
            if submission in self._pending:
                self._pending.discard(submission)
                self._pending_items -= len(submission.items)
                self._pending_bytes -= submission.text_bytes

    def _start(self, submission: _Submission) -> None:
        self._waiting.append(submission)
        if self._working < _AT_A_TIME:
            self._working += 1
            worker = asyncio.get_running_loop().create_task(self._work())
            self._workers.add(worker)
            worker.add_done_callback(self._workers.discard)

    async def _work(self) -> None:
        try:
            while self._waiting:
                await self._score(self._waiting.popleft())
        finally:
            self._working -= 1

    async def _score(self, submission: _Submission) -> None:
        if submission.result.set_running_or_notify_cancel():
            try:
                scoring = submission.score(submission.items)
                submission.result.set_result(await asyncio.create_task(scoring, context=submission.context))
            except asyncio.CancelledError:
                self._fail(submission, ClientClosed("the client was closed before the items were scored"))
                raise
            except Exception as error:  # noqa: BLE001 - the future carries every error
                submission.result.set_exception(error)
        self._finish(submission)

    def _fail(self, submission: _Submission, error: Exception) -> None:
        if submission.result.running() or submission.result.set_running_or_notify_cancel():
            submission.result.set_exception(error)
        self._finish(submission)

    def _finish(self, submission: _Submission) -> None:
        """Pass the submission to the callback thread, so that a slow callback does not block the caller or the loop."""
        if submission.callback is not None and self._has_callback_thread():
            self._callbacks.put(submission)
            return
        self._release(submission)
        submission.finished.set_result(None)

    def _has_callback_thread(self) -> bool:
        with self._lock:
            if self._callback_thread is None:
                self._callback_thread = _start_thread(self._call_back)
            return self._callback_thread is not None

    def _call_back(self) -> None:
        while (submission := self._callbacks.get()) is not None:
            try:
                _call(submission.callback, submission.result)
            finally:
                self._release(submission)
                submission.finished.set_result(None)


def refused(error: Exception, callback: SubmitCallback | None) -> Future[ScoreReport]:
    result: Future[ScoreReport] = Future()
    result.set_exception(error)
    if callback is not None:
        _start_thread(lambda: _call(callback, result))
    return result


def _start_thread(target: Callable[[], None]) -> threading.Thread | None:
    """Return a thread for callbacks; log an error and return None if the system cannot start another thread."""
    thread = threading.Thread(target=target, name="gradewire-callbacks", daemon=True)
    try:
        thread.start()
    except RuntimeError:
        _log.exception("cannot start a thread, so a callback of submit() is not called; the future has the result")
        return None
    return thread


def _call(callback: SubmitCallback | None, result: Future[ScoreReport]) -> None:
    try:
        if callback is not None:
            callback(result)
    except Exception:  # noqa: BLE001 - the caller's function may raise anything
        _log.exception("a callback of submit() failed; the future still has the result")
