"""Prometheus counters of what was exported and dropped."""

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.metrics_core import CounterMetricFamily
from prometheus_client.registry import Collector
from typing_extensions import override

from gradewire_proto.telemetry.providers import Providers


class TelemetryFigures(Collector):
    """To be registered where a process traces.

    Args:
        providers: Of the process.
        prefix: Of the names, "gradewire" say.
    """

    def __init__(self, providers: Providers, prefix: str) -> None:
        self._outboxes = {"span": providers.spans, "event": providers.events}
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
