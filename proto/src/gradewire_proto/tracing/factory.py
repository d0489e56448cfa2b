"""Open tracing, if OpenTelemetry is installed and recent enough."""

import logging
import os
from collections.abc import Callable
from importlib.metadata import version
from typing import TYPE_CHECKING

from gradewire_proto.tracing.settings import TracingSettings, check_environment

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from gradewire_proto.tracing.sdk import Tracing

_log = logging.getLogger(__name__)


def prometheus_counts(registry: "CollectorRegistry", prefix: str) -> Callable[[str, str, int], None]:
    """Return a function that counts exported and dropped records in the registry of a tracing process."""
    from prometheus_client import Counter  # noqa: PLC0415 - commands trace without this library

    texts = {
        "exported": "Spans and evaluation events that a collector accepted.",
        "dropped": "Spans and evaluation events dropped because the queue was full or the collector was down.",
    }
    families = {
        outcome: Counter(f"{prefix}_telemetry_{outcome}", text, ["kind"], registry=registry)
        for outcome, text in texts.items()
    }

    def count(outcome: str, kind: str, number: int) -> None:
        families[outcome].labels(kind).inc(number)

    for outcome in families:
        for kind in ("span", "event"):
            count(outcome, kind, 0)
    return count


def open_tracing(
    settings: TracingSettings, service: str, count: Callable[[str, str, int], None] | None = None
) -> "Tracing | None":
    """Open tracing for the process named `service`. If that fails, log the reason and return None."""
    try:
        # The import brings OpenTelemetry's SDK, which a process without tracing does not load.
        from gradewire_proto.tracing.sdk import Tracing  # noqa: PLC0415
    except ImportError as error:
        _log.warning(
            "no tracing, because OpenTelemetry's libraries are missing or too old (%s). "
            "Run: pip install 'gradewire[otel]'",
            error,
        )
        return None
    try:
        check_environment(os.environ)
        return Tracing(settings, service, version("gradewire"), count)
    except Exception as error:  # noqa: BLE001 - the SDK has its own error classes for variables that it cannot read
        _log.error("no tracing: %s", error)
        return None
