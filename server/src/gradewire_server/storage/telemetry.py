"""What the engine tells Prometheus. Base units, bounded labels; docs/operate/prometheus.md lists the names."""

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from gradewire_server.concurrency.breaker import BreakerState
from gradewire_server.domain.needs import Source
from gradewire_server.domain.result import Failure

_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
_STORE_SECONDS = (0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
_TEXTS = (1, 2, 4, 8, 16, 32, 64, 128)
_TOKENS = (8, 16, 32, 64, 128, 256, 512, 1024)


class EngineTelemetry:
    """Counters, gauges and histograms of one engine.

    Args:
        registry: Where they are registered; one engine per registry.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry

        def histogram(name: str, what: str, buckets: tuple[float, ...], labels: tuple[str, ...] = ()) -> Histogram:
            return Histogram(f"gradewire_engine_{name}", what, labels, registry=registry, buckets=buckets)

        def counter(name: str, what: str, labels: tuple[str, ...] = ()) -> Counter:
            return Counter(f"gradewire_engine_{name}", what, labels, registry=registry)

        self.queue_s = histogram("queue_seconds", "Time a text waited for a worker.", _SECONDS, ("model",))
        self.inference_s = histogram("inference_seconds", "Time of one run of the encoder.", _SECONDS, ("model",))
        self.tokenize_s = histogram("tokenize_seconds", "Time of tokenizing one call's texts.", _SECONDS, ("model",))
        self.batch_texts = histogram("batch_texts", "Texts of one run.", _TEXTS, ("model",))
        self.batch_tokens = histogram("batch_tokens", "Padded tokens of one run.", _TOKENS, ("model",))
        self.tokens = counter("tokens", "Tokens run through an encoder: real ones and padding.", ("model", "kind"))
        self.texts = counter("texts", "Texts answered, by where they came from.", ("source",))
        self.failures = counter("text_failures", "Texts that failed, by status.", ("status",))
        self.dropped = counter("dropped_texts", "Queued texts that nobody wanted any more.", ("reason",))
        self.store_operations = counter("store_operations", "Calls of a second level.", ("store", "operation"))
        self.store_errors = counter("store_errors", "Failed calls of a second level.", ("store", "operation"))
        self.store_rejected = counter("store_rejected_values", "Values that failed their check: misses.", ("store",))
        self.store_s = histogram(
            "store_seconds", "Time of one call of a second level.", _STORE_SECONDS, ("store", "operation")
        )
        self.unwritten = counter("unwritten_values", "Values that did not reach the second level.", ("reason",))
        self.breaker = Gauge(
            "gradewire_engine_breaker_state",
            "1 for the state the breaker before Redis is in.",
            ("state",),
            registry=registry,
        )
        self._texts_by_source = [self.texts.labels(source.name.lower()) for source in Source]
        self.set_breaker(BreakerState.CLOSED)

    def gauge(self, name: str, what: str, read: Callable[[], float]) -> None:
        """A gauge `gradewire_engine_{name}` that is read when it is asked for."""
        Gauge(f"gradewire_engine_{name}", what, registry=self.registry).set_function(read)

    def total(self, name: str, what: str, read: Callable[[], float]) -> None:
        """A counter `gradewire_engine_{name}_total` that is read when it is asked for."""
        self.registry.register(_ReadCounter(f"gradewire_engine_{name}", what, read))

    def answered(self, sources: bytes | bytearray, failed: Iterable[tuple[int, Failure]] = ()) -> None:
        """Counts the texts of one call.

        Args:
            sources: `Source` of each text.
            failed: Positions and failures of those that were not answered.
        """
        counts = [sources.count(source) for source in Source]
        for position, failure in failed:
            counts[sources[position]] -= 1
            self.failures.labels(failure.status.name.lower()).inc()
        for child, count in zip(self._texts_by_source, counts, strict=True):
            if count:
                child.inc(count)

    def set_breaker(self, state: BreakerState) -> None:
        """Shows the breaker's state."""
        for each in BreakerState:
            self.breaker.labels(each).set(each is state)


class _ReadCounter(Collector):
    """A counter that something else counts."""

    def __init__(self, name: str, what: str, read: Callable[[], float]) -> None:
        self._name, self._what, self._read = name, what, read

    def collect(self) -> Iterable[Metric]:
        yield CounterMetricFamily(self._name, self._what, value=self._read())
