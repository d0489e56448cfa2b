"""The tracer and the logger of a process of ours, with exporters that never hold it up.

They are the process's own and are set nowhere globally.
"""

import logging
import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.environment_variables import OTEL_TRACES_SAMPLER
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ParentBased, Sampler, TraceIdRatioBased

from gradewire_proto.spans import PROCESS_PID, SERVICE_NAME, SERVICE_VERSION
from gradewire_proto.telemetry.environment import check_environment
from gradewire_proto.telemetry.exporters import (
    BoundedRecords,
    BoundedSpans,
    number_from,
    record_exporter,
    span_exporter,
)
from gradewire_proto.telemetry.outbox import Outbox, quieten_library
from gradewire_proto.telemetry.settings import TelemetrySettings

if TYPE_CHECKING:
    from opentelemetry._logs import Logger
    from opentelemetry.trace import Tracer

_log = logging.getLogger(__name__)
_MAX_SPANS: Final = 2048
_MAX_EVENTS: Final = 4096
_CLOSE_S: Final = 2.0
_FAILING_CLOSE_S: Final = 0.2
_CUT_OFF_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Service:
    """How a process is called in traces, unless OTEL_SERVICE_NAME or OTEL_RESOURCE_ATTRIBUTES say otherwise."""

    name: str
    version: str


class Providers:
    """Made once a process, by `open_providers`; closed at its end.

    Args:
        settings: Where to, and how many.
        service: Names the process.
        draws_ids: Whether ids are drawn by the library, and not given out by `ids`.

    Attributes:
        traces: Makes `tracer`.
        logs: Makes `logger`; None where no events are wanted.
        tracer: Makes spans, with ids that `ids` was given.
        ids: Of the next span.
        sampler: Says which traces are kept.
        logger: Emits events; None where none are wanted.
        spans: Counts spans.
        events: Counts events.
    """

    def __init__(self, settings: TelemetrySettings, service: Service, *, draws_ids: bool = False) -> None:
        quieten_library()
        resource = Resource.create(_attributes(service))
        # None leaves it to the standard variables.
        sampler = None if os.environ.get(OTEL_TRACES_SAMPLER) else ParentBased(TraceIdRatioBased(settings.sample_ratio))
        max_spans = number_from(os.environ.get("OTEL_BSP_MAX_QUEUE_SIZE", ""), _MAX_SPANS)
        self.spans = Outbox("spans", max_spans)
        self._processors: list[BoundedSpans | BoundedRecords] = []
        self.ids = GivenIds()
        traces = self.traces = TracerProvider(
            sampler=sampler,
            resource=resource,
            shutdown_on_exit=False,
            id_generator=None if draws_ids else self.ids,
        )
        self.sampler: Sampler = traces.sampler
        exporter = span_exporter(settings.protocol_of("TRACES"), settings.endpoint)
        processor = BoundedSpans(exporter, self.spans, max_spans)
        traces.add_span_processor(processor)
        self._processors.append(processor)
        self.tracer: Tracer = traces.get_tracer(service.name, service.version)
        max_events = number_from(os.environ.get("OTEL_BLRP_MAX_QUEUE_SIZE", ""), _MAX_EVENTS)
        self.events = Outbox("evaluation events", max_events)
        self.logger: Logger | None = None
        self.logs: LoggerProvider | None = None
        if settings.has_events():
            logs = self.logs = LoggerProvider(resource=resource, shutdown_on_exit=False)
            records = BoundedRecords(
                record_exporter(settings.protocol_of("LOGS"), settings.endpoint), self.events, max_events
            )
            logs.add_log_record_processor(records)
            self._processors.append(records)
            self.logger = logs.get_logger(service.name, service.version)

    @property
    def outboxes(self) -> dict[str, Outbox]:
        """By the kind of what they hold, for figures."""
        return {"span": self.spans, "event": self.events}

    def close(self, within_s: float = _CLOSE_S) -> None:
        """Exports what waits, for so long at most; a collector that does not answer keeps nothing from ending."""
        if self.spans.is_failing or self.events.is_failing:
            within_s = min(within_s, _FAILING_CLOSE_S)
        threads = [
            threading.Thread(target=each.shutdown, name="gradewire-telemetry-close", daemon=True)
            for each in self._processors
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(within_s)
        late = [each for each, thread in zip(self._processors, threads, strict=True) if thread.is_alive()]
        for each in late:
            each.cut_off()
        for thread in threads:
            thread.join(_CUT_OFF_S)


class GivenIds(IdGenerator):
    """Gives the ids that were handed out while a span was recorded; used by one thread."""

    def __init__(self) -> None:
        self._trace_id = self._span_id = 1

    def give(self, trace_id: int, span_id: int) -> None:
        """Says which are next."""
        self._trace_id, self._span_id = trace_id, span_id

    def generate_span_id(self) -> int:
        """As given."""
        return self._span_id

    def generate_trace_id(self) -> int:
        """As given."""
        return self._trace_id


def open_providers(settings: TelemetrySettings, service: Service, *, draws_ids: bool = False) -> Providers | None:
    """The providers of a process; None, with a line in the log, where the settings or the variables cannot be used.

    Args:
        settings: Whose `is_on` was asked before.
        service: Names the process.
        draws_ids: As `Providers`.
    """
    try:
        check_environment(os.environ)
        return Providers(settings, service, draws_ids=draws_ids)
    except Exception as error:  # noqa: BLE001 - the SDK has classes of its own for variables that it cannot read
        _log.error("nothing is traced: %s", error)
        return None


def _attributes(service: Service) -> dict[str, str | int]:
    found: dict[str, str | int] = {SERVICE_VERSION: service.version, PROCESS_PID: os.getpid()}
    # Given in code it would win over the variables.
    named = os.environ.get("OTEL_SERVICE_NAME") or f"{SERVICE_NAME}=" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    return found if named else found | {SERVICE_NAME: service.name}
