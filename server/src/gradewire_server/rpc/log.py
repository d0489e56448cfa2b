"""The log on stderr: JSON lines for calls and messages, without users' texts and at a limited rate."""

import asyncio
import json
import logging
import sys
import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TextIO, TypeVar

from typing_extensions import override

KeyT = TypeVar("KeyT", bound=Hashable)

_log = logging.getLogger(__name__)
MESSAGES_PER_S: Final = 5
"""The maximum number of messages per second from one line of code."""
_WINDOW_S: Final = 1.0
_FLUSH_AFTER_S: Final = 0.2
_MAX_WAITING: Final = 10_000
_CALLS_PER_S: Final = 200
"""The maximum number of calls logged per second for each method and status code."""
_MAX_CHARACTERS: Final = 256
_MAX_LISTED: Final = 64
_MAX_EVENT_CHARACTERS: Final = 4096
_MAX_TRACEBACK_CHARACTERS: Final = 8192
_NO_DEFECTS: Final = frozenset(
    {
        *("CANCELLED", "INVALID_ARGUMENT", "UNAUTHENTICATED", "PERMISSION_DENIED", "FAILED_PRECONDITION"),
        "RESOURCE_EXHAUSTED",
    }
)
_GRPC_LOGGER: Final = "grpc._cython.cygrpc"
_LOST_CALL: Final = "ExecuteBatchError"
"""gRPC's error if the caller is gone, or the deadline has passed, before the reply is sent."""
_BROKEN_METADATA: Final = "Invalid encoding on "
"""The start of gRPC's messages about metadata that is not UTF-8. The messages contain the metadata's value."""


