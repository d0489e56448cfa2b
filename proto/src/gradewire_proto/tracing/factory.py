"""The opening of tracing in a process that may lack OpenTelemetry, or have an older one."""

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
    """Return a function that counts exported and dropped records in the registry of a process that traces."""
    from prometheus_client import Counter  # noqa: PLC0415 - a command traces without it

    texts = {
        "exported": "Spans and evaluation events that a collector took.",
        "dropped": "Spans and evaluation events that found no room or no collector.",
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
    """Open tracing for a process of that name; return None, with a line in the log, if it cannot be opened."""
    try:
        # It brings OpenTelemetry's SDK, which a process that traces nothing does not load.
        from gradewire_proto.tracing.sdk import Tracing  # noqa: PLC0415
    except ImportError as error:
        _log.warning(
            "a collector is named, and nothing is traced: pip install 'gradewire[otel]' "
            "(OpenTelemetry's libraries are missing or too old: %s)",
            error,
        )
        return None
    try:
        check_environment(os.environ)
        return Tracing(settings, service, version("gradewire"), count)
    except Exception as error:  # noqa: BLE001 - the SDK has classes of its own for variables that it cannot read
        _log.error("nothing is traced: %s", error)
        return None
