"""Prometheus counters of what was exported and dropped."""

from collections.abc import Iterator, Mapping

from prometheus_client import Metric
from prometheus_client.metrics_core import CounterMetricFamily
from prometheus_client.registry import Collector
from typing_extensions import override

from gradewire_proto.telemetry.outbox import Outbox


class TelemetryFigures(Collector):
    """To be registered where a process traces.

    Args:
        outboxes: By the kind of what they hold.
        prefix: Of the names, "gradewire" say.
    """

    def __init__(self, outboxes: Mapping[str, Outbox], prefix: str) -> None:
        self._outboxes = outboxes
        self._prefix = prefix

    @override
    def collect(self) -> Iterator[Metric]:
        exported = CounterMetricFamily(
            f"{self._prefix}_telemetry_exported", "Spans and evaluation events that a collector took.", labels=["kind"]
        )
        dropped = CounterMetricFamily(
            f"{self._prefix}_telemetry_dropped",
            "Spans and evaluation events that found no room or no collector.",
            labels=["kind"],
        )
        for kind, outbox in self._outboxes.items():
            exported.add_metric([kind], outbox.exported)
            dropped.add_metric([kind], outbox.dropped)
        yield exported
        yield dropped
