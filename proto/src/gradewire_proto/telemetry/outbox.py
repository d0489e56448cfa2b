"""What bounds and counts spans and events on their way to a collector, which may be slow, dead or wrong."""

import logging
import threading
from typing import Final

_log = logging.getLogger(__name__)
_LIBRARY: Final = (
    "opentelemetry.exporter.otlp.proto.grpc.exporter",
    "opentelemetry.exporter.otlp.proto.http.trace_exporter",
    "opentelemetry.exporter.otlp.proto.http._log_exporter",
    "opentelemetry.exporter.otlp.common.http",
    "opentelemetry.sdk._shared_internal",
)
"""Loggers that write a line for every attempt to export."""


class Outbox:
    """The room for one kind of records; beyond it they are dropped. May be used from any thread.

    Args:
        what: "spans" or "evaluation events", for the log.
        max_records: That may wait or be on their way.

    Attributes:
        exported: Records that the collector took.
        dropped: Records that found no room, or that the collector did not take.
        is_failing: Whether the last that happened was a loss.
    """

    def __init__(self, what: str, max_records: int) -> None:
        self._what = what
        self._max_records = max_records
        self._lock = threading.Lock()
        self._pending = 0
        self.is_failing = False
        self.exported = 0
        self.dropped = 0

    def admit(self) -> bool:
        """Makes room for one record; False where there is none, and it counts as dropped."""
        with self._lock:
            if self._pending < self._max_records:
                self._pending += 1
                return True
            self.dropped += 1
        self._tell_loss()
        return False

    def ended(self, count: int, *, taken: bool) -> None:
        """So many that were admitted have left, to the collector or nowhere."""
        with self._lock:
            self._pending -= count
            if taken:
                self.exported += count
            else:
                self.dropped += count
        if taken:
            self._tell_recovery()
        else:
            self._tell_loss()

    def lost(self, count: int) -> None:
        """So many were not even admitted."""
        if count:
            with self._lock:
                self.dropped += count
            self._tell_loss()

    def _tell_loss(self) -> None:
        if not self.is_failing:
            self.is_failing = True
            _log.warning("%s are dropped: the collector takes none, or not fast enough; said once", self._what)

    def _tell_recovery(self) -> None:
        if self.is_failing:
            self.is_failing = False
            _log.warning("the collector takes %s again; %d were dropped so far", self._what, self.dropped)
            SAID_ONCE.renew()


class _SaidOnce(logging.Filter):
    """Lets each message of a logger through once, until it is renewed."""

    def __init__(self) -> None:
        super().__init__()
        self._said: set[tuple[str, str]] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is told."""
        message = record.name, str(record.msg)
        if message in self._said:
            return False
        self._said.add(message)
        return True

    def renew(self) -> None:
        """Lets all through once more."""
        self._said.clear()


SAID_ONCE: Final = _SaidOnce()


def quieten_library() -> None:
    """Has OpenTelemetry's exporters tell each trouble once, and not whenever they try."""
    for name in _LIBRARY:
        logger = logging.getLogger(name)
        if SAID_ONCE not in logger.filters:
            logger.addFilter(SAID_ONCE)
