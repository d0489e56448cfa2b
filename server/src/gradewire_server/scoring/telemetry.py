"""What scoring tells Prometheus; docs/operate/prometheus.md lists the names."""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from typing_extensions import override

from gradewire_server.scoring.remembered import RememberedResults

_PREFIX = "gradewire_remembered_results"


class RememberedTelemetry(Collector):
    """What is remembered of results, read when it is asked for.

    Args:
        results: Of the process.
        registry: Where this is registered.
    """

    def __init__(self, results: RememberedResults, registry: CollectorRegistry) -> None:
        self._results = results
        registry.register(self)

    @override
    def collect(self) -> Iterable[Metric]:
        results = self._results
        yield GaugeMetricFamily(f"{_PREFIX}_bytes", "Bytes of results that are remembered.", results.used_bytes)
        yield CounterMetricFamily(
            f"{_PREFIX}_found", "Results that were answered from those remembered.", results.found
        )
        yield CounterMetricFamily(
            f"{_PREFIX}_texts", "Texts of those results: no encoder's cache was asked for them.", results.texts
        )
