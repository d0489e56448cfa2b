"""What stores tell Prometheus. Base units, bounded labels; docs/operate/prometheus.md lists the names."""

from collections.abc import Callable, Iterable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector
from typing_extensions import override

from gradewire_server.concurrency.breaker import BreakerState
from gradewire_server.storage.lru import SegmentedLru

_SECONDS: Final = (0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
_PREFIX: Final = "gradewire_engine"
_STORE_OPERATION: Final = ("store", "operation")


class StorageTelemetry:
    """Counters, gauges and histograms of memory and stores.

    Args:
        registry: Where they are registered; one per registry.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry

        def counter(name: str, what: str, labels: tuple[str, ...]) -> Counter:
            return Counter(f"{_PREFIX}_{name}", what, labels, registry=registry)

        self.store_operations = counter("store_operations", "Calls of a second level.", _STORE_OPERATION)
        self.store_errors = counter("store_errors", "Failed calls of a second level.", _STORE_OPERATION)
        self.store_rejected = counter("store_rejected_values", "Values that failed their check: misses.", ("store",))
        self.refused_macs = counter(
            "store_refused_macs", "Values in Redis whose MAC is missing or wrong: misses.", ("reason",)
        )
        self.store_s = Histogram(
            f"{_PREFIX}_store_seconds",
            "Time of one call of a second level.",
            _STORE_OPERATION,
            registry=registry,
            buckets=_SECONDS,
        )
        self.unwritten = counter("unwritten_values", "Values that did not reach the second level.", ("reason",))
        self._breaker = Gauge(
            f"{_PREFIX}_breaker_state",
            "1 for the state the breaker before Redis is in.",
            ("state",),
            registry=registry,
        )
        self.set_breaker(BreakerState.CLOSED)

    def expose(self, memory: SegmentedLru) -> None:
        """Shows how full the in-process cache is, read when it is asked for."""
        self._gauge("memory_bytes", "Bytes in the in-process cache.", lambda: memory.used_bytes)
        self._gauge("memory_entries", "Entries of the in-process cache.", lambda: len(memory))
        self.registry.register(
            _ReadCounter(f"{_PREFIX}_memory_evictions", "Entries pushed out of memory.", lambda: memory.evicted_entries)
        )

    def set_breaker(self, state: BreakerState) -> None:
        """Shows the breaker's state."""
        for each in BreakerState:
            self._breaker.labels(each).set(each is state)

    def _gauge(self, name: str, what: str, read: Callable[[], float]) -> None:
        Gauge(f"{_PREFIX}_{name}", what, registry=self.registry).set_function(read)


class _ReadCounter(Collector):
    """A counter that something else counts."""

    def __init__(self, name: str, what: str, read: Callable[[], float]) -> None:
        self._name, self._what, self._read = name, what, read

    @override
    def collect(self) -> Iterable[Metric]:
        yield CounterMetricFamily(self._name, self._what, value=self._read())
