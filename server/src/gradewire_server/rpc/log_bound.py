"""Keeps the log short while the same thing happens again and again.

Of what one place in the code logs, or of calls that fail alike, so many lines a second are written; the rest is
counted, and one line says how many were left out.
"""

import logging
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from typing_extensions import override

KeyT = TypeVar("KeyT", bound=Hashable)

_log = logging.getLogger(__name__)
MESSAGES_PER_S: Final = 5
"""Of one place in the code."""
_WINDOW_S: Final = 1.0
_GRPC_LOGGER: Final = "grpc._cython.cygrpc"
_LOST_CALL: Final = "ExecuteBatchError"
"""What gRPC raises where a reply has nobody left to go to: the deadline is over, or the caller has gone."""
_BROKEN_METADATA: Final = "Invalid encoding on "
"""How gRPC begins what it logs of metadata that are not UTF-8, twice for each, with their value and a traceback."""


class RateBound(Generic[KeyT]):
    """Lets so many of a kind pass within a second, and counts the others; for any thread.

    Args:
        per_s: How many of one kind.
        clock: Seconds that only grow.
    """

    def __init__(self, per_s: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_s = per_s
        self._clock = clock
        self._lock = threading.Lock()
        self._windows: dict[KeyT, _Window] = {}

    @property
    def waiting(self) -> bool:
        """Whether something was left out that `left_out` has not told yet."""
        with self._lock:
            return any(window.left_out for window in self._windows.values())

    def admit(self, kind: KeyT) -> bool:
        """Whether one more of this kind passes."""
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
        """How many were left out since this was last told, of each kind at most once a second unless `at_once`."""
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
    """What came of one kind: in the second that began at `started_s`, and left out since `told_s`."""

    started_s: float
    told_s: float
    seen: int = 0
    left_out: int = 0


class FloodFilter(logging.Filter):
    """Of a log's handler: bounds what one place in the code says, and knows gRPC's lost calls.

    A reply that nobody waits for any more is no defect, whatever gRPC thinks: its traceback becomes a counted line of
    level DEBUG. Metadata that are not UTF-8 are no defect either, and their value may be a token. Any other exception
    of a handler is logged as it was.

    Attributes:
        on_left_out: Called for each message that is left out.
        on_lost_call: Called for each reply that had nobody to go to.
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
            record.msg, record.args, record.exc_info = "a caller sent metadata that are not UTF-8", (), None
            record.levelno, record.levelname = logging.WARNING, "WARNING"
        if self._bound.admit((record.name, record.pathname, record.lineno)):
            return True
        self.on_left_out()
        return False

    def tell(self, *, at_once: bool = False) -> None:
        """Logs how many messages were left out, of each place one line; to be called again and again."""
        for (name, _, line), count in self._bound.left_out(at_once=at_once).items():
            _log.warning("%d more messages of %s (line %d) were left out", count, name, line)


def _is_lost_call(record: logging.LogRecord) -> bool:
    kind = record.exc_info[0] if record.exc_info else None
    return record.name == _GRPC_LOGGER and kind is not None and kind.__name__ == _LOST_CALL