class RateBound(Generic[KeyT]):
    """A limit on the number of events per second for each kind. Thread-safe."""

    def __init__(self, per_s: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_s = per_s
        self._clock = clock
        self._lock = threading.Lock()
        self._windows: dict[KeyT, _Window] = {}

    @property
    def waiting(self) -> bool:
        """True if `left_out` has not returned all omitted events yet."""
        with self._lock:
            return any(window.left_out for window in self._windows.values())

    def admit(self, kind: KeyT) -> bool:
        """Count an event of this kind. Return True if the event is within the limit."""
        with self._lock:
            now_s = self._clock()
            window = self._windows.setdefault(kind, _Window(now_s, now_s))
            if now_s - window.started_s >= _WINDOW_S:
                window.started_s, window.seen = now_s, 0
            window.seen += 1
            if window.seen <= self._per_s:
                return True
            window.left_out += 1
            return False

    def left_out(self, *, at_once: bool = False) -> dict[KeyT, int]:
        """Return the number of omitted events by kind, and reset the numbers.

        Unless `at_once` is True, each kind is returned at most once a second.
        """
        with self._lock:
            now_s = self._clock()
            found = {}
            for kind, window in list(self._windows.items()):
                if window.left_out and (at_once or now_s - window.told_s >= _WINDOW_S):
                    found[kind] = window.left_out
                    window.left_out, window.told_s = 0, now_s
                elif not window.left_out and now_s - window.started_s >= _WINDOW_S:
                    del self._windows[kind]
            return found


@dataclass(slots=True)
class _Window:
    started_s: float
    told_s: float
    seen: int = 0  # since `started_s`
    left_out: int = 0  # since `told_s`


class FloodFilter(logging.Filter):
    """A log filter that limits the rate of messages from each line of code.

    The filter also changes two of gRPC's messages: a lost call gets the level DEBUG, and metadata that is not UTF-8 is
    removed, because it may contain a token.
    """

    def __init__(self, *, per_s: int = MESSAGES_PER_S, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._bound: RateBound[tuple[str, str, int]] = RateBound(per_s, clock=clock)
        self.on_left_out: Callable[[], None] = lambda: None
        self.on_lost_call: Callable[[], None] = lambda: None

    @override
    def filter(self, record: logging.LogRecord) -> bool:
        if _is_lost_call(record):
            self.on_lost_call()
            if not logging.getLogger().isEnabledFor(logging.DEBUG):
                return False
            record.levelno, record.levelname, record.exc_info = logging.DEBUG, "DEBUG", None
        elif record.name == _GRPC_LOGGER and str(record.msg).startswith(_BROKEN_METADATA):
            record.msg, record.args, record.exc_info = "a caller sent metadata that is not UTF-8", (), None
            record.levelno, record.levelname = logging.WARNING, "WARNING"
        if self._bound.admit((record.name, record.pathname, record.lineno)):
            return True
        self.on_left_out()
        return False

    def report(self, *, at_once: bool = False) -> None:
        """Log the number of omitted messages for each line of code. Call `report` regularly."""
        for (name, _, line), count in self._bound.left_out(at_once=at_once).items():
            _log.warning("omitted %d more messages from %s (line %d)", count, name, line)


def _is_lost_call(record: logging.LogRecord) -> bool:
    kind = record.exc_info[0] if record.exc_info else None
    return record.name == _GRPC_LOGGER and kind is not None and kind.__name__ == _LOST_CALL


request_id: Final[ContextVar[str]] = ContextVar("request_id", default="")
"""The current call's ID, inherited by all tasks of the call."""


@dataclass(slots=True)
class CallRecord:
    """A call's log record, which is filled in during the call.

    Attributes:
        method: The method's full name, for example ``gradewire.v1.Scoring/Score``.
        tenant: The tenant's name, or "" without a tenant.
        metrics: The names of the requested metrics.
        at: For INVALID_ARGUMENT, the path of the invalid field.
    """

    request_id: str
    method: str
    peer: str
    items: int = 0
    metrics: list[str] = field(default_factory=list)
    code: str = ""
    at: str = ""
    request_bytes: int = 0
    reply_bytes: int = 0
    duration_s: float = 0.0
    tenant: str = ""


class RequestLog:
    """The log of calls, which a thread writes every 0.2 s. Records above the limits are dropped and counted."""

    def __init__(
        self,
        *,
        level: int = logging.INFO,
        stream: TextIO | None = None,
        on_drop: Callable[[], None] = lambda: None,
    ) -> None:
        self._level = level
        self._stream = stream or sys.stderr
        self._on_drop = on_drop
        self._waiting: list[tuple[float, CallRecord]] = []
        self._bound: RateBound[tuple[str, str]] = RateBound(_CALLS_PER_S)
        self._timer: asyncio.TimerHandle | None = None
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="gradewire-log")
        self._writing: Future[None] = self._writer.submit(lambda: None)

    def add(self, record: CallRecord) -> None:
        """Log a finished call, unless its level is disabled or a limit is exceeded."""
        if _level(record.code) < self._level:
            return
        if len(self._waiting) < _MAX_WAITING and self._bound.admit((record.method, record.code)):
            self._waiting.append((time.time(), record))
        else:
            self._on_drop()
        self._flush_soon()

    async def close(self) -> None:
        """Write the remaining records and end the thread."""
        if self._timer is not None:
            self._timer.cancel()
        self._flush(at_once=True)
        await asyncio.to_thread(self._writer.shutdown)

    def _flush_soon(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_FLUSH_AFTER_S, self._flush)

    def _flush(self, *, at_once: bool = False) -> None:
        self._timer = None
        if not (at_once or self._writing.done()):
            self._flush_soon()
            return
        waiting, self._waiting = self._waiting, []
        lines = [_omitted(*kind, count) for kind, count in self._bound.left_out(at_once=at_once).items()]
        if waiting or lines:
            self._writing = self._writer.submit(self._write, waiting, lines)
        if self._bound.waiting:
            self._flush_soon()

    def _write(self, records: list[tuple[float, CallRecord]], others: list[dict[str, Any]]) -> None:
        lines = [*(_line(time_s, record) for time_s, record in records), *others]
        self._stream.write("".join(json.dumps(line) + "\n" for line in lines))
        self._stream.flush()


def _omitted(method: str, code: str, count: int) -> dict[str, Any]:
    return {**_beginning(time.time(), code, "calls left out"), "method": method, "code": code, "calls": count}


def _beginning(time_s: float, code: str, event: str) -> dict[str, Any]:
    return {"time": _iso(time_s), "level": logging.getLevelName(_level(code)).lower(), "event": event}


def _level(code: str) -> int:
    if code == "OK":
        return logging.INFO
    return logging.WARNING if code in _NO_DEFECTS else logging.ERROR


def _line(time_s: float, record: CallRecord) -> dict[str, Any]:
    line = {
        **_beginning(time_s, record.code, "call"),
        "request_id": _cut(record.request_id),
        "method": record.method,
        "code": record.code,
        "duration_s": round(record.duration_s, 6),
        "items": record.items,
        "metrics": [_cut(name) for name in record.metrics[:_MAX_LISTED]],
        "request_bytes": record.request_bytes,
        "reply_bytes": record.reply_bytes,
        "peer": _cut(record.peer),
    }
    if record.tenant:
        line["tenant"] = record.tenant
    if record.at:
        line["field"] = _cut(record.at)
    return line


def _cut(text: str, most: int = _MAX_CHARACTERS) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _iso(time_s: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time_s)) + f".{int(time_s % 1 * 1000):03d}Z"


class JsonFormatter(logging.Formatter):
    """A formatter that turns a log message into a JSON object. During a call, the object contains the call's ID."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as a JSON line."""
        line = {
            "time": _iso(record.created),
            "level": record.levelname.lower(),
            "event": _cut(record.getMessage(), _MAX_EVENT_CHARACTERS),
            "logger": record.name,
        }
        if call := request_id.get():
            line["request_id"] = call
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)[-_MAX_TRACEBACK_CHARACTERS:]
        return json.dumps(line)


def configure_log(level: str) -> FloodFilter:
    """Configure logging to standard error, and return the filter that limits repeated messages."""
    flood = FloodFilter()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    handler.addFilter(flood)
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    return flood
